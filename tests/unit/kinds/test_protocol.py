"""No other package tests which kind a column has: it asks the kind, so that a new one is a file."""

import ast
from pathlib import Path

import glfm
from glfm.kinds import KINDS

SOURCE = Path(glfm.__file__).parent
# Without Real, which is also a number of Python.
CLASSES = {cls.__name__ for cls in KINDS.values() if cls.__name__ != "Real"} | {
    "LevelCells",
    "LevelledKind",
    "NumberCells",
    "NumberScale",
    "NumericKind",
}


def kind_tests(source: str) -> list[str]:
    """Return isinstance tests of a class of kinds, and comparisons of a kind's name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            names = {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
            names |= {one.attr for one in ast.walk(node.args[1]) if isinstance(one, ast.Attribute)}
            found += [ast.unparse(node)] if names & CLASSES else []
        elif isinstance(node, ast.Compare) and "kind.name" in ast.unparse(node):
            found.append(ast.unparse(node))
    return found


def test_only_kinds_know_each_other() -> None:
    files = [path for path in SOURCE.rglob("*.py") if path.parent.name != "kinds"]
    assert len(files) > 100
    found = {str(path.relative_to(SOURCE)): kind_tests(path.read_text(encoding="utf-8")) for path in files}
    assert {name: tests for name, tests in found.items() if tests} == {}


def test_a_test_of_a_kind_would_be_seen() -> None:
    wrong = "isinstance(kind, NumericKind | Ordinal)\nkind.name == 'count'\nisinstance(x, glfm.Count)\n"
    assert len(kind_tests(wrong)) == 3
    assert kind_tests("isinstance(kind, Kind)\nkind.is_number\nname = kind.name") == []
