"""How properties are tried on many inputs, and what must hold of a table: it works, or it is refused."""

import faulthandler
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import glfm
from glfm.errors import FitWarning, GLFMError

_PATIENCE = 300  # seconds after which one input counts as a hang, and the process ends with a traceback

# Of a table as a whole: these sentences have no column to name.
_OF_TABLES = (
    "The table has no columns",
    "The table has no rows",
    "The table is not one that can be read",
    "Two columns have the name",
    "The columns ",
    "An array must have two dimensions",
    "The rows of the list differ in length",
    "A table is a ",
    "A DataFrame ",
    "Every column is ignored",
)


def examples(n):
    """Run a property on `n` inputs, the same in every run; GLFM_FUZZ_SEED gives others."""
    chosen = settings(max_examples=n, deadline=None, database=None, suppress_health_check=list(HealthCheck))

    def decorate(test):
        return seed(int(os.environ.get("GLFM_FUZZ_SEED", "0")))(chosen(test))

    return decorate


def sizes(few, many):
    """Parametrise a test with a number of inputs: few in every run, many in `make test-reliability`.

    GLFM_FUZZ_COUNT says how many is many.
    """
    many = int(os.environ.get("GLFM_FUZZ_COUNT", many))
    thorough = pytest.param(many, id="many", marks=pytest.mark.reliability)
    several = pytest.mark.parametrize("n_inputs", [pytest.param(few, id="few"), thorough])
    # Said of an input that has failed, in the place of its failure.
    whole = pytest.mark.filterwarnings("ignore:Generating overly large repr")

    return lambda test: whole(several(test))


def tried(n, strategy, body):
    """Run `body` on `n` inputs of a strategy; return how many of them worked, and how many were refused."""
    outcomes = Counter()

    @examples(n)
    @given(strategy)
    def check(value):
        faulthandler.dump_traceback_later(_PATIENCE, exit=True, file=sys.__stderr__)
        try:
            outcomes[body(value)] += 1
        finally:
            faulthandler.cancel_dump_traceback_later()

    check()
    return outcomes


# ---- what must hold


def fit_impute_report(data, names, same):
    """Fit a table, complete it and write its report; return "worked", or "refused" for a good sentence.

    A column that is refused is ignored from then on. `same` raises if the completed table is not the original
    but for its holes.
    """
    ignored = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        while True:
            model = glfm.GLFM(
                ignored, n_chains=1, n_warmup=2, n_draws=2, thin=1, random_state=0, progress=False
            )
            try:
                model.fit(data)
                break
            except GLFMError as error:
                message = str(error)
            column = refused_column(message, names)
            if column is None:
                return "refused"
            if "half a surrogate pair in its name" in message:
                return "refused"
            assert column not in ignored
            ignored[column] = "ignore"
        completed, again = model.impute(), model.impute(data)
        with TemporaryDirectory() as directory:
            page = model.report(Path(directory) / "report.html")
            assert page.stat().st_size > 1000
    check_states(model)
    same(completed, model.schema_)
    same(again, model.schema_)
    return "worked in part" if ignored else "worked"


def refused_column(message, names):
    """Return which column a sentence names; None: it is about the whole table."""
    assert message.endswith((".", "?")), message
    if message.startswith(_OF_TABLES):
        return None
    named = [str(name) for name in names if message.startswith(f"Column {str(name)!r}")]
    assert named, message
    column = max(named, key=len)
    assert len(message) - len(repr(column)) < 1000, message
    return column


def check_states(model):
    """No number of any chain or draw is NaN or infinite."""
    for chain in model.fit_.chains:
        state = chain.state
        for part in (state.Y, state.B, state.variance, np.array(state.alpha), *state.theta, *state.step):
            assert np.isfinite(part).all()
        assert (state.variance > 0.0).all()
    for draw in model.draws_:
        assert np.isfinite(draw.weights).all()
        assert np.isfinite(draw.log_likelihood)
