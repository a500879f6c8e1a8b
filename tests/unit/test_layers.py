"""Data flows one way: a module imports only from the layers below its own."""

import ast
import tomllib
from pathlib import Path

import glfm

SOURCE = Path(glfm.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
PLAN = tomllib.loads((DOCS / "design" / "layers.toml").read_text(encoding="utf-8"))
EXCEPTIONS = {(entry["module"], entry["imports"]) for entry in PLAN["exceptions"]}
LEVEL = {name: level for level, names in enumerate(PLAN["layers"]) for name in names}
PACKAGES = {path.parent.name for path in SOURCE.glob("*/__init__.py")}


def imports(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, wherever it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "glfm" else []
            found.update(names or [node.module])
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in found if name.startswith("glfm.")}


def imports_of(module: str) -> set[str]:
    """Return what the files of a package, or a module of its own, import."""
    files = (SOURCE / module).rglob("*.py") if module in PACKAGES else [SOURCE / f"{module}.py"]
    return set().union(*map(imports, files))


def violations(files: dict[str, set[str]]) -> list[str]:
    """Return every import of a layer that is not below the module's own."""
    return [
        f"{module} imports {target}"
        for module, targets in files.items()
        for target in targets
        if target in LEVEL
        and (module, target) not in EXCEPTIONS
        and not (LEVEL[target] < LEVEL[module] or (target == module and module in PACKAGES))
    ]


def test_every_module_has_a_layer():
    modules = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    assert modules == set(LEVEL)


def test_imports_point_to_lower_layers():
    assert violations({module: imports_of(module) for module in LEVEL}) == []


def test_a_wrong_import_would_be_seen():
    assert violations({"kinds": {"estimators"}}) == ["kinds imports estimators"]
    assert violations({"files": {"files"}}) == ["files imports files"]


def test_every_exception_is_needed():
    used = {module: imports_of(module) for module, _ in EXCEPTIONS}
    assert [pair for pair in EXCEPTIONS if pair[1] not in used[pair[0]]] == []
