"""Dask DataFrames as tables of a fit, in threads; tests/end_to_end/test_cluster.py fits them on a cluster."""

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.datasets import make_clinic
from glfm.errors import DataError
from tables import mixed

WITHOUT = "dask and distributed are not installed: the extra [dask]"
pytest.importorskip("distributed", reason=WITHOUT)
dask = pytest.importorskip("dask", reason=WITHOUT)
dd = pytest.importorskip("dask.dataframe", reason=WITHOUT)

SETTINGS = {"n_chains": 1, "n_warmup": 2, "n_draws": 1, "thin": 1, "random_state": 3, "progress": False}


def fit(data, engine=None, **settings) -> glfm.GLFM:
    return glfm.GLFM(**{**SETTINGS, **settings}, engine=engine or glfm.LocalEngine()).fit(data)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda part: part.drop(columns="dose"),
            "Partition 1 has not got a column 'dose', unlike partition 0",
        ),
        (lambda part: part.assign(age=1.0), "Partition 1 has got a column 'age', unlike partition 0"),
        (lambda part: part[part.columns[::-1]], "Partition 1 has its columns in another order"),
        (lambda part: part.assign(change="many"), "'change' is of type float in partition 0 but string in"),
        (
            lambda part: part.assign(pain=part["pain"].cat.rename_categories({"mild": "some"})),
            r"'pain' has the levels \['none', 'mild', .* in partition 0 but \['none', 'some', ",
        ),
    ],
    ids=["column lost", "column more", "order", "type", "levels"],
)
def test_partitions_that_differ_are_refused(change, sentence):
    frame = mixed()
    parts = [frame.iloc[:20], change(frame.iloc[20:].copy())]
    table = dd.from_delayed([dask.delayed(part) for part in parts], meta=frame.iloc[:0], verify_meta=False)
    with pytest.raises(DataError, match=sentence):
        fit(table)


def test_a_cell_that_a_kind_refuses_names_its_partition():
    frame = mixed()
    schema = {**glfm.Schema.infer(frame), "change": glfm.Positive(shift=0.0, scale=1.0, unit=1.0)}
    with pytest.raises(DataError, match=r"Partition \d: column 'change' is positive but holds -"):
        fit(dd.from_pandas(frame, npartitions=2, sort=False), schema=glfm.Schema(schema))


def test_an_imputer_of_partitions_refines_nothing():
    table = dd.from_pandas(make_clinic(120).frame, npartitions=2)
    with dask.config.set(scheduler="threads"):
        imputer = glfm.Imputer(n_chains=1, n_warmup=3, n_draws=3, random_state=0).fit(table)
        assert not imputer.model_.impute().compute().isna().any().any()
    assert imputer.model_.draws_[0].scores is not None
    assert set(imputer.model_.refinement()["learner"]) == {"none"}


def test_a_sample_knows_what_columns_can_hold(monkeypatch):
    """Extremes, zeros and rare levels are in it, wherever they are."""
    monkeypatch.setattr("glfm.distributed.partitioned_table._MOST_ROWS", 10)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.standard_normal(500), "c": np.arange(500.0) % 7 + 1, "l": ["a"] * 500})
    frame.loc[123, "x"], frame.loc[77, "c"], frame.loc[333, "l"] = -99.0, 0.0, "rare"
    model = fit(dd.from_pandas(frame, npartitions=3), glfm.LocalEngine(2))
    assert model.schema_["l"].levels == ("a", "rare")
    assert model.schema_["c"].name == "count"
