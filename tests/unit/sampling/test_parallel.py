"""The parallel sampler: shards, calls of them, and what does not depend on where they are at work."""

import pickle
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.kernels.thresholds import level_gains
from glfm.kinds import Kind
from glfm.kinds.categorical import Categorical
from glfm.kinds.count import Count
from glfm.kinds.ordinal import Ordinal
from glfm.kinds.real import Real
from glfm.sampling.chain import Chain
from glfm.sampling.hybrid import HybridSampler
from glfm.sampling.parallel import shard_bounds
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem, Problem
from glfm.sampling.shard import Shard, Stopped
from glfm.sampling.state import State
from glfm.testing import assert_same_draws, simulate_prior

PLAIN = {"shift": 0.0, "scale": 1.0, "unit": 1.0}
LEVELS = ("a", "b", "c", "d")
KINDS: dict[str, Kind] = {
    "height": Real(**PLAIN),
    "visits": Count(**PLAIN),
    "smoker": Categorical(levels=("no", "yes")),
    "ward": Categorical(levels=LEVELS),
    "grade": Ordinal(levels=LEVELS),
}


def problem(n_rows: int = 60, **priors: object) -> Problem:
    settings = Priors(**priors)  # type: ignore[arg-type]
    x = simulate_prior(np.random.default_rng(1), KINDS, n_rows, settings).x
    x[np.random.default_rng(2).random(x.shape) < 0.2] = np.nan
    return LocalProblem(KINDS, x, settings)


def run(sampler: HybridSampler, n_sweeps: int = 25) -> State:
    state = State.start(sampler.problem, np.random.SeedSequence(3))
    for _ in range(n_sweeps):
        sampler.sweep(state, adapt=True)
    return state


def same(one: State, other: State) -> bool:
    arrays = [(getattr(one, name), getattr(other, name)) for name in ("rng", "Y", "B", "variance")]
    arrays += [(one.Z[:, : one.width], other.Z[:, : other.width])]
    arrays += list(zip(one.theta + one.step, other.theta + other.step, strict=True))
    return one.alpha == other.alpha and all(np.array_equal(a, b) for a, b in arrays)


@pytest.mark.parametrize(("n_rows", "n_shards"), [(1, 1), (2, 5), (10, 3), (7, 7)])
def test_shards_cut_the_rows(n_rows: int, n_shards: int) -> None:
    bounds = shard_bounds(n_rows, n_shards)
    sizes = [stop - start for start, stop in bounds]
    assert sum(sizes) == n_rows
    assert max(sizes) - min(sizes) <= 1
    assert [start for start, _ in bounds[1:]] == [stop for _, stop in bounds[:-1]]


def test_threads_do_not_matter_but_shards_do() -> None:
    alone = run(HybridSampler(problem(), 3))
    threaded = HybridSampler(problem(), 3)
    with ThreadPoolExecutor(3) as threaded.pool:
        assert same(alone, run(threaded))
    assert not same(alone, run(HybridSampler(problem(), 2)))


@pytest.mark.parametrize("n_shards", [1, 4])
def test_a_state_is_consistent_after_every_sweep(n_shards: int) -> None:
    sampler = HybridSampler(problem(), n_shards)
    state = State.start(sampler.problem, np.random.SeedSequence(4))
    for _ in range(30):
        sampler.sweep(state, adapt=True)
        counts = state.Z.sum(axis=0, dtype=int)
        assert state.B.shape == (state.width, sampler.problem.n_pseudo)
        assert (counts[: state.width] > 0).all(), "a feature that no row has is gone"
        assert not counts[state.width :].any(), "unused columns are zero"
        assert (state.Z[:, 0] == 1).all()
        assert all((np.diff(theta) > 0).all() for theta in state.theta)
        assert np.isfinite(state.Y).all()


def test_a_state_grows_when_features_are_many() -> None:
    sampler = HybridSampler(problem(80, alpha=30.0), 3)
    state = State.start(sampler.problem, np.random.SeedSequence(5), np.zeros((80, 0), dtype=np.bool_))
    assert state.Z.shape[1] == 16
    for _ in range(40):
        sampler.sweep(state)
    assert state.Z.shape[1] > 16
    assert same(
        run(HybridSampler(problem(80, alpha=30.0), 3)), run(HybridSampler(problem(80, alpha=30.0), 3))
    )


