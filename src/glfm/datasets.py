"""Example tables: public ones, read from the directory GLFM_DATA, and generated ones with a known truth."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.column import FloatArray
from glfm.kinds import Kind, find_kind

__all__ = [
    "About",
    "Clinic",
    "Dataset",
    "Images",
    "load_abalone",
    "load_adult",
    "load_counties",
    "load_covertype",
    "load_german_credit",
    "load_heart_cleveland",
    "load_internet_usage",
    "load_mnist_small",
    "load_nesarc",
    "load_nesarc_disorders",
    "load_prostate",
    "load_qsar_biodegradation",
    "load_titanic",
    "load_wine_quality",
    "make_clinic",
    "make_images",
]

# Where each table can be obtained.
_PROVIDERS = {
    "abalone": "the UCI Machine Learning Repository (Abalone)",
    "adult": "the UCI Machine Learning Repository (Adult)",
    "counties": "Vanderbilt Biostatistics (hbiostat.org/data, counties)",
    "covertype": "the UCI Machine Learning Repository (Covertype)",
    "german_credit": "the UCI Machine Learning Repository (Statlog German Credit Data)",
    "heart_cleveland": "the UCI Machine Learning Repository (Heart Disease, Cleveland)",
    "internet_usage": "OpenML (id 981, a survey of Georgia Tech's GVU Center)",
    "mnist_small": "yann.lecun.com/exdb/mnist (MNIST, of which it is a sample)",
    "nesarc": "NIAAA (NESARC Wave 1 public-use file)",
    "nesarc_disorders": "NIAAA (NESARC Wave 1 public-use file)",
    "prostate": "Vanderbilt Biostatistics (hbiostat.org/data, prostate)",
    "qsar_biodegradation": "the UCI Machine Learning Repository (QSAR biodegradation)",
    "titanic": "Vanderbilt Biostatistics (hbiostat.org/data, titanic3)",
    "wine_quality": "the UCI Machine Learning Repository (Wine Quality)",
}
_NOT_MODELLED = {"id", "weight", "split", "date", "redundant"}


class About(NamedTuple):
    """Where a table comes from."""

    title: str
    provider: str
    licence: str


class Dataset(NamedTuple):
    """A public table.

    Attributes
    ----------
    frame
        Levels are strings; missing cells are missing values of pandas.
    schema
        {column: kind}, ready for `GLFM(schema=...)`; ids, weights and the like are "ignore".
    about
        Title, provider and licence.
    """

    frame: pd.DataFrame
    schema: dict[str, Kind | str]
    about: About


class Clinic(NamedTuple):
    """A generated clinic with a known truth.

    Attributes
    ----------
    frame
        The table with missing cells.
    complete
        The table before cells were removed.
    Z
        Which row has which trait, rows x traits.
    traits
        Names of the traits.
    """

    frame: pd.DataFrame
    complete: pd.DataFrame
    Z: NDArray[np.bool_]
    traits: tuple[str, ...]


class Images(NamedTuple):
    """Generated images with a known truth: one row per image, one column per pixel.

    Attributes
    ----------
    frame
        The pixels.
    Z
        Which image has which shape, images x shapes.
    shapes
        The shapes, shapes x 6 x 6.
    """

    frame: pd.DataFrame
    Z: NDArray[np.bool_]
    shapes: FloatArray


# ---- public tables


def _loader(name: str, contents: str) -> Callable[[], Dataset]:
    def load() -> Dataset:
        return _load(name)

    load.__name__ = load.__qualname__ = f"load_{name}"
    load.__doc__ = f"Load {contents}."
    return load


load_abalone = _loader("abalone", "Abalone: 4,177 shells, their sizes and weights")
load_adult = _loader("adult", "Adult: 48,842 people of the US census of 1994")
load_counties = _loader(
    "counties", "counties: 3,141 counties of the United States, their people and how they vote"
)
load_covertype = _loader("covertype", "Covertype: 581,012 patches of forest")
load_german_credit = _loader(
    "german_credit", "Statlog German Credit: 1,000 applicants, with the column types of the paper's authors"
)
load_heart_cleveland = _loader("heart_cleveland", "Heart Disease: 303 patients of the Cleveland Clinic")
load_internet_usage = _loader("internet_usage", "Internet Usage: 10,108 answers to a survey")
load_nesarc = _loader(
    "nesarc", "NESARC Wave 1: 43,093 people, 67 columns of a survey of alcohol and related conditions"
)
load_nesarc_disorders = _loader(
    "nesarc_disorders", "NESARC Wave 1: 43,093 people, their psychiatric disorders and social background"
)
load_prostate = _loader("prostate", "prostate: 502 patients of a cancer trial")
load_qsar_biodegradation = _loader(
    "qsar_biodegradation",
    "QSAR biodegradation: 1,055 chemicals, with the column types of the paper's authors",
)
load_titanic = _loader("titanic", "Titanic: 1,309 passengers")
load_wine_quality = _loader(
    "wine_quality", "Wine Quality: 6,497 wines, with the column types of the paper's authors"
)


def load_mnist_small() -> Dataset:
    """Load 100 handwritten digits of MNIST: a label and 784 pixels from 0 to 255."""
    path = _directory("mnist_small") / "mnist_small.csv.gz"
    names = ["label", *(f"pixel{i}" for i in range(784))]
    dtypes: dict[str, Any] = {"label": "string"}
    frame = pd.read_csv(path, header=None, names=names, dtype=dtypes)
    schema: dict[str, Kind | str] = {name: find_kind("count") for name in names}
    schema["label"] = Kind.from_dict({"kind": "categorical", "levels": list("0123456789")})
    return Dataset(frame, schema, About("MNIST, 100 digits", "LeCun, Cortes and Burges", "not stated"))


def _directory(name: str) -> Path:
    """Return the directory that holds a table; raise `DataError` with its provider if there is none."""
    given = os.environ.get("GLFM_DATA")
    if not given:
        raise DataError(
            f"The table {name!r} is not part of the package: set the environment variable GLFM_DATA to the "
            f"directory that holds it; its original provider is {_PROVIDERS[name]}."
        )
    directory = Path(given)
    if not any(directory.glob(f"{name}.*")):
        raise DataError(
            f"GLFM_DATA is {given!r}, where no table {name!r} is found: put it there with its "
            f"{name}.schema.json; its original provider is {_PROVIDERS[name]}."
        )
    return directory


def _load(name: str) -> Dataset:
    directory = _directory(name)
    described = json.loads((directory / f"{name}.schema.json").read_text(encoding="utf-8"))
    columns = described["columns"]
    path = directory / described["file"]
    if not path.exists():
        path = path.with_name(path.name + ".gz")
    dtypes: dict[str, Any] = {column["name"]: _dtype(column["type"]) for column in columns}
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path).astype(dtypes)
    else:
        # Only empty cells are missing: "NA" and "None" may be levels.
        frame = pd.read_csv(path, dtype=dtypes, keep_default_na=False, na_values=[""])
    source = described["source"]
    about = About(described["title"], source["original_provider"], source["licence"])
    schema = {column["name"]: _kind(column, frame[column["name"]]) for column in columns}
    return Dataset(frame, schema, about)


def _dtype(kind: str) -> str:
    return {"real": "float64", "positive": "float64", "count": "Int64"}.get(kind, "string")


def _kind(column: dict[str, Any], values: pd.Series[Any]) -> Kind | str:
    if column.get("role") in _NOT_MODELLED:
        return "ignore"
    if column["type"] not in ("categorical", "ordinal"):
        return find_kind(column["type"])
    # All levels of the table, so that none is unseen after cells are hidden.
    levels = column.get("levels") or sorted(values.dropna().unique())
    return Kind.from_dict({"kind": column["type"], "levels": levels})


# ---- generated tables

_TRAITS = {"infection": 0.2, "heart failure": 0.18, "chronic pain": 0.22, "heavy smoker": 0.16}
_WARDS = ("general", "cardiology", "surgery", "lung")
_PAIN = ("none", "mild", "moderate", "severe")
_OFTEN = ("never", "sometimes", "often")

# Per pseudo-column: its mean in a row without traits, then the weight of each trait, in noise units.
_CLINIC = {
    "bp_change": (0.0, -1.0, 3.0, 0.0, 2.0),
    "weight_change": (0.0, -2.5, 2.5, 0.0, 0.0),
    "crp": (-0.5, 3.5, 0.0, 0.0, 0.0),
    "bnp": (0.0, 0.0, 3.5, 0.0, 0.0),
    "visits": (0.0, 1.0, 0.0, 3.0, 0.0),
    "drugs": (0.0, 0.0, 2.0, 2.5, 0.0),
    "ward=cardiology": (-0.5, 0.0, 3.0, -1.0, 0.0),
    "ward=surgery": (-0.5, 0.0, -1.0, 3.0, 0.0),
    "ward=lung": (-0.5, 1.0, -1.0, -1.0, 3.0),
    "sex=male": (-0.3, 0.0, 0.0, -1.0, 1.5),
    "smoker": (-1.2, 0.0, 0.0, 0.0, 4.0),
    "pain": (-0.5, 0.0, 0.0, 3.5, 0.0),
    "fatigue": (-0.5, 2.5, 1.5, 0.0, 0.0),
    "cough": (-0.8, 2.0, 0.0, 0.0, 3.0),
}


def make_clinic(n_rows: int = 400, seed: int = 0, missing: float = 0.15) -> Clinic:
    """Generate a clinic-like table of all five kinds from four hidden yes-or-no traits.

    Rows follow the model: the pseudo-observations of a column are the sum of the weights of the row's traits
    plus noise, and are mapped to a value of its kind.

    Parameters
    ----------
    n_rows
        Number of patients.
    seed
        The same seed gives the same table.
    missing
        Share of the cells that are removed, completely at random.
    """
    if not 0.0 <= missing < 1.0:
        raise DataError(f"missing is a share of cells from 0 to less than 1, not {missing!r}.")
    rng = _generator(n_rows, seed)
    Z = rng.random((n_rows, len(_TRAITS))) < np.array(list(_TRAITS.values()))
    weights = np.array(list(_CLINIC.values())).T
    Y = weights[0] + Z @ weights[1:] + rng.standard_normal((n_rows, len(_CLINIC)))
    y = dict(zip(_CLINIC, Y.T, strict=True))
    ward = np.column_stack([rng.standard_normal(n_rows), *(y[f"ward={name}"] for name in _WARDS[1:])])
    complete = pd.DataFrame(
        {
            "bp_change": np.round(6.0 * y["bp_change"], 1),
            "weight_change": np.round(1.2 * y["weight_change"], 2),
            "crp": _detected(4.0 * _softplus(1.5 * y["crp"]), 1.0),
            "bnp": np.round(60.0 * _softplus(1.2 * y["bnp"]), 1),
            "visits": pd.array(np.floor(1.5 * _softplus(y["visits"])), dtype="Int64"),
            "drugs": pd.array(np.floor(2.0 * _softplus(0.8 * y["drugs"])), dtype="Int64"),
            "ward": _levels(ward.argmax(axis=1), _WARDS, ordered=False),
            "sex": pd.array(np.where(y["sex=male"] > 0, "male", "female"), dtype="string"),
            "smoker": pd.array(y["smoker"] > 0, dtype="boolean"),
            "pain": _levels(np.digitize(y["pain"], (0.0, 1.2, 2.4)), _PAIN),
            "fatigue": _levels(np.digitize(y["fatigue"], (0.0, 1.5)), _OFTEN),
            "cough": _levels(np.digitize(y["cough"], (0.0, 1.5)), _OFTEN),
        }
    )
    complete.index = pd.Index([f"P{n + 1:04d}" for n in range(n_rows)], name="patient")
    return Clinic(complete.mask(rng.random(complete.shape) < missing), complete, Z, tuple(_TRAITS))


def _generator(n_rows: int, seed: int) -> np.random.Generator:
    if n_rows < 1 or seed < 0:
        raise DataError(f"n_rows starts at 1 and seed at 0, but they are {n_rows!r} and {seed!r}.")
    return np.random.default_rng(seed)


def _softplus(v: FloatArray) -> FloatArray:
    return np.logaddexp(0.0, v)


def _detected(x: FloatArray, limit: float) -> FloatArray:
    """Return laboratory values, 0 below the limit of detection."""
    return np.where(x < limit, 0.0, np.round(x, 1))


def _levels(codes: NDArray[np.intp], names: tuple[str, ...], ordered: bool = True) -> pd.Series[Any]:
    dtype = pd.CategoricalDtype(list(names), ordered=ordered)
    return pd.Series(np.array(names)[codes], dtype=dtype)


# One shape in each quarter, of at least seven pixels, so that noise of half its height does not hide it.
_SHAPES = (
    ("#.#...", "###...", "#.#...", "......", "......", "......"),
    ("...###", "...#.#", "...###", "......", "......", "......"),
    ("......", "......", "......", "#.#...", "#.#...", "###..."),
    ("......", "......", "......", "...###", "....#.", "...###"),
)


def make_images(n_rows: int = 500, noise: float = 0.5, seed: int = 0) -> Images:
    """Generate the paper's toy: 6 x 6 images, sums of some of four binary shapes, with Gaussian noise.

    Parameters
    ----------
    n_rows
        Number of images.
    noise
        Standard deviation of the noise; a pixel of a shape is 1.
    seed
        The same seed gives the same images.
    """
    if not noise >= 0.0:
        raise DataError(f"noise is a standard deviation, not {noise!r}.")
    rng = _generator(n_rows, seed)
    shapes = np.array([[[cell == "#" for cell in line] for line in shape] for shape in _SHAPES], dtype=float)
    Z = rng.random((n_rows, len(shapes))) < 0.5
    pixels = Z @ shapes.reshape(len(shapes), -1) + noise * rng.standard_normal((n_rows, 36))
    names = [f"pixel{row}{column}" for row in range(6) for column in range(6)]
    return Images(pd.DataFrame(pixels, columns=pd.Index(names)), Z, shapes)
