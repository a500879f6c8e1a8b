"""Who calls which kernel, read from the source, and which branches of a kernel are compiled."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src"
COMPILED = {"kernel", "part_of_kernel"}
Name = tuple[str, str]  # module and function


def decorators(node: ast.AST) -> set[str]:
    found = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return {one.id for one in found if isinstance(one, ast.Name)} & COMPILED


def modules() -> dict[str, ast.Module]:
    paths = [path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    named = {path: path.relative_to(SOURCE if SOURCE in path.parents else ROOT) for path in paths}
    return {".".join(name.with_suffix("").parts): ast.parse(path.read_text()) for path, name in named.items()}


def kernels(trees: dict[str, ast.Module]) -> dict[Name, str]:
    return {
        (module, node.name): kind
        for module, tree in trees.items()
        for node in tree.body
        for kind in decorators(node)
        if isinstance(node, ast.FunctionDef)
    }


def uses(trees: dict[str, ast.Module], known: dict[Name, str]) -> Counter[Name]:
    """Return how often each kernel is named, within kernels or elsewhere."""
    found: Counter[Name] = Counter()
    for module, tree in trees.items():
        names = {name: (module, name) for of, name in known if of == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {one.asname or one.name: (node.module, one.name) for one in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and names.get(node.id) in known:
                found[names[node.id]] += 1
    return found


TREES = modules()
KERNELS = kernels(TREES)
USES = uses(TREES, KERNELS)


@pytest.mark.parametrize("kind", sorted(COMPILED))
def test_kernels_of_every_kind_are_found(kind):
    assert kind in KERNELS.values()


def test_a_part_of_a_kernel_has_one_place():
    assert {USES[name] for name, kind in KERNELS.items() if kind == "part_of_kernel"} == {1}


def test_a_second_place_is_found():
    trees = {"a": ast.parse("@part_of_kernel\ndef f(): pass\n@kernel\ndef g():\n    f()\n    f()")}
    assert uses(trees, kernels(trees)) == {("a", "f"): 2}


# Features that are bits or scores: a kernel takes the work space of both, and one is None.

TWO_SORTS = """
from typing import NamedTuple

import numpy as np
from numba import TypingError

from glfm.kernels.jit import kernel


class Work(NamedTuple):
    bits: object
    scores: object


@kernel
def total(bits, scores):
    out = 0.0
    if bits is not None:
        out += bits[0]
    if scores is not None:
        out += scores.size  # which bits may have, and None has not
    return out


@kernel
def of_fields(work):
    return work.bits[0] if work.bits is not None else 0.0


print(total(np.ones(1), None), total(None, np.ones((3, 1))))
print(sum(total.stats.cache_hits.values()), sum(total.stats.cache_misses.values()))
try:
    of_fields(Work(None, None))
except TypingError:
    print("not typed")
"""


def test_code_for_what_is_none_is_not_compiled_and_both_sorts_are_cached(tmp_path):
    script = tmp_path / "two_sorts.py"
    script.write_text(TWO_SORTS)
    said = [
        subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    # The branch of a field, which is not an argument, is compiled: None has no items.
    assert said == ["1.0 3.0\n0 2\nnot typed\n", "1.0 3.0\n2 0\nnot typed\n"]
