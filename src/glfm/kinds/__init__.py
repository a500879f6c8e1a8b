"""The kinds of column. Every module of this package that defines one is found and registered on import."""

from importlib import import_module
from pkgutil import iter_modules

from glfm.kinds.base import KINDS, Kind, find_kind
from glfm.kinds.cells import Cells
from glfm.kinds.levelled import LevelledKind
from glfm.kinds.mappings import MAPPINGS, Mapping
from glfm.kinds.numeric import NumericKind

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "KINDS",
    "MAPPINGS",
    "Cells",
    "Kind",
    "LevelledKind",
    "Mapping",
    "NumericKind",
    "find_kind",
]
