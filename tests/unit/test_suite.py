"""Every test asserts something, and only through what is public."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


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


@pytest.mark.parametrize("path", sorted(TESTS.rglob("test_*.py")), ids=lambda path: path.stem)
def test_every_test_asserts(path):
    assert without_assertion(path.read_text()) == []


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
