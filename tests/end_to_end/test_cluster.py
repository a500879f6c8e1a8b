"""A real cluster of processes: the bits of a local fit, also when workers are killed and schedulers lost."""

import copy
import gc
import itertools
import os
import pickle
import signal
import sys
import threading
import time
import types
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import glfm
from glfm.errors import DataError, FileError, FitWarning, SamplerError, SchemaError
from glfm.storage import model_files
from glfm.testing import assert_same_draws
from tables import patients

WITHOUT = "dask and distributed are not installed: the extra [dask]"
distributed = pytest.importorskip("distributed", reason=WITHOUT)
dask = pytest.importorskip("dask", reason=WITHOUT)
dd = pytest.importorskip("dask.dataframe", reason=WITHOUT)

SETTINGS = {"n_chains": 2, "n_warmup": 3, "n_draws": 3, "thin": 2, "random_state": 3, "progress": False}
QUIET = {"dashboard_address": ":0", "memory_limit": 0, "threads_per_worker": 1, "silence_logs": 50}


def fit(frame, engine=None, settings=SETTINGS, **arguments) -> glfm.GLFM:
    return glfm.GLFM(**settings, engine=engine).fit(frame, **arguments)


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    """A cluster of which two workers may be killed, though a busy machine may see nobody in their place."""
    with (
        distributed.LocalCluster(n_workers=3, processes=True, **QUIET) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return patients(60)


@pytest.fixture(scope="module")
def local(frame) -> glfm.GLFM:
    return fit(frame, glfm.LocalEngine(n_shards=3))


def test_draws_are_those_of_a_local_fit(client, frame, local):
    engine = glfm.DaskEngine(client, n_shards=3)
    model = fit(frame, engine)
    assert_same_draws(model.draws_, local.draws_)
    pd.testing.assert_frame_equal(model.impute(), local.impute())
    for mine, theirs in zip(model.fit_.chains, local.fit_.chains, strict=True):
        np.testing.assert_array_equal(mine.state.Y, theirs.state.Y)
    assert engine.traffic_.round_trips > 0


@pytest.mark.parametrize("n_rows", [50, 500])
def test_messages_do_not_grow_with_the_rows(client, n_rows):
    """Sums and globals travel: how many numbers that are depends on features and columns alone.

    The start, for which some rows travel, is what two fits have in common.
    """
    settings = {**SETTINGS, "n_chains": 1, "n_draws": 1, "thin": 1, "max_features": 2}
    traffic = []
    for n_warmup in (1, 11):
        engine = glfm.DaskEngine(client, n_shards=2)
        with warnings.catch_warnings():  # of max_features, which a chain may reach
            warnings.simplefilter("ignore", FitWarning)
            model = fit(patients(n_rows), engine, {**settings, "n_warmup": n_warmup})
        traffic.append(engine.traffic_.sent + engine.traffic_.received)
    K, S = 3, model.fit_.problem.n_pseudo
    per_shard_and_sweep = (traffic[1] - traffic[0]) / (2 * 10)
    more_moves = 4 * (K * K + 3 * K + 8)  # of the weights of a column with more than two levels
    births = 2 * (K * S + 2 * S + 8)  # for which the bias makes up
    assert per_shard_and_sweep < 5 * K * S + 3 * K * K + 12 * (K + S) + 120 + more_moves + births


def test_fit_goes_on_like_a_local_one(client, frame, local, tmp_path):
    """Continued, saved, loaded, cloned, interrupted by time: a chain is a chain wherever its rows were."""
    engine = glfm.DaskEngine(client, n_shards=3)
    short = fit(frame, engine, {**SETTINGS, "n_draws": 2})
    loaded = glfm.load(short.save(tmp_path / "model.glfm"))
    assert_same_draws(short.continue_fit(1).draws_, local.draws_)
    assert loaded.engine is None
    assert_same_draws(loaded.continue_fit(1).draws_, local.draws_)
    assert clone(short).engine.client is client
    assert copy.deepcopy(short).engine.client is client
    assert pickle.loads(pickle.dumps(engine)).client is None


@pytest.mark.reliability
def test_fit_that_is_out_of_time_is_resumed(client, frame, local, tmp_path, monkeypatch):
    """A clock by which time is out after one sweep of each chain."""
    path = tmp_path / "fit.glfm"
    monkeypatch.setattr(
        "glfm.sampling.engine.time", types.SimpleNamespace(monotonic=itertools.count().__next__)
    )
    with pytest.warns(FitWarning, match="time was out after 1, 1 of 9 sweeps"):
        fit(frame, glfm.DaskEngine(client, n_shards=3), time_budget=0.1, checkpoint=path)
    assert_same_draws(fit(frame, glfm.DaskEngine(client, n_shards=3), resume=path).draws_, local.draws_)


class Interrupted(glfm.DaskEngine):
    """Is interrupted when a chain has made three sweeps."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.made = threading.Event()

    def sweeps(self, chain, stop, pool):
        for shared in super().sweeps(chain, stop, pool):
            yield shared
            if shared.sweep == 3:
                self.made.set()
                stop.wait()

    def _watch(self, *arguments):
        self.made.wait()
        raise KeyboardInterrupt


def test_an_interrupted_fit_is_resumed(client, frame, local, tmp_path):
    path = tmp_path / "fit.glfm"
    with pytest.warns(FitWarning, match="The fit was interrupted after"):
        stopped = fit(frame, Interrupted(client, n_shards=3), checkpoint=path)
    assert 3 in [chain.state.sweep for chain in stopped.fit_.chains]
    assert not stopped.impute().isna().any().any()
    assert_same_draws(fit(frame, glfm.DaskEngine(client, n_shards=3), resume=path).draws_, local.draws_)


class Deadly(glfm.DaskEngine):
    """Kills a worker, and leaves others, when the first chain has made some sweeps."""

    killed = 0

    def sweeps(self, chain, stop, pool):
        for shared in super().sweeps(chain, stop, pool):
            if chain.index == 0 and shared.sweep >= 6 and not self.killed:
                self.client.wait_for_workers(2)
                self.killed = min(self.client.run(os.getpid).values())
                os.kill(self.killed, signal.SIGKILL)
            yield shared


@pytest.mark.parametrize("save_every", [1e-6, pytest.param(60.0, marks=pytest.mark.slow)])
def test_a_killed_worker_changes_no_bit(client, frame, local, save_every):
    """Its shards are rebuilt from rows that were brought home, or from the start."""
    engine = Deadly(client, n_shards=3, save_every=save_every)
    with pytest.warns(FitWarning, match=r"Workers were lost on the way \(tcp://.* after .* sweeps of chain"):
        model = fit(frame, engine)
    assert engine.killed
    assert_same_draws(model.draws_, local.draws_)


@pytest.mark.reliability
def test_a_lost_scheduler_leaves_a_checkpoint(frame, local, tmp_path):
    path = tmp_path / "fit.glfm"
    with distributed.LocalCluster(n_workers=1, processes=False, **QUIET) as cluster:
        client = distributed.Client(cluster, set_as_default=False)

        class Doomed(glfm.DaskEngine):
            def sweeps(self, chain, stop, pool):
                for shared in super().sweeps(chain, stop, pool):
                    yield shared
                    if chain.index == 1 and shared.sweep == 7:
                        cluster.close()

        engine = Doomed(client, n_shards=3, save_every=1e-6)
        with pytest.raises(
            SamplerError, match="client was closed, or its cluster was: go on from the checkpoint"
        ):
            fit(frame, engine, checkpoint=path, checkpoint_every=1e-3)
        with pytest.raises(SamplerError, match="The dask client is clos"):
            fit(frame, engine)
    _, stage = model_files.read(path, glfm.GLFM().get_params())
    assert not stage.finished
    assert_same_draws(fit(frame, glfm.LocalEngine(n_shards=3), resume=path).draws_, local.draws_)


def test_other_software_on_a_worker_is_refused(client, frame, monkeypatch):
    monkeypatch.setattr(glfm, "__version__", "9.9")
    with pytest.raises(SamplerError, match=r"The worker tcp.* has glfm .* but this process has 9.9"):
        fit(frame, glfm.DaskEngine(client))
    # A package that is here and not there.
    monkeypatch.setattr("glfm.distributed.engine._VERSIONS", "{'glfm': __import__('glfm_of_here')}")
    monkeypatch.setitem(sys.modules, "glfm_of_here", glfm)
    with pytest.raises(SamplerError, match=r"has not got the package 'glfm_of_here': install pyglfm"):
        fit(frame, glfm.DaskEngine(client))


@pytest.mark.reliability
def test_a_straggler_is_reported(client, frame, monkeypatch):
    """Of two workers one takes a second more for each sweep, for which the other waits; the rest are idle."""

    def slow_down():
        import time

        from glfm.distributed.worker import RemoteShard
        from glfm.sampling.shard import Shard

        def flip(shard, message):
            time.sleep(1.0)
            return Shard.flip_cells_out(shard, message)

        RemoteShard.flip_cells_out = flip

    def speed_up():
        from glfm.distributed.worker import RemoteShard

        del RemoteShard.flip_cells_out

    monkeypatch.setattr("glfm.distributed.engine._SECONDS", 1.0)
    slow = sorted(client.nthreads())[1]
    client.run(slow_down, workers=[slow])
    settings = {**SETTINGS, "n_chains": 1, "n_warmup": 3, "n_draws": 1, "thin": 1}
    try:
        engine = glfm.DaskEngine(client, n_shards=2)
        with pytest.warns(FitWarning, match=f"of the time the other workers had to wait for {slow}"):
            fit(frame, engine, settings)
    finally:
        client.run(speed_up, workers=[slow])
    assert max(engine.traffic_.waited, key=engine.traffic_.waited.__getitem__) == slow


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


def test_weighted_features(client, frame):
    """Scores travel as they are: also after a worker was killed, and when the fit goes on."""
    settings = {**SETTINGS, "weighted": True}
    known = fit(frame, glfm.LocalEngine(n_shards=3), settings)
    engine = Deadly(client, n_shards=3, save_every=1e-6)
    with pytest.warns(FitWarning, match="Workers were lost on the way"):
        model = fit(frame, engine, settings)
    assert_same_draws(model.draws_, known.draws_)
    assert model.draws_[0].scores is not None
    model.engine = glfm.DaskEngine(client, n_shards=3)
    assert_same_draws(model.continue_fit(1).draws_, known.continue_fit(1).draws_)
    pd.testing.assert_frame_equal(model.impute(), known.impute())


# ---- dask DataFrames


@pytest.fixture(scope="module")
def odd() -> pd.DataFrame:
    return patients(61)


@pytest.fixture(scope="module")
def odd_local(odd) -> glfm.GLFM:
    return fit(odd, glfm.LocalEngine(n_shards=4))


@pytest.fixture(scope="module")
def files(odd, tmp_path_factory) -> str:
    """The table as Parquet, in partitions of unequal size, one of them empty."""
    directory = tmp_path_factory.mktemp("table")
    for i, (start, stop) in enumerate([(0, 30), (30, 30), (30, 35), (35, 61)]):
        odd.iloc[start:stop].to_parquet(directory / f"part-{i}.parquet")
    return str(directory)


def read(files: str):
    return dd.read_parquet(files)


def check(model, local, frame, tmp_path):
    """The draws, the imputed table and what was written of it are those of a fit in one place."""
    assert_same_draws(model.draws_, local.draws_)
    assert model.schema_ == local.schema_
    imputed = model.impute()
    assert isinstance(imputed, dd.DataFrame)
    imputed.to_parquet(tmp_path / "imputed")
    written = pd.concat([pd.read_parquet(path) for path in sorted((tmp_path / "imputed").glob("*.parquet"))])
    expected = local.impute()
    for name in frame:
        assert written[name].tolist() == expected[name].tolist()
    assert written.index.tolist() == frame.index.tolist()
    assert model.diagnostics().table.shape == local.diagnostics().table.shape
    said = [
        "form",
        "share",
        "explained",
        "reproducibility",
        "stability",
    ]  # in words, cells here, there expected
    pd.testing.assert_frame_equal(model.features()[said], local.features()[said])
    several = model.impute(n=2)
    assert not several[0].compute().isna().any().any()
    assert not several[0].compute().equals(several[1].compute())


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # which dask uses
def test_without_a_cluster(odd, odd_local, files, tmp_path, monkeypatch):
    monkeypatch.setattr("glfm.distributed.by_partition.current_client", lambda: None)
    with dask.config.set(scheduler="threads"):
        model = fit(read(files))
        check(model, odd_local, odd, tmp_path)
    assert_same_draws(model.continue_fit(1).draws_[:3], odd_local.draws_[:3])


def check_released(client):
    """No cell of a fit stays on the cluster; the client notices a little later."""
    gc.collect()
    deadline = time.monotonic() + 10
    while client.futures and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not client.futures


def test_on_a_cluster(client, odd, odd_local, files, tmp_path):
    """The current client is found; its cells are where the shards are, and let go of afterwards."""
    model = fit(read(files))
    check_released(client)
    check(model, odd_local, odd, tmp_path)
    scores = [draw.log_likelihood for draw in model.draws_]
    np.testing.assert_allclose(scores, [draw.log_likelihood for draw in odd_local.draws_])
    np.testing.assert_allclose(model.fit_.problem.facts.spreads, odd_local.fit_.problem.facts.spreads)
    again = glfm.load(model.save(tmp_path / "model.glfm", data=False))
    new = odd.iloc[:7].reset_index(drop=True)
    expected = odd_local.impute(new)
    pd.testing.assert_frame_equal(again.impute(new), expected)
    far = again.impute(dd.from_pandas(new, npartitions=2)).compute()
    assert far.astype(object).equals(expected.astype(object))


def test_a_large_table_starts_from_a_sample(client, odd, odd_local, files, monkeypatch):
    """Its rows come from the workers, and are those of a fit in one place."""
    for name, value in {"LARGE": 50, "SAMPLE": 40, "SAMPLE_SWEEPS": 5}.items():
        monkeypatch.setattr(f"glfm.sampling.starts.{name}", value)
    local = fit(odd, glfm.LocalEngine(n_shards=4))
    assert_same_draws(fit(read(files)).draws_, local.draws_)
    with pytest.raises(AssertionError):
        assert_same_draws(local.draws_, odd_local.draws_)


def test_weighted_features_of_partitions(client, odd, files, tmp_path):
    """In memory, and from a folder in which the fit was stopped."""
    settings = {**SETTINGS, "weighted": True}
    known = fit(odd, glfm.LocalEngine(n_shards=4), settings)
    model = fit(read(files), None, settings)
    check(model, known, odd, tmp_path)
    scores = [draw.log_likelihood for draw in model.draws_]
    np.testing.assert_allclose(scores, [draw.log_likelihood for draw in known.draws_])
    path = tmp_path / "folder"
    with pytest.warns(FitWarning, match="The fit was interrupted after"):
        fit(read(files), Interrupted(client), settings, checkpoint=path)
    assert_same_draws(fit(read(files), None, settings, resume=path).draws_, known.draws_)


def test_pinned_rows_of_partitions(client, odd, files, tmp_path):
    pinned = np.arange(len(odd)) % 5 == 0
    known = fit(odd, glfm.LocalEngine(n_shards=4), inactive=pinned)
    path = tmp_path / "folder"
    model = fit(read(files), inactive=pinned, checkpoint=path)
    assert_same_draws(model.draws_, known.draws_)
    assert not any(draw.Z[pinned].any() for draw in model.draws_)
    with pytest.raises(FileError, match="checkpoint of a fit with another table"):
        fit(read(files), resume=path)
    with pytest.raises(DataError, match="one True or False for each of the 61 rows"):
        fit(read(files), inactive=[True])


class InterruptedLater(Interrupted):
    """Is interrupted in the second round of a fit until convergence."""

    n_runs = 0

    def run(self, *arguments, **settings):
        self.n_runs += 1
        return super().run(*arguments, **settings)

    def sweeps(self, chain, stop, pool):
        for shared in glfm.DaskEngine.sweeps(self, chain, stop, pool):
            yield shared
            if self.n_runs == 2 and shared.sweep == 15:
                self.made.set()
                stop.wait()

    def _watch(self, *arguments):
        if self.n_runs == 2:
            super()._watch(*arguments)
        glfm.DaskEngine._watch(self, *arguments)


def test_partitions_until_converged(client, odd, files, tmp_path, monkeypatch):
    """Rounds go on from the folder; a fit that was stopped in one of them is resumed there."""
    monkeypatch.setattr("glfm.estimators.rounds._MOST_ROUNDS", 3)
    path = tmp_path / "folder"
    with pytest.warns(FitWarning, match="have not converged after 45 sweeps each"):
        known = fit(odd, glfm.LocalEngine(n_shards=4), until="converged")
    with pytest.warns(FitWarning, match="The fit was interrupted after"):
        fit(read(files), InterruptedLater(client), until="converged", checkpoint=path)
    with pytest.raises(FileError, match="checkpoint of a fit with another until"):
        fit(read(files), resume=path)
    with pytest.warns(FitWarning, match="have not converged after 45 sweeps each"):
        model = fit(read(files), until="converged", resume=path)
    assert_same_draws(model.draws_, known.draws_)
    assert_same_draws(model.continue_fit(1).draws_, known.continue_fit(1).draws_)
    with pytest.raises(DataError, match="goes on from its checkpoint"):
        fit(read(files), until="converged")


def test_surprisal_by_partition(client, odd, odd_local, files):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        found = odd_local.surprisal(read(files)).compute()
    pd.testing.assert_frame_equal(found, odd_local.surprisal(odd))


def check_predictive(found, known, values, level):
    """Every answer is that of a table in one place, the empty partition notwithstanding."""
    questions = ["mean", "median", "mode", "sd", "entropy"]
    answers = [(getattr(found, name)(), getattr(known, name)()) for name in questions]
    answers += zip(found.interval(0.5), known.interval(0.5), strict=True)
    answers += [(found.proba(level), known.proba(level))]
    answers += [
        (getattr(found, name)(values), getattr(known, name)(values.compute())) for name in ("logpdf", "cdf")
    ]
    for mine, theirs in answers:
        assert isinstance(mine, dd.DataFrame)
        said = mine.dtypes.astype(str).replace("string", "str")  # what dask says of its own text, too
        assert said.to_dict() == theirs.dtypes.astype(str).to_dict()
        pd.testing.assert_frame_equal(mine.compute().astype(theirs.dtypes), theirs)
    one, other = (table.compute() for table in found.sample(2))
    assert one.index.equals(other.index)
    assert not one.equals(other)
    with pytest.raises(DataError, match="holes of all rows into one order"):
        found.uncertainty()
    with pytest.raises(DataError, match="of 4 partitions: give the values as one with the same"):
        found.logpdf(dd.from_pandas(values.compute(), npartitions=1))


def test_predictive_by_partition(client, odd, odd_local, files):
    """Of the rows of the fit, with their own features, and of rows never seen."""
    level = "ward"
    values = read(files)
    model = fit(read(files))
    check_predictive(model.predictive(), odd_local.predictive(), values, level)
    check_predictive(odd_local.predictive(read(files)), odd_local.predictive(odd), values, level)
    tables = [odd_local.impute(read(files)), *odd_local.impute(read(files), how="sample", n=2)]
    known = [odd_local.impute(odd), *odd_local.impute(odd, how="sample", n=2)]
    for mine, theirs in zip(tables, known, strict=True):
        pd.testing.assert_frame_equal(mine.compute().astype(theirs.dtypes), theirs)


@pytest.mark.reliability
def test_another_number_of_shards(client, odd, files):
    engine = glfm.DaskEngine(client, n_shards=2)
    assert_same_draws(fit(read(files), engine).draws_, fit(odd, glfm.LocalEngine(n_shards=2)).draws_)


@pytest.mark.reliability
@pytest.mark.parametrize("checkpoint", [pytest.param(None, marks=pytest.mark.slow), "folder"])
def test_a_killed_worker_of_partitions_changes_no_bit(client, odd_local, files, checkpoint, tmp_path):
    kept = None if checkpoint is None else tmp_path / checkpoint
    with pytest.warns(FitWarning, match="Workers were lost on the way"):
        model = fit(read(files), Deadly(client), checkpoint=kept, checkpoint_every=1e-6)
    assert_same_draws(model.draws_, odd_local.draws_)


def test_partitions_go_on_from_their_folder(client, odd_local, files, tmp_path, monkeypatch):
    """Stopped after one sweep, the fit goes on to the same bits; another fit is refused."""
    path = tmp_path / "folder"
    with monkeypatch.context() as patch:
        patch.setattr(
            "glfm.sampling.engine.time", types.SimpleNamespace(monotonic=itertools.count().__next__)
        )
        with pytest.warns(FitWarning, match="time was out after 1, 1 of 9 sweeps"):
            fit(read(files), time_budget=0.1, checkpoint=path)
    with pytest.raises(FileError, match="checkpoint of a fit with another seed"):
        fit(read(files), settings={**SETTINGS, "random_state": 4}, resume=path)
    with pytest.raises(FileError, match="a new or empty folder"):
        fit(read(files), checkpoint=path)
    shorter = fit(read(files), settings={**SETTINGS, "n_draws": 2}, resume=path)
    with pytest.raises(AssertionError):
        assert_same_draws(shorter.draws_, odd_local.draws_)
    assert_same_draws(fit(read(files), resume=path).draws_, odd_local.draws_)
    (path / "chain-0" / "state.npz").write_bytes(b"nothing")
    with pytest.raises(FileError, match="is damaged"):
        fit(read(files), resume=path)


def test_draws_are_added_to_partitions(client, odd, odd_local, files, tmp_path):
    """From the folder, more than once and after pickling; what is added is in the folder, too."""
    known = fit(odd, glfm.LocalEngine(n_shards=4)).continue_fit(2)
    path, short = tmp_path / "folder", {**SETTINGS, "n_draws": 2}
    model = pickle.loads(pickle.dumps(fit(read(files), settings=short, checkpoint=path)))
    assert_same_draws(model.continue_fit(1).draws_, odd_local.draws_)
    assert_same_draws(model.continue_fit(2).draws_, known.draws_)
    pd.testing.assert_frame_equal(model.impute().compute().astype(object), known.impute().astype(object))
    assert_same_draws(fit(read(files), settings={**SETTINGS, "n_draws": 5}, resume=path).draws_, known.draws_)
    model.engine = glfm.DaskEngine(client, n_shards=2)
    with pytest.raises(FileError, match="another number of shards"):
        model.continue_fit(1)
    with pytest.raises(DataError, match="goes on from a folder only"):
        fit(read(files)).continue_fit(1)


@pytest.mark.reliability
def test_interrupted_partitions_go_on_from_their_folder(client, odd_local, files, tmp_path):
    path = tmp_path / "folder"
    with pytest.warns(FitWarning, match="The fit was interrupted after"):
        fit(read(files), Interrupted(client), checkpoint=path)
    assert_same_draws(fit(read(files), resume=path).draws_, odd_local.draws_)


def test_what_needs_all_rows_is_refused(files, tmp_path):
    with dask.config.set(scheduler="threads"):
        model = fit(read(files), glfm.LocalEngine(n_shards=2))
    for question in (
        model.surprisal,
        model.activations,
        lambda: model.append(patients(3)),
        lambda: model.report(tmp_path / "page.html"),
    ):
        with pytest.raises(DataError, match="rows stay where they are"):
            question()
    with pytest.raises(DataError, match="save it with data=False"):
        model.save(tmp_path / "model.glfm")
    with pytest.raises(SchemaError, match="Unknown how 'guess'"):
        model.impute(how="guess")
    with pytest.raises(DataError, match="with a checkpoint on a cluster only"):
        fit(read(files), glfm.LocalEngine(), checkpoint=tmp_path / "fit.glfm")
