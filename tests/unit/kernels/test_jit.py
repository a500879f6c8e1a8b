"""Who calls which kernel, read from the source: a mistake would end the process or slow down compilation."""

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src"
COMPILED = {"kernel", "inner_kernel", "part_of_kernel"}
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


def uses(trees: dict[str, ast.Module], known: dict[Name, str]) -> tuple[Counter[Name], Counter[Name]]:
    """Return how often each kernel is named within kernels, and how often elsewhere."""
    within: Counter[Name] = Counter()
    elsewhere: Counter[Name] = Counter()
    for module, tree in trees.items():
        names = {name: (module, name) for of, name in known if of == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {one.asname or one.name: (node.module, one.name) for one in node.names}
        for part in tree.body:
            place = within if decorators(part) else elsewhere
            for node in ast.walk(part):
                if isinstance(node, ast.Name) and names.get(node.id) in known:
                    place[names[node.id]] += 1
    return within, elsewhere


TREES = modules()
KERNELS = kernels(TREES)
WITHIN, ELSEWHERE = uses(TREES, KERNELS)


@pytest.mark.parametrize("kind", sorted(COMPILED))
def test_kernels_of_every_kind_are_found(kind):
    assert kind in KERNELS.values()


def test_only_kernels_call_inner_kernels():
    """Called from Python, one of them ends the process; see `inner_kernel`."""
    assert not [name for name, kind in KERNELS.items() if kind == "inner_kernel" and ELSEWHERE[name]]


def test_a_part_of_a_kernel_has_one_place():
    assert {WITHIN[name] for name, kind in KERNELS.items() if kind == "part_of_kernel"} == {1}


def test_a_call_from_python_is_found():
    trees = {"a": ast.parse("@inner_kernel\ndef f(): pass"), "b": ast.parse("from a import f\nx = f()")}
    assert uses(trees, kernels(trees))[1] == {("a", "f"): 1}