def test_max_features_and_pinned_rows_hold() -> None:
    x, pinned = problem().x, np.arange(60) < 20
    sampler = HybridSampler(LocalProblem(KINDS, x, Priors(alpha=5.0, max_features=3), pinned), 2)
    state = State.start(sampler.problem, np.random.SeedSequence(6))
    for _ in range(30):
        sampler.sweep(state)
        assert state.width <= 4
        assert not state.Z[pinned, 1:].any()


def test_a_sweep_can_be_given_up() -> None:
    stop = Event()
    stop.set()
    sampler = HybridSampler(problem(), 2)
    with pytest.raises(Stopped):
        sampler.sweep(State.start(sampler.problem, np.random.SeedSequence(7)), stop=stop)


@pytest.mark.parametrize("name", ["grade", "smoker"])
def test_gains_are_differences_of_the_log_likelihood(name: str) -> None:
    kind = KINDS[name]
    rng = np.random.default_rng(8)
    n_levels = 4 if name == "grade" else 2
    x = rng.integers(0, n_levels, 40).astype(float)
    x[::7] = np.nan
    mean = 3.0 * rng.standard_normal(40)
    theta = np.array([0.0, 0.7, 2.0])[: n_levels - 1] if name == "grade" else np.empty(0)
    probit = kind.ordered_probit(theta)
    assert probit is not None
    scale = 1.3
    out = np.empty(n_levels)
    codes = kind.evidence(x)[0]
    level_gains(codes, mean, probit, probit.edges * scale, scale, out)
    old, new = (kind.log_density(x, (factor * mean)[:, None], 1.0, factor * theta) for factor in (1.0, scale))
    exact = [np.nansum(np.where(x == r, new - old, 0.0)) for r in range(n_levels)]
    np.testing.assert_allclose(out, exact, rtol=1e-7)


def test_features_can_be_rearranged_beyond_what_a_shard_knows() -> None:
    Z = np.zeros((3, 4), dtype=np.uint8)
    Z[:, :3] = [[1, 0, 1], [0, 1, 1], [1, 1, 0]]
    shard = Shard(problem(3), Z.copy(), np.zeros((3, 1)))
    shard.rearrange(np.array([2, 7, 0, 9, 1]))
    np.testing.assert_array_equal(
        shard.Z[:, :5], np.column_stack([Z[:, 2], 0 * Z[:, 0], Z[:, 0], 0 * Z[:, 0], Z[:, 1]])
    )
    assert not shard.Z[:, 5:].any()


class TestModel:
    frame = pd.DataFrame(
        {
            "height": [1.7, None, 1.6, 1.8, 1.75, 1.62] * 5,
            "smoker": ["no", "yes", None, "no", "yes", "no"] * 5,
        }
    )

    def fit(self, **more: object) -> glfm.GLFM:
        settings = {
            "n_chains": 2,
            "n_warmup": 10,
            "n_draws": 10,
            "thin": 1,
            "random_state": 0,
            "progress": False,
        }
        return glfm.GLFM(**{**settings, **more}).fit(self.frame)  # type: ignore[arg-type]

    def test_draws_depend_on_shards_alone(self) -> None:
        one = self.fit(sampler="hybrid", engine=glfm.LocalEngine(2), n_jobs=1)
        two = self.fit(sampler="hybrid", engine=glfm.LocalEngine(2), n_jobs=2)
        other = self.fit(sampler="hybrid", engine=glfm.LocalEngine(3))
        assert [d.alpha for d in one.draws_] == [d.alpha for d in two.draws_]
        assert [d.alpha for d in one.draws_] != [d.alpha for d in other.draws_]

    def test_auto_is_collapsed_for_one_shard_and_hybrid_for_more(self) -> None:
        for sampler, engine in (("collapsed", None), ("hybrid", glfm.LocalEngine(2))):
            auto, named = self.fit(engine=engine), self.fit(sampler=sampler, engine=engine)
            assert [d.alpha for d in auto.draws_] == [d.alpha for d in named.draws_]

    @pytest.mark.parametrize(("n_rows", "n_shards"), [(19_999, 0), (20_000, 1), (100_000, 2)])
    def test_auto_is_hybrid_for_many_rows(self, n_rows: int, n_shards: int) -> None:
        many = pd.DataFrame({"height": np.random.default_rng(0).standard_normal(n_rows)})
        one_sweep = {
            "n_chains": 1,
            "n_warmup": 0,
            "n_draws": 1,
            "thin": 1,
            "max_features": 0,
            "progress": False,
        }
        fit = glfm.GLFM(**one_sweep).fit(many).fit_
        assert [chain.n_shards for chain in fit.chains] == [n_shards]

    def test_goes_on_and_comes_back_from_a_file(self, tmp_path: Path) -> None:
        model = self.fit(sampler="hybrid", engine=glfm.LocalEngine(2))
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        assert again.engine is None
        model.continue_fit(5)
        again.continue_fit(5)
        assert [d.alpha for d in model.draws_] == [d.alpha for d in again.draws_]

    def test_wrong_settings_are_refused(self) -> None:
        with pytest.raises(glfm.SchemaError, match='sampler is "auto", "collapsed" or "hybrid"'):
            self.fit(sampler="gibbs")
        with pytest.raises(glfm.SchemaError, match="n_shards is a positive number or None, not 0"):
            self.fit(engine=glfm.LocalEngine(0))

    def test_shards_are_a_function_of_the_rows(self) -> None:
        engine = glfm.LocalEngine(n_shards=None)
        assert [engine.shards(n) for n in (1, 99_999, 100_000, 10**6, 10**8)] == [1, 1, 2, 20, 64]


