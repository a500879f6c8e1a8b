"""Data flows one way: a module imports only from what stands above it."""

import ast
from pathlib import Path

import glfm

SOURCE = Path(glfm.__file__).parent

# From the ground up; modules of one line do not import each other, except inside a package.
LAYERS = [
    ["errors", "column"],
    ["archive", "kernels", "times"],
    ["quantiles"],
    ["mappings"],
    ["kinds"],
    ["dtypes"],
    ["table"],
    ["packing", "schema"],
    ["priors", "settings"],
    ["problem"],
    ["shard", "shared", "state"],
    ["ladders", "recoding", "starts"],
    ["hybrid", "sampler"],
    ["draws"],
    ["chain", "cells", "information", "placing", "progress", "plots"],
    ["engine", "align", "uncertainty", "diagnostics", "storage"],
    ["rows", "effects", "partial", "checkpoint"],
    ["predictive", "dependence", "similarity", "rest", "joint", "generation"],
    ["summary", "pooling", "calibration", "surprise", "asking", "distributed"],
    ["evidence", "explanation", "export", "pictures", "report", "sensitivity"],
    ["answers", "changes"],
    ["questions", "relations", "whatif"],
    ["model"],
    ["baselines", "datasets", "files", "imputer", "testing", "toolbox"],
    ["demo"],
    ["cli"],
    ["__init__", "__main__"],
]
# An import that may point downwards, inside a function, and why.
EXCEPTIONS = {("schema", "evidence"): "Schema.infer(evidence=True) fits models, which stand on schemas"}
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
PACKAGES = {
    "baselines",
    "changes",
    "cli",
    "distributed",
    "kernels",
    "kinds",
    "packing",
    "pictures",
    "report",
    "testing",
    "toolbox",
}


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
    assert violations({"kinds": {"model"}}) == ["kinds imports model"]
    assert violations({"schema": {"schema"}}) == ["schema imports schema"]
