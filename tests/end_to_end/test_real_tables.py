"""Real tables: default settings finish without a numerical warning and beat independent columns."""

import sys
from pathlib import Path

import pytest

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
