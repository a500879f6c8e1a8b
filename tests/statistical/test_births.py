"""Births and deaths of whole features, as the only step that changes their number, against enumeration."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import glfm.sampling.births
from glfm.kernels.parallel import draw_log_odds
from glfm.kernels.random import fork
from glfm.kinds import KINDS
from glfm.kinds.categorical import Categorical
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.messages import BirthMessage, FitMessage, FittedFeature, FlipMessage
from glfm.sampling.parallel import ParallelSweep, shard_bounds
from glfm.sampling.parameters import draw_alpha, draw_weights, given_of
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.shard import Shard
from glfm.sampling.shard_group import LocalShards
from glfm.sampling.state import State
from glfm.testing import visit

from .checks import N_BATCHES, check
from .tables import EVERYTHING, TABLES, but_first_slow, posterior_of, simulated

pytestmark = pytest.mark.statistical

FEW, MANY = 3_000, 30_000
N_TIMES = 2  # in a sweep
REFERENCE = TABLES["real, noise fixed"]
SHARED = "real, bias"  # a bias that features which all rows have may share
SOME = [
    EVERYTHING,
    "real, noise fixed",
    SHARED,
    "categorical, rare levels",
    "ordinal, bias, a pinned row, a hole",
]


class OnlyBirths:
    """Sweeps in which births and deaths alone change the number of features.

    Rows flip only features that another row of their shard has.
    """

    def __init__(self, problem: LocalProblem, n_shards: int = 1) -> None:
        self.problem = problem
        self._bounds = shard_bounds(problem.n_rows, n_shards)
        self._parts = [problem.part(*bounds) for bounds in self._bounds]

    def sweep(self, state: State) -> None:
        """Move `state` by one sweep."""
        problem = self.problem
        shards = [
            Shard(part, state.Z[begin:end], state.Y[begin:end])
            for part, (begin, end) in zip(self._parts, self._bounds, strict=True)
        ]
        group = LocalShards(shards)
        steps = ParallelSweep(problem, group)
        sums = steps.sums(state, given_of(problem, state))
        draw_alpha(problem, state)
        draw_weights(problem, state, sums.ZZ, sums.ZY, sums.squares)
        steps.move_scales(state, False)
        given = given_of(problem, state)
        for _ in range(N_TIMES):
            steps.births(state, given)
        group.call_each(Shard.flip_cells_out, self._messages(state, group.call(Shard.count, state.width)))
        room = max(shard.Z.shape[1] for shard in shards)
        Z = np.zeros((problem.n_rows, room), dtype=np.uint8)
        for (begin, end), shard in zip(self._bounds, shards, strict=True):
            Z[begin:end, : shard.Z.shape[1]] = shard.Z
        state.Z = Z
        state.sweep += 1

    def _messages(self, state: State, counts: list[Any]) -> list[FlipMessage]:
        """Return messages by which no shard is the guest shard."""
        problem, bias = self.problem, int(self.problem.priors.bias)
        log_odds = np.zeros(state.width)
        draw_log_odds(state.rng, np.sum(counts, axis=0)[bias:], problem.n_rows, log_odds[bias:])
        given = given_of(problem, state)
        return [
            FlipMessage(
                rng=fork(state.rng),
                weights=state.B * given.inv_sd,
                log_odds=log_odds,
                is_guest=False,
                elsewhere=np.zeros(state.width, dtype=np.int64),
                given=given,
            )
            for _ in counts
        ]


def scores(problem: LocalProblem, n_shards: int, n_sweeps: int, seed: int) -> pd.DataFrame:
    posterior = posterior_of(problem)
    sampler = partial(OnlyBirths, n_shards=n_shards)
    return posterior.scores(visit(problem, posterior, n_sweeps, seed=seed, make_sampler=sampler), N_BATCHES)


@pytest.mark.parametrize("table", SOME)
def test_chain_has_the_enumerated_posterior(table: str) -> None:
    check(scores(TABLES[table], 1, FEW, seed=2))


def test_chain_of_three_shards_has_the_enumerated_posterior() -> None:
    check(scores(TABLES[EVERYTHING], 3, FEW, seed=3))


@pytest.mark.parametrize("table", but_first_slow(["categorical, two levels", "count, bias, a hole"]))
def test_first_decisions_change_nothing(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no margin, all births and deaths are judged by the rows of the fit first."""
    monkeypatch.setattr(glfm.sampling.births, "MARGIN", 0.0)
    monkeypatch.setattr(glfm.sampling.births, "TRUST", 1.0)
    check(scores(TABLES[table], 1, FEW, seed=2))


@pytest.mark.slow
@pytest.mark.parametrize("n_shards", [1, 3])
@pytest.mark.parametrize("table", TABLES)
def test_long_chain_has_the_enumerated_posterior(table: str, n_shards: int) -> None:
    check(scores(TABLES[table], n_shards, MANY, seed=3))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_long_chain_of_every_kind_has_the_enumerated_posterior(kind: str) -> None:
    check(scores(simulated(kind), 1, MANY, seed=4))


