"""Real tables: default settings finish without a numerical warning and beat independent columns."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import glfm
from glfm.frames.column import Column

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def heldout():
    sys.path.insert(0, str(BENCHMARKS))
    import heldout

    yield heldout
    sys.path.remove(str(BENCHMARKS))


def test_quick_fit_of_prostate_beats_independent_columns(data_dir, heldout):
    row = heldout.score("prostate", 0.1, n_chains=2, n_warmup=100, n_draws=25, progress=False)
    assert row["glfm"] > row["independent"] + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("name", ["german_credit", "prostate", "counties", "wine_quality"])
def test_default_settings_beat_independent_columns(data_dir, heldout, name, missing):
    row = heldout.score(name, missing, progress=False)
    assert row["glfm"] > row["independent"]


COLUMNS = [
    ("german_credit", "credit_amount_dm"),
    ("german_credit", "duration_months"),
    ("prostate", "ap"),
    ("wine_quality", "citric_acid"),
    ("wine_quality", "residual_sugar"),
    ("titanic", "fare"),
]


@pytest.mark.parametrize(("table", "name"), COLUMNS)
def test_a_quantile_mapping_predicts_a_column_alone_better_than_its_default(data_dir, table, name):
    frame, schema, _ = getattr(glfm.datasets, f"load_{table}")()
    x = frame[name].dropna().to_numpy(dtype=np.float64)
    x = x[np.random.default_rng(0).permutation(x.size)]
    unit = np.diff(np.unique(x)).min()
    n, scores = round(0.7 * x.size), {}
    for mapping in (None, "quantile"):
        kind = replace(glfm.kinds.find_kind(schema[name]), mapping=mapping)
        kind = kind.learn(Column(name, x[:n], "float"))
        location, variance = np.zeros((x.size - n, 1)), 1.0 - kind.aux_variance
        ends = [kind.cdf(x[n:] + end, location, variance, np.empty(0)) for end in (-0.5 * unit, 0.5 * unit)]
        scores[mapping] = np.log(np.maximum(ends[1] - ends[0], 1e-12)).mean()
    assert scores["quantile"] > scores[None]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["german_credit", "prostate", "wine_quality", "titanic"])
def test_quantile_columns_are_fitted_and_filled(data_dir, table):
    frame, schema, _ = getattr(glfm.datasets, f"load_{table}")()
    kinds = {name: glfm.kinds.find_kind(kind) for name, kind in schema.items() if kind != "ignore"}
    kinds = {name: replace(k, mapping="quantile") if k.is_number else k for name, k in kinds.items()}
    frame = frame[list(kinds)].sample(300, random_state=0)
    settings = {"n_chains": 1, "n_warmup": 40, "n_draws": 10, "random_state": 0, "progress": False}
    model = glfm.GLFM(kinds, **settings).fit(frame)
    assert not model.impute().isna().any().any()
    assert (np.isfinite(model.log_likelihood(frame)) == frame.notna()).all().all()
    numbers = [name for name, kind in kinds.items() if kind.is_number]
    lower, upper = model.predictive().interval(0.9)
    seen = frame[numbers].notna()
    inside = (frame[numbers] >= lower[numbers]) & (frame[numbers] <= upper[numbers])
    assert 0.85 < inside[seen].stack().mean() <= 1.0
