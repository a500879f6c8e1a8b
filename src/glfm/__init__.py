"""Complete and explain messy tables with general latent feature models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Heavy modules are imported when one of their names is first used.
_HOMES = {
    "GLFM": "glfm.estimators.glfm",
    "load": "glfm.estimators.glfm",
    "Imputer": "glfm.estimators.imputer",
    "Schema": "glfm.schema.schema",
    "Real": "glfm.kinds.real",
    "Positive": "glfm.kinds.positive",
    "Count": "glfm.kinds.count",
    "Categorical": "glfm.kinds.categorical",
    "Ordinal": "glfm.kinds.ordinal",
    "Transform": "glfm.kinds.mappings",
    "LocalEngine": "glfm.sampling.engine",
    "DaskEngine": "glfm.distributed",
    "pool": "glfm.analysis.pooling",
    "Calibration": "glfm.analysis.calibration",
    "Sensitivity": "glfm.analysis.sensitivity",
    "GLFMError": "glfm.errors",
    "DataError": "glfm.errors",
    "FileError": "glfm.errors",
    "SchemaError": "glfm.errors",
    "SamplerError": "glfm.errors",
    "FitWarning": "glfm.errors",
    "baselines": "",
    "datasets": "",
    "testing": "",
    "toolbox": "",
}

__all__ = ["__version__", *(name for name in _HOMES if name != "DaskEngine")]  # which needs an extra

if TYPE_CHECKING:
    from glfm import baselines as baselines
    from glfm import datasets as datasets
    from glfm import testing as testing
    from glfm import toolbox as toolbox
    from glfm.analysis.calibration import Calibration as Calibration
    from glfm.analysis.pooling import pool as pool
    from glfm.analysis.sensitivity import Sensitivity as Sensitivity
    from glfm.distributed import DaskEngine as DaskEngine
    from glfm.errors import DataError as DataError
    from glfm.errors import FileError as FileError
    from glfm.errors import FitWarning as FitWarning
    from glfm.errors import GLFMError as GLFMError
    from glfm.errors import SamplerError as SamplerError
    from glfm.errors import SchemaError as SchemaError
    from glfm.estimators.glfm import GLFM as GLFM
    from glfm.estimators.glfm import load as load
    from glfm.estimators.imputer import Imputer as Imputer
    from glfm.kinds.categorical import Categorical as Categorical
    from glfm.kinds.count import Count as Count
    from glfm.kinds.mappings import Transform as Transform
    from glfm.kinds.ordinal import Ordinal as Ordinal
    from glfm.kinds.positive import Positive as Positive
    from glfm.kinds.real import Real as Real
    from glfm.sampling.engine import LocalEngine as LocalEngine
    from glfm.schema import Schema as Schema


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'glfm' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name) if _HOMES[name] else import_module(f"glfm.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "DaskEngine"])
