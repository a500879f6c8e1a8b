"""Data flows one way: a module imports only from what stands above it."""

import ast
from pathlib import Path

import glfm

SOURCE = Path(glfm.__file__).parent

# From the ground up; modules of one line do not import each other, except inside a package.
LAYERS = [
    ["errors"],
    ["frames"],
    ["kernels"],
    ["kinds"],
    ["schema"],
    ["sampling"],
    ["posterior"],
    ["analysis"],
    ["storage"],
    ["distributed", "plots"],
    ["report"],
    ["estimators"],
    ["baselines", "datasets", "files", "testing", "toolbox"],
    ["demo"],
    ["cli"],
    ["__init__", "__main__"],
]
# An import that may point downwards, inside a function, and why.
EXCEPTIONS = {
    ("schema", "analysis"): "Schema.infer(evidence=True) fits models, which stand on schemas",
    ("analysis", "plots"): "Calibration.plot and Sensitivity.plot",
}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
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


def violations(files: dict[str, set[str]]) -> list[str]:
    """Return every import that points downwards or sideways."""
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


def test_imports_point_upwards():
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        module = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        found.setdefault(module, set()).update(imports(path))
    assert violations(found) == []


def test_a_wrong_import_would_be_seen():
    assert violations({"kinds": {"estimators"}}) == ["kinds imports estimators"]
    assert violations({"files": {"files"}}) == ["files imports files"]