def test_a_large_table_is_swept_in_place_to_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are made only for those who hold a state: a snapshot, a copy of the chain."""
    schedule = Schedule(2, 6, 1)
    expected = Chain(problem(), schedule, np.random.SeedSequence(1), n_shards=2)
    states = [state.copy() for state in expected]
    monkeypatch.setattr("glfm.sampling.chain._LARGE", 0)
    chain = Chain(problem(), schedule, np.random.SeedSequence(1), n_shards=2)
    sweeps = chain.sweeps()
    assert next(sweeps) is next(sweeps)  # one state all along
    still = chain.snapshot()
    copied = chain.copy()
    assert next(sweeps) is not still.state
    for _ in sweeps:
        pass
    assert same(still.state, states[1])
    assert same(chain.state, states[-1])
    assert_same_draws(chain.draws, expected.draws)
    *_, last = copied
    assert same(last, states[-1])
    assert same(still.state, states[1])


def test_a_snapshot_of_a_large_table_waits_for_the_sweep_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken again and again while the chain runs in another thread, none is from the middle of a sweep."""
    schedule = Schedule(1, 60, 1)
    states = [state.copy() for state in Chain(problem(), schedule, np.random.SeedSequence(1), n_shards=2)]
    monkeypatch.setattr("glfm.sampling.chain._LARGE", 0)
    chain = Chain(problem(), schedule, np.random.SeedSequence(1), n_shards=2)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(list, chain.sweeps())
        seen = []
        while not running.done():
            seen.append(chain.snapshot().state)
    assert seen
    assert all(same(state, states[state.sweep - 1]) for state in seen if state.sweep)
    assert same(chain.state, states[-1])


def test_an_interrupt_lets_the_sweep_of_a_large_table_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glfm.sampling.chain._LARGE", 0)
    stop = Event()
    chain = Chain(problem(), Schedule(1, 5, 1), np.random.SeedSequence(1), n_shards=2)
    original = chain.sampler.sweep

    def interrupted(*arguments: object) -> None:
        stop.set()
        original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(chain.sampler, "sweep", interrupted)
    assert [state.sweep for state in chain.sweeps(stop)] == [1]
    assert glfm.LocalEngine(2).patience([chain]) is None


def test_a_model_with_shards_is_pickled() -> None:
    engine = glfm.LocalEngine(n_shards=2)
    model = glfm.GLFM(
        n_chains=2, n_warmup=2, n_draws=1, thin=1, random_state=0, progress=False, engine=engine
    )
    again = pickle.loads(pickle.dumps(model.fit(np.random.default_rng(0).standard_normal((20, 2)))))
    assert len(again.continue_fit(1).draws_) == 4


def test_a_stopped_chain_whose_rows_are_elsewhere_keeps_no_draw() -> None:
    """A state of warm-up is kept as a draw only where its rows are."""

    class OneSweep(glfm.LocalEngine):
        def sweeps(self, chain: Chain, stop: Event, pool: object) -> Generator[State]:
            chain.state.sweep = 1
            yield chain.state

    chain = Chain(problem().rowless(), Schedule(2, 2, 1), np.random.SeedSequence(0), n_shards=1)
    with pytest.raises(KeyboardInterrupt):  # there is nothing to return
        OneSweep().run([chain], progress=False, time_budget=1.0)
    assert not chain.draws
