"""A real cluster of processes: the bits of a local fit, also when workers are killed and schedulers lost."""

import copy
import itertools
import os
import pickle
import signal
import sys
import types
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import glfm
from glfm import storage
from glfm.errors import FitWarning, SamplerError, SchemaError

distributed = pytest.importorskip("distributed", reason="distributed is not installed: the extra [dask]")

SETTINGS = {"n_chains": 2, "n_warmup": 5, "n_draws": 4, "thin": 2, "random_state": 3, "progress": False}
QUIET = {"dashboard_address": ":0", "memory_limit": 0, "threads_per_worker": 1, "silence_logs": 50}


def table(n_rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    on = rng.random(n_rows) < 0.5
    frame = pd.DataFrame(
        {
            "change": rng.standard_normal(n_rows) + 2 * on,
            "visits": rng.poisson(3 + 4 * on).astype(float),
            "cost": np.where(rng.random(n_rows) < 0.2, 0.0, np.exp(rng.standard_normal(n_rows) + on)),
            "ward": np.where(on, "north", rng.choice(["south", "east"], n_rows)),
            "pain": pd.Categorical(
                rng.choice(["none", "mild", "severe"], n_rows), ["none", "mild", "severe"], ordered=True
            ),
        }
    )
    for column in frame:
        frame.loc[rng.random(n_rows) < 0.2, column] = None
    return frame


def bits(model: glfm.GLFM) -> list[tuple[object, ...]]:
    """Return everything that is in the draws of a model."""
    return [
        (
            d.chain,
            d.index,
            d.alpha,
            *(part.tobytes() for part in (d.packed, d.weights, d.variances, *d.thetas)),
        )
        for d in model.draws_
    ]


def fit(frame, engine, settings=SETTINGS, **arguments) -> glfm.GLFM:
    return glfm.GLFM(**settings, engine=engine).fit(frame, **arguments)


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    with (
        distributed.LocalCluster(n_workers=2, processes=True, **QUIET) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return table()


@pytest.fixture(scope="module")
def local(frame) -> glfm.GLFM:
    return fit(frame, glfm.LocalEngine(n_shards=3))


def test_draws_are_those_of_a_local_fit(client, frame, local):
    engine = glfm.DaskEngine(client, n_shards=3)
    model = fit(frame, engine)
    assert bits(model) == bits(local)
    pd.testing.assert_frame_equal(model.impute(), local.impute())
    for mine, theirs in zip(model._chains, local._chains, strict=True):
        np.testing.assert_array_equal(mine.state.Y, theirs.state.Y)
    assert engine.traffic_.meetings > 0


@pytest.mark.parametrize("n_rows", [50, 500])
def test_messages_do_not_grow_with_the_rows(client, n_rows):
    """Sums and globals travel: how many numbers that are depends on features and columns alone."""
    settings = {**SETTINGS, "n_chains": 1, "n_warmup": 4, "n_draws": 1, "thin": 1, "max_features": 2}
    engine = glfm.DaskEngine(client, n_shards=2)
    with pytest.warns(FitWarning, match="max_features = 2"):
        model = fit(table(n_rows), engine, settings)
    K, S = 3, model._problem.n_pseudo
    per_shard_and_sweep = (engine.traffic_.sent + engine.traffic_.received) / (2 * 5)
    assert per_shard_and_sweep < 3 * K * S + 3 * K * K + 5 * (K + S) + 60


def test_fit_goes_on_like_a_local_one(client, frame, local, tmp_path):
    """Continued, saved, loaded, cloned, interrupted by time: a chain is a chain wherever its rows were."""
    engine = glfm.DaskEngine(client, n_shards=3)
    short = fit(frame, engine, {**SETTINGS, "n_draws": 2})
    loaded = glfm.load(short.save(tmp_path / "model.glfm"))
    assert bits(short.continue_fit(2)) == bits(local)
    assert loaded.engine is None
    assert bits(loaded.continue_fit(2)) == bits(local)
    assert clone(short).engine.client is client
    assert copy.deepcopy(short).engine.client is client
    assert pickle.loads(pickle.dumps(engine)).client is None


def test_fit_that_is_out_of_time_is_resumed(client, frame, local, tmp_path, monkeypatch):
    """A clock by which time is out after one sweep of each chain."""
    path = tmp_path / "fit.glfm"
    monkeypatch.setattr("glfm.engine.time", types.SimpleNamespace(monotonic=itertools.count().__next__))
    with pytest.warns(FitWarning, match="time was out after 1, 1 of 13 sweeps"):
        fit(frame, glfm.DaskEngine(client, n_shards=3), time_budget=0.1, checkpoint=path)
    assert bits(fit(frame, glfm.DaskEngine(client, n_shards=3), resume=path)) == bits(local)


class Deadly(glfm.DaskEngine):
    """Kills a worker when the first chain has made some sweeps."""

    killed = 0

    def sweeps(self, chain, stop, pool):
        for shared in super().sweeps(chain, stop, pool):
            if chain.index == 0 and shared.sweep >= 6 and not self.killed:
                self.killed = min(self.client.run(os.getpid).values())
                os.kill(self.killed, signal.SIGKILL)
            yield shared


@pytest.mark.parametrize("save_every", [1e-6, 60.0])
def test_a_killed_worker_changes_no_bit(client, frame, local, save_every):
    """Its shards are rebuilt from rows that were brought home, or from the start."""
    client.wait_for_workers(2, timeout=120)
    engine = Deadly(client, n_shards=3, save_every=save_every)
    with pytest.warns(FitWarning, match=r"Workers were lost on the way \(tcp://.* after .* sweeps of chain"):
        model = fit(frame, engine)
    assert engine.killed
    assert bits(model) == bits(local)


def test_a_lost_scheduler_leaves_a_checkpoint(frame, local, tmp_path):
    path = tmp_path / "fit.glfm"
    with distributed.LocalCluster(n_workers=1, processes=False, **QUIET) as cluster:
        client = distributed.Client(cluster, set_as_default=False)

        class Doomed(glfm.DaskEngine):
            def sweeps(self, chain, stop, pool):
                for shared in super().sweeps(chain, stop, pool):
                    yield shared
                    if chain.index == 1 and shared.sweep == 9:
                        cluster.close()

        engine = Doomed(client, n_shards=3, save_every=1e-6)
        with pytest.raises(
            SamplerError, match="scheduler or all workers are gone: go on from the checkpoint"
        ):
            fit(frame, engine, checkpoint=path, checkpoint_every=1e-3)
        with pytest.raises(SamplerError, match="The dask client is clos"):
            fit(frame, engine)
    kept = storage.read(path, glfm.GLFM().get_params())
    assert not kept.stage.finished
    assert bits(fit(frame, glfm.LocalEngine(n_shards=3), resume=path)) == bits(local)


def test_other_software_on_a_worker_is_refused(client, frame, monkeypatch):
    monkeypatch.setattr(glfm, "__version__", "9.9")
    with pytest.raises(SamplerError, match=r"The worker tcp.* has glfm .* but this process has 9.9"):
        fit(frame, glfm.DaskEngine(client))
    # A package that is here and not there.
    monkeypatch.setattr("glfm.distributed.engine._VERSIONS", "{'glfm': __import__('glfm_of_here')}")
    monkeypatch.setitem(sys.modules, "glfm_of_here", glfm)
    with pytest.raises(SamplerError, match=r"has not got the package 'glfm_of_here': install pyglfm"):
        fit(frame, glfm.DaskEngine(client))


def test_what_is_no_cluster_is_refused(client, frame):
    with pytest.raises(SchemaError, match=r"takes a synchronous distributed\.Client, not a str"):
        fit(frame, glfm.DaskEngine("tcp://127.0.0.1:8786"))
    with pytest.raises(SchemaError, match='runs the parallel sampler: choose sampler="hybrid" or "auto"'):
        fit(frame, glfm.DaskEngine(client), {**SETTINGS, "sampler": "collapsed"})
    with pytest.raises(SchemaError, match="save_every is a positive number"):
        fit(frame, glfm.DaskEngine(client, save_every=0))
    collapsed = fit(frame, None)
    collapsed.engine = glfm.DaskEngine(client)
    with pytest.raises(SchemaError, match="those of the collapsed sampler"):
        collapsed.continue_fit(1)