def test_births_without_one_over_their_probability_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = glfm.sampling.births.log_prior

    def wrong(weights: Any, share: float, *args: float) -> float:
        return right(weights, share, *args) + float(np.log(share))

    monkeypatch.setattr(glfm.sampling.births, "log_prior", wrong)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(REFERENCE, 1, FEW, seed=1))


def test_a_bias_that_is_shared_too_often_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = glfm.sampling.births.log_shares
    monkeypatch.setattr(glfm.sampling.births, "log_shares", lambda *args: right(*args) + np.log(3.0))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(TABLES[SHARED], 1, FEW, seed=1))


def test_births_that_never_leave_their_seed_out_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Shard.judge_birth

    def wrong(shard: Shard, message: BirthMessage) -> tuple[float, int, bool]:
        found = right(shard, message)
        while not found[2]:
            message.rng[:] = fork(message.rng)
            found = right(shard, message)
        return found

    monkeypatch.setattr(Shard, "judge_birth", wrong)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(REFERENCE, 1, FEW, seed=1))


def test_deaths_from_any_row_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of rows that have a feature belongs to the ratio because a death starts at one of them."""
    right = Shard.fit_feature

    def wrong(shard: Shard, message: FitMessage) -> FittedFeature | None:
        found = right(shard, message)
        n_with = int(shard.count(message.birth.feature + 1)[-1])
        return found if found is None or message.birth.is_born else found._replace(n_free=n_with)

    monkeypatch.setattr(Shard, "fit_feature", wrong)
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(REFERENCE, 1, FEW, seed=1))


def only_vague(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let features come and go by steps alone in which the bias makes up for them; weights may be large."""
    for name, value in {"N_TRIES": 0, "N_VAGUE": 4, "SCALES": (0.5, 1.0, 2.0)}.items():
        monkeypatch.setattr(glfm.sampling.births, name, value)


@pytest.mark.parametrize(
    ("table", "n_shards"), [(SHARED, 1), ("categorical, holes", 1), ("count, bias, a hole", 3)]
)
def test_births_with_a_bias_that_makes_up_for_them(
    table: str, n_shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_vague(monkeypatch)
    check(scores(TABLES[table], n_shards, FEW, seed=2))


def test_a_first_decision_by_weights_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    only_vague(monkeypatch)
    monkeypatch.setattr(glfm.sampling.births, "MARGIN", 0.0)
    check(scores(TABLES[SHARED], 1, FEW, seed=2))


@pytest.mark.parametrize("forgotten", ["in its prior", "in the cells"])
def test_a_bias_that_does_not_make_up_is_found_out(forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    only_vague(monkeypatch)
    ratio, judge = glfm.sampling.births.log_vague, Shard.judge_birth

    def fixed(birth: Any) -> Any:
        return birth._replace(shift=0.0 * birth.shift)

    if forgotten == "in its prior":
        monkeypatch.setattr(
            glfm.sampling.births, "log_vague", lambda birth, *known: ratio(fixed(birth), *known)
        )
    else:
        monkeypatch.setattr(Shard, "judge_birth", lambda s, m: judge(s, m._replace(birth=fixed(m.birth))))
    with pytest.raises(AssertionError, match="quantities are off"):
        check(scores(TABLES[SHARED], 1, FEW, seed=1))


@pytest.mark.parametrize("n_vague", [glfm.sampling.births.N_VAGUE, 0])
def test_a_feature_that_explains_chance_goes(n_vague: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glfm.sampling.births, "N_VAGUE", n_vague)
    rng = np.random.default_rng(0)
    truth = rng.random((1_500, 2)) < 0.3
    y = truth @ rng.normal(0.0, 2.0, (2, 20)) + rng.normal(size=(1_500, 20))
    kind = Categorical(levels=("yes", "no"))
    table = LocalProblem({f"column {d}": kind for d in range(20)}, np.where(y > 0.0, 0.0, 1.0), Priors())
    more = np.column_stack([truth, rng.random(1_500) < 0.5])
    state, sampler = State.start(table, np.random.SeedSequence(1), more), CollapsedSampler(table)
    for _ in range(60):
        sampler.sweep(state)
    share = state.Z[:, 1 : state.width].mean(axis=0)
    assert (((share > 0.05) & (share < 0.95)).sum() == 2) == (n_vague > 0)


@pytest.mark.slow
def test_features_that_are_left_out_are_found_again() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((2_000, 6)) < 0.2
    y = -1.0 + truth @ rng.normal(0.0, 2.0, (6, 40)) + rng.normal(size=(2_000, 40))
    kind = Categorical(levels=("yes", "no"))
    table = LocalProblem({f"column {d}": kind for d in range(40)}, np.where(y > 0.0, 0.0, 1.0), Priors())
    state = State.start(table, np.random.SeedSequence(1), truth[:, :4])
    sampler = CollapsedSampler(table)
    for _ in range(10):
        sampler.draw_weights(state, sampler.gather(state))
        sampler.draw_pseudo(state)
    for _ in range(80):  # a birth has to start at a row that needs it: six seeds took 10 to more than 60
        sampler.sweep(state)
    found = np.corrcoef(truth[:, 4:].T, state.Z[:, 1 : state.width].T)[:2, 2:]
    assert np.abs(found).max(axis=1).min() > 0.9
