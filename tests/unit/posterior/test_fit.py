"""One frozen noun: what an estimator holds after a fit."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import glfm
from glfm.errors import DataError
from glfm.posterior.fit import Fit
from glfm.testing import assert_same_draws


def test_it_has_everything_that_a_fit_is(mixed_model):
    fit = mixed_model.fit_
    assert [field.name for field in fields(Fit)][:7] == [
        "settings",
        "schema",
        "frame",
        "problem",
        "chains",
        "draws",
        "seed",
    ]
    assert fit.schema is mixed_model.schema_
    assert fit.draws is mixed_model.draws_
    assert fit.settings["n_draws"] == mixed_model.n_draws
    assert fit.names == list(fit.table.names) == list(mixed_model.feature_names_in_)
    assert fit.rows.x.shape == (fit.table.n_rows, len(fit.problem.names))
    assert len(fit.chains) == mixed_model.n_chains


def test_it_is_frozen(mixed_model):
    with pytest.raises(FrozenInstanceError):
        mixed_model.fit_.draws = mixed_model.draws_


def test_other_draws_and_another_seed_leave_it_alone(mixed_model):
    fit = mixed_model.fit_
    few = fit.with_draws(fit.draws[:3])
    assert len(few.draws) == 3
    assert few.rows is fit.rows
    assert_same_draws(few.draws, fit.draws[:3])
    seed = np.random.SeedSequence(7)
    assert fit.with_seed(seed).seed is seed
    assert fit.seed is not seed


def test_without_rows_one_sentence_says_why(mixed_model, tmp_path):
    bare = glfm.load(mixed_model.save(tmp_path / "bare.glfm", data=False)).fit_
    assert bare.frame is None
    assert bare.chains == ()
    assert bare.names == mixed_model.fit_.names
    assert bare.is_named
    assert bare.problem.facts.spreads == mixed_model.fit_.problem.facts.spreads
    for need in (lambda: bare.table, lambda: bare.rows):
        with pytest.raises(DataError, match="saved with data=False"):
            need()
    assert not hasattr(bare.problem, "x")
