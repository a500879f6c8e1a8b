"""Public tables through GLFM_DATA, and generated ones with a known truth."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from glfm import datasets
from glfm.errors import DataError
from glfm.kinds import Kind
from glfm.schema import Schema

LOADERS = [name for name in datasets.__all__ if name.startswith("load_")]
SMALL = ["german_credit", "heart_cleveland", "mnist_small", "prostate", "qsar_biodegradation", "titanic"]


@pytest.fixture(scope="module")
def clinic() -> datasets.Clinic:
    return datasets.make_clinic()


# ---- public tables


@pytest.mark.parametrize("loader", LOADERS)
def test_without_directory_the_provider_is_named(loader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLFM_DATA", raising=False)
    with pytest.raises(DataError, match=r"set the environment variable GLFM_DATA .* provider is \w+"):
        getattr(datasets, loader)()


def test_directory_without_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GLFM_DATA", str(tmp_path))
    with pytest.raises(DataError, match="no table 'titanic' is found"):
        datasets.load_titanic()


@pytest.mark.parametrize("loader", [name for name in LOADERS if name != "load_mnist_small"])
def test_table_is_what_its_description_says(loader: str, data_dir: Path) -> None:
    frame, schema, about = getattr(datasets, loader)()
    name = loader.removeprefix("load_")
    described = json.loads((data_dir / f"{name}.schema.json").read_text(encoding="utf-8"))
    assert len(frame) == described["rows"]
    assert list(frame.columns) == list(schema) == [column["name"] for column in described["columns"]]
    assert about.title == described["title"]
    assert all(about)
    for column in described["columns"]:
        values, kind = frame[column["name"]], schema[column["name"]]
        assert values.isna().sum() == column["missing"]
        if kind == "ignore":
            assert column["role"] in ("id", "weight", "split", "date", "redundant")
            continue
        assert isinstance(kind, Kind)
        assert kind.name == column["type"]
        if column["type"] in ("categorical", "ordinal"):
            assert values.dtype == "string"
            assert set(values.dropna()) <= set(getattr(kind, "levels", ()))
        if column["type"] == "ordinal":
            assert list(getattr(kind, "levels", ())) == column["levels"]


@pytest.mark.parametrize("name", SMALL)
def test_schema_fits_its_table(name: str, data_dir: Path) -> None:
    table = getattr(datasets, f"load_{name}")()
    inferred = Schema.infer(table.frame, table.schema)
    assert set(inferred.reasons.values()) == {"given"}
    assert inferred.ignored == [column for column, kind in table.schema.items() if kind == "ignore"]


def test_every_stored_table_has_a_loader(data_dir: Path) -> None:
    stored = {path.name.removesuffix(".schema.json") for path in data_dir.glob("*.schema.json")}
    assert {f"load_{name}" for name in stored} <= set(LOADERS)


def test_mnist(data_dir: Path) -> None:
    frame, schema, _ = datasets.load_mnist_small()
    assert frame.shape == (100, 785)
    assert frame["label"].isin(list("0123456789")).all()
    assert frame.drop(columns="label").to_numpy().max() <= 255
    assert list(schema) == list(frame.columns)


# ---- generated tables


def test_clinic_has_all_kinds_and_natural_types(clinic: datasets.Clinic) -> None:
    schema = Schema.infer(clinic.frame)
    kinds = {name: kind.name for name, kind in schema.kinds.items()}
    assert not schema.ignored
    assert kinds == {
        "bp_change": "real",
        "weight_change": "real",
        "crp": "positive",
        "bnp": "positive",
        "visits": "count",
        "drugs": "count",
        "ward": "categorical",
        "sex": "categorical",
        "smoker": "categorical",
        "pain": "ordinal",
        "fatigue": "ordinal",
        "cough": "ordinal",
    }
    assert clinic.frame.dtypes.equals(clinic.complete.dtypes)
    assert clinic.frame["visits"].dtype == "Int64"
    assert clinic.frame["pain"].cat.ordered
    assert (clinic.complete["crp"] == 0).any()


def test_clinic_holes_hide_the_truth_and_nothing_else(clinic: datasets.Clinic) -> None:
    holes = clinic.frame.isna()
    assert abs(holes.to_numpy().mean() - 0.15) < 0.03
    assert not clinic.complete.isna().any().any()
    pd.testing.assert_frame_equal(clinic.complete.mask(holes), clinic.frame)
    assert clinic.Z.shape == (400, len(clinic.traits))
    assert clinic.Z.dtype == np.bool_


def test_clinic_traits_matter(clinic: datasets.Clinic) -> None:
    infected = clinic.Z[:, clinic.traits.index("infection")]
    crp = clinic.complete["crp"]
    assert crp[infected].mean() > crp[~infected].mean() + 2 * crp[~infected].std()


def test_same_seed_same_clinic(clinic: datasets.Clinic) -> None:
    again, other = datasets.make_clinic(), datasets.make_clinic(seed=1)
    pd.testing.assert_frame_equal(again.frame, clinic.frame)
    assert not other.complete.equals(clinic.complete)
    assert not datasets.make_clinic(50, missing=0.0).frame.isna().any().any()


def test_images_are_sums_of_shapes() -> None:
    frame, Z, shapes = datasets.make_images(100, noise=0.0)
    assert frame.shape == (100, 36)
    assert shapes.shape == (4, 6, 6)
    np.testing.assert_array_equal(frame.to_numpy(), Z @ shapes.reshape(4, 36))
    noisy = datasets.make_images(500).frame.to_numpy() - datasets.make_images(500, noise=0.0).frame.to_numpy()
    assert abs(noisy.std() - 0.5) < 0.02


@pytest.mark.parametrize("settings", [{"n_rows": 0}, {"seed": -1}])
def test_bad_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(DataError, match="n_rows starts at 1 and seed at 0"):
        datasets.make_clinic(**settings)
    with pytest.raises(DataError, match="n_rows starts at 1 and seed at 0"):
        datasets.make_images(**settings)


def test_bad_shares_are_refused() -> None:
    with pytest.raises(DataError, match="missing is a share"):
        datasets.make_clinic(missing=1.0)
    with pytest.raises(DataError, match="noise is a standard deviation"):
        datasets.make_images(noise=-1.0)
