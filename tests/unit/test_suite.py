"""The tests themselves: each asserts something, through what is public, and none can hang."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))

# Names with an underscore that are meant for others: of IPython, of named tuples, of a process that ends.
PROTOCOLS = {"_repr_png_", "_repr_html_", "_repr_mimebundle_", "_asdict", "_fields", "_replace", "_exit"}
# Faults are planted inside, and negative controls break what is inside: for that there is no public way.
INSIDE = {
    "end_to_end/killed_fits.py": {"_write_array"},
    "end_to_end/test_cluster.py": {"_current", "_watch"},
    "unit/plots/test_plot.py": {"_preprocess_math"},
    "unit/sampling/test_faults.py": {"_make_room", "_solved"},
    "unit/sampling/test_preparation.py": {"_helpers", "_stored"},
    "unit/storage/test_stops.py": {"_sums"},
}


def name_of(call: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def asserts(function: ast.AST, helpers: frozenset[str] = frozenset()) -> bool:
    """Return whether a function can fail by itself: an assert, pytest.raises, or a helper that asserts."""
    nodes = list(ast.walk(function))
    calls = {name_of(node) for node in nodes if isinstance(node, ast.Call)}
    return (
        any(isinstance(node, ast.Assert) for node in nodes)
        or bool(calls & ({"raises", "warns", "fail"} | helpers))
        or any(name.startswith(("assert", "check")) for name in calls)
    )


def without_assertion(source: str) -> list[str]:
    """Return the names of the test functions in a file that assert nothing."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    helpers = frozenset(node.name for node in functions if not is_test(node) and asserts(node))
    return [node.name for node in functions if is_test(node) and not asserts(node, helpers)]


def is_test(function: ast.FunctionDef) -> bool:
    return function.name.startswith("test")


def privates(source: str) -> set[str]:
    """Return the private names that a file takes from elsewhere; constants may be lowered for a test."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") not in ("self", "cls"):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("glfm"):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and name_of(node) == "setattr":
            given = [getattr(argument, "value", None) for argument in node.args[:2]]
            found.update(text.rsplit(".", 1)[-1] for text in given if isinstance(text, str))
    return {name for name in found if re.match(r"_(?!_)(?![A-Z_]+$)", name)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_every_test_asserts_and_looks_from_outside(path):
    source = path.read_text(encoding="utf-8")
    assert without_assertion(source) == []
    assert privates(source) - PROTOCOLS <= INSIDE.get(path.relative_to(TESTS).as_posix(), set())


def test_a_test_without_assertion_is_found():
    source = """
def test_runs(model):
    model.fit()

class TestPlot:
    def test_draws(self, model):
        model.plot.patterns()

    def test_looks(self, model):
        assert model.plot.patterns()

def test_refuses(model):
    with pytest.raises(ValueError):
        model.fit()

def test_equal(one, other):
    np.testing.assert_array_equal(one, other)

def same(one, other):
    assert one == other

def test_same(one, other):
    same(one, other)
"""
    assert without_assertion(source) == ["test_runs", "test_draws"]


def test_a_look_inside_is_found():
    source = """
from glfm.analysis.summary import Summary, _status

def test_inside(model, monkeypatch):
    monkeypatch.setattr("glfm.sampling.chain._LARGE", 0)
    monkeypatch.setattr("glfm.sampling.chain._watch", None)
    monkeypatch.setattr(model, "_run", None)
    assert self._own and model.__dict__ and _here
    assert model._problem.n_rows
"""
    assert privates(source) == {"_status", "_watch", "_run", "_problem"}


def test_a_loop_that_never_ends_is_stopped(tmp_path):
    """The kernels release the lock of the interpreter; so does this loop, which no signal ends."""
    (tmp_path / "test_hang.py").write_text(
        "import hashlib\ndef test_hang():\n    hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=1", "test_hang.py"]
    options = ["-p", "no:xdist", "--timeout-method=thread"]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Timeout" in done.stdout + done.stderr
