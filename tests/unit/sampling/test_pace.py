"""What a time budget allows."""

import time

import numpy as np
import pytest

from glfm.frames.frame import Frame
from glfm.sampling.chain import Chain
from glfm.sampling.pace import Budget, affordable_rows, measure, sampled_rows, shortened
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem
from glfm.schema import Schema
from glfm.schema.encoding import encode
from tables import mixed

PLANNED = Schedule(200, 100, 4)


@pytest.fixture(scope="module")
def problem() -> LocalProblem:
    frame = Frame.read(mixed(900))
    schema = Schema.infer(frame)
    return LocalProblem(schema.kinds, encode(frame, schema.kinds), Priors(), None)


class TestShortened:
    def test_warmup_that_has_time_goes_on(self):
        assert shortened(PLANNED, 10, elapsed=3.0, seconds=10.0, per_sweep=0.3) == PLANNED

    def test_after_warmup_nothing_changes(self):
        assert shortened(PLANNED, 200, elapsed=9.0, seconds=10.0, per_sweep=0.05) == PLANNED

    def test_draws_get_the_rest(self):
        short = shortened(PLANNED, 10, elapsed=3.5, seconds=10.0, per_sweep=0.1)
        assert (short.n_warmup, short.n_draws, short.thin) == (10, 65, 1)

    def test_draws_are_spaced_no_further_than_planned(self):
        short = shortened(PLANNED, 100, elapsed=4.0, seconds=10.0, per_sweep=0.001)
        assert short == Schedule(100, 100, 4)
        assert shortened(PLANNED, 100, 4.0, 10.0, 0.02) == Schedule(100, 100, 3)

    def test_too_little_for_draws(self):
        assert shortened(PLANNED, 1, elapsed=9.8, seconds=10.0, per_sweep=0.1) == PLANNED


class TestBudget:
    def test_no_limit(self):
        assert Budget(None, time.monotonic()).part(0.5).left is None

    def test_what_is_left(self):
        budget = Budget(100.0, time.monotonic() - 40.0)
        assert budget.left == pytest.approx(60.0, abs=5.0)
        assert budget.part(0.5).left == pytest.approx(30.0, abs=5.0)

    def test_never_negative(self):
        assert Budget(1.0, time.monotonic() - 40.0).left > 0.0


class TestRows:
    def test_no_limit_means_all_rows(self, problem):
        n_rows, needed = affordable_rows(problem, 0, PLANNED, 4, 2, Budget(None, 0.0))
        assert n_rows == problem.n_rows
        assert needed > 0.0

    def test_enough_time_means_all_rows(self, problem):
        assert affordable_rows(problem, 0, PLANNED, 4, 2, Budget(1e6, time.monotonic()))[0] == 900

    def test_little_time_means_some_rows(self, problem):
        long = Schedule(10**6, 10**6)
        n_rows, needed = affordable_rows(problem, 0, long, 4, 2, Budget(3.0, time.monotonic()))
        assert n_rows == 500  # no sample is smaller
        assert needed > 1000.0

    def test_cost_grows_with_rows_and_sweeps(self, problem):
        pace = measure(problem, 0, 0.1)
        assert pace.n_rows == 900
        assert pace.sweep > 0.0
        assert pace.load >= 1.0
        assert pace.processor(1800, 10) == pytest.approx(2 * pace.processor(900, 10))
        assert pace.processor(900, 20) > pace.processor(900, 10)

    def test_sampled_rows(self):
        seed = np.random.SeedSequence(1)
        rows = sampled_rows(100, 30, seed)
        assert rows.size == np.unique(rows).size == 30
        assert (np.diff(rows) > 0).all()
        assert 0 <= rows[0] <= rows[-1] < 100
        assert (rows == sampled_rows(100, 30, np.random.SeedSequence(1))).all()
        assert (rows != sampled_rows(100, 30, np.random.SeedSequence(2))).any()

    def test_a_start_that_compiles_is_timed_again(self, problem, monkeypatch):
        """Compilation, which happens once, would be multiplied by the rows."""
        monkeypatch.setattr("glfm.sampling.collapsed.CollapsedSampler.is_compiled", False)
        made = []

        def slow_at_first(*args, **kwargs):
            made.append(args)
            end = time.thread_time() + (1.0 if len(made) == 1 else 0.0)
            while time.thread_time() < end:
                pass
            return Chain(*args, **kwargs)

        monkeypatch.setattr("glfm.sampling.pace.Chain", slow_at_first)
        assert measure(problem, 0, 0.1).start < 0.9
        assert len(made) == 2
