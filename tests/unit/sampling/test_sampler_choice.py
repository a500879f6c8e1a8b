"""The scale rule: what is learnt from a column puts its pseudo-values on the scale of the priors.

For every number column of every data set: the mean of the pseudo-values lies in [-1, 1], their standard
deviation in [0.5, 2], and the mapping makes no outlier: a pseudo-value is at most 6, or else at most 1.5
times as far out as the z-score of the value itself. (Zeros of a positive column and counts are intervals;
the point that stands for them in learning is taken.)
"""

import gzip
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from glfm.frames.column import Column
from glfm.kinds import KINDS, find_kind
from glfm.kinds.numeric import NumericKind
from glfm.kinds.positive import Positive

_FAR, _FARTHER = 6.0, 1.5
NUMBERS = {name for name, cls in KINDS.items() if cls.is_number}
NAMES = (
    "abalone",
    "adult",
    "counties",
    "covertype",
    "german_credit",
    "heart_cleveland",
    "internet_usage",
    "nesarc",
    "nesarc_disorders",
    "prostate",
    "qsar_biodegradation",
    "titanic",
    "wine_quality",
)


@cache
def read_numbers(directory: Path, name: str) -> dict[str, tuple[str, Column]]:
    """Return the kind and the values of every number column of a data set, as its schema types them."""
    schema = json.loads((directory / f"{name}.schema.json").read_text())
    columns = schema["columns"]
    if isinstance(columns, list):
        columns = {column["name"]: column for column in columns}
    types = {column: entry["type"] for column, entry in columns.items() if entry["type"] in NUMBERS}
    file = next(file for file in directory.glob(f"{name}.*") if not file.name.endswith(".schema.json"))
    if file.suffix == ".parquet":
        frame = pd.read_parquet(file, columns=list(types))
    else:
        frame = pd.read_csv(file, usecols=list(types), low_memory=False)
    return {
        column: (type, Column(column, frame[column].to_numpy(dtype=np.float64, na_value=np.nan), "float"))
        for column, type in types.items()
    }


def violations(kind: NumericKind, x: np.ndarray) -> list[str]:
    """Return in which ways the pseudo-values of observed `x` break the rule."""
    w = kind.pseudo(x)
    points = kind.representatives(x)
    z = (points - points.mean()) / (points.std() or 1.0)
    far = np.abs(w) > np.maximum(_FAR, _FARTHER * np.abs(z))
    broken = []
    if abs(w.mean()) > 1.0:
        broken.append(f"mean {w.mean():.2f}")
    if not 0.5 <= w.std() <= 2.0:
        broken.append(f"sd {w.std():.2f}")
    if far.any():
        broken.append(f"{x[far][0]:g} is sent to {w[far][0]:.1f} but is only {z[far][0]:.1f} sd away")
    return broken


@pytest.mark.parametrize("name", NAMES)
def test_scale_rule(data_dir: Path, name: str) -> None:
    broken = {}
    columns = read_numbers(data_dir, name)
    assert columns
    for column, (type, values) in columns.items():
        kind = find_kind(type).learn(values)
        assert isinstance(kind, NumericKind)
        found = violations(kind, kind.encode(values)[~values.missing])
        if found:
            broken[column] = found
    assert not broken


def test_every_data_set_is_checked(data_dir: Path) -> None:
    assert {file.name.removesuffix(".schema.json") for file in data_dir.glob("*.schema.json")} == set(NAMES)


def test_pixels_follow_the_rule(data_dir: Path) -> None:
    """The digits have no schema: a label and 784 counts, most of them mostly or always zero."""
    with gzip.open(data_dir / "mnist_small.csv.gz", "rt") as file:
        pixels = np.loadtxt(file, delimiter=",")[:, 1:]
    for type in ("count", "positive"):
        for x in pixels.T[::7]:
            kind = find_kind(type).learn(Column("pixel", x, "float"))
            broken = violations(kind, x)
            # A constant column has no spread of its own.
            assert not broken or (np.ptp(x) == 0 and broken == ["sd 0.00"])


def test_rule_notices_the_toolbox(data_dir: Path) -> None:
    """Negative control: shift by the minimum less 1e-6 and the smallest value is sent far out."""
    _, values = read_numbers(data_dir, "wine_quality")["alcohol"]
    x = values.observed
    kind = Positive(mapping="softplus", unit=1.0, shift=0.0, scale=1.0)
    assert not violations(Positive().learn(values), x)
    assert violations(kind, x - x.min() + 1e-6)


def test_rule_notices_a_unit_that_is_too_large(data_dir: Path) -> None:
    """Negative control: a logarithm of these counts makes outliers of the smallest."""
    type, values = read_numbers(data_dir, "covertype")["hillshade_noon"]
    kind = find_kind(type)
    assert isinstance(kind, NumericKind)
    assert violations(replace(kind, unit=1e6).learn(values), values.observed)
