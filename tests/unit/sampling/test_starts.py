"""Starts of chains of large tables: a chain of a sample moves, and the rows are placed under its features."""

import numpy as np
import pytest

from glfm.kinds.categorical import Categorical
from glfm.kinds.real import Real
from glfm.sampling import starts
from glfm.sampling.hybrid import HybridSampler
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State

N_ROWS = 900
KINDS = {f"real {d}": Real(shift=0.0, scale=1.0, unit=1.0) for d in range(8)} | {
    f"level {d}": Categorical(levels=("a", "b", "c")) for d in range(2)
}


def made(pinned: np.ndarray | None = None, **priors: object) -> tuple[np.ndarray, LocalProblem]:
    """Return three features, and a table that they explain."""
    rng = np.random.default_rng(0)
    Z = rng.random((N_ROWS, 3)) < 0.3
    if pinned is not None:
        Z[pinned] = False
    x = np.empty((N_ROWS, 10))
    x[:, :8] = Z @ rng.normal(scale=3.0, size=(3, 8)) + rng.normal(size=(N_ROWS, 8))
    for d in (8, 9):
        x[:, d] = (Z @ rng.normal(scale=3.0, size=(3, 3)) + rng.normal(size=(N_ROWS, 3))).argmax(axis=1)
    x[rng.random(x.shape) < 0.1] = np.nan
    return Z, LocalProblem(KINDS, np.asfortranarray(x), Priors(**priors), pinned)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "LARGE", 500)
    monkeypatch.setattr(starts, "SAMPLE", 400)
    monkeypatch.setattr(starts, "SAMPLE_SWEEPS", 40)


def start(problem: LocalProblem, seed: int = 0, n_shards: int = 3) -> State:
    return HybridSampler(problem, n_shards).start(np.random.SeedSequence(seed))


def likeness(Z: np.ndarray, state: State) -> float:
    """Return the correlation of the feature that is found worst with the one most like it."""
    found = state.Z[:, : state.width]
    found = found[:, found.std(axis=0) > 0]
    return float(np.abs(np.corrcoef(Z.T, found.T)[: Z.shape[1], Z.shape[1] :]).max(axis=1).min())


def test_rows_are_placed_under_the_features_of_the_sample() -> None:
    Z, problem = made()
    assert likeness(Z, start(problem)) > 0.95


def test_settled_parameters_come_with_them() -> None:
    _, problem = made()
    state = start(problem)
    assert state.sweep == 0
    assert state.B.shape == (state.width, problem.n_pseudo)
    assert not np.array_equal(state.variance, np.ones(len(KINDS)))
    assert (state.Z[:, 0] == 1).all()
    # Pseudo-observations are those of the rows as they are placed.
    left = state.Y - state.Z[:, : state.width].astype(float) @ state.B
    assert 0.5 < left[:, :8].var() < 2.0
    HybridSampler(problem, 3).sweep(state)


def test_features_are_not_lost_in_the_sweeps_that_follow() -> None:
    Z, problem = made()
    state, sampler = start(problem), HybridSampler(problem, 3)
    for _ in range(20):
        sampler.sweep(state)
    assert likeness(Z, state) > 0.95


def test_the_same_seed_starts_alike_and_another_apart() -> None:
    _, problem = made()
    one, again, other = start(problem), start(problem), start(problem, seed=1)
    assert np.array_equal(one.Z, again.Z)
    assert np.array_equal(one.Y, again.Y)
    assert one.Z.shape != other.Z.shape or not np.array_equal(one.Z, other.Z)


def test_pinned_rows_have_no_feature() -> None:
    pinned = np.arange(N_ROWS) % 4 == 0
    Z, problem = made(pinned)
    state = start(problem)
    assert not state.Z[pinned, 1 : state.width].any()
    assert likeness(Z, state) > 0.95


def test_the_bound_and_no_bias_hold() -> None:
    _, problem = made(max_features=2, bias=False)
    assert start(problem).width <= 2


def test_noise_has_few_features() -> None:
    _, problem = made()
    x = np.apply_along_axis(np.random.default_rng(1).permutation, 0, problem.x)
    state = start(LocalProblem(KINDS, np.asfortranarray(x), Priors()))
    assert state.width < 5
    assert state.B.shape[0] == state.width


@pytest.mark.parametrize("priors", [{}, {"weighted": True}])
def test_other_tables_start_from_cuts(priors: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    if not priors:
        monkeypatch.setattr(starts, "LARGE", N_ROWS)
    monkeypatch.setattr(starts, "moved_sample", lambda *_: pytest.fail("a sample has moved"))
    assert not start(made(**priors)[1]).B.any()


def test_what_is_kept_follows_the_table_not_its_parts() -> None:
    problem = LocalProblem(KINDS, np.zeros((500_000, 10)), Priors())
    part = problem.part(0, 50_000)
    assert not part.keeps_bounds
    assert part.keeps_moves
    assert problem.some(np.arange(50_000)).keeps_bounds
    assert problem.part(0, 50_000).part(0, 10).n_cells == problem.x.size
