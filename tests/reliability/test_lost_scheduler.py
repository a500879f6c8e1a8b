"""Schedulers that are killed or hang while fits run, on a busy machine: noticed in time, and nothing lost."""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

import glfm
from glfm.errors import SamplerError
from glfm.testing import assert_same_draws
from tables import patients

WITHOUT = "dask and distributed are not installed: the extra [dask]"
distributed = pytest.importorskip("distributed", reason=WITHOUT)
dd = pytest.importorskip("dask.dataframe", reason=WITHOUT)

from cluster_processes import Processes, kill  # noqa: E402

pytestmark = [
    pytest.mark.reliability,
    pytest.mark.timeout(1800),
    # Of workers for which others wait, on a busy machine.
    pytest.mark.filterwarnings("ignore::glfm.errors.FitWarning"),
]

SETTINGS = {"n_chains": 2, "n_warmup": 30, "n_draws": 20, "thin": 2, "random_state": 3, "progress": False}
IN_TIME = 30.0  # seconds in which a lost scheduler must be noticed
LATEST = 8.0  # seconds after the start of a fit, which takes longer, until a scheduler is lost
N_KILLS, N_HANGS, AT_ONCE = 20, 4, 4


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return patients(60)


@pytest.fixture(scope="module")
def undisturbed(frame) -> glfm.GLFM:
    return fit(frame, glfm.LocalEngine(n_shards=3))


@pytest.fixture
def busy() -> Iterator[None]:
    """A process for every core that does nothing, as fast as it can."""
    command = [sys.executable, "-c", "while True: pass"]
    idlers = [subprocess.Popen(command, start_new_session=True) for _ in range(os.cpu_count() or 1)]
    yield
    for idler in idlers:
        kill(idler)


def fit(table, engine, settings=SETTINGS, **arguments) -> glfm.GLFM:
    return glfm.GLFM(**settings, engine=engine).fit(table, **arguments)


def hang(process: subprocess.Popen[bytes]) -> None:
    """Let a process be there, and do nothing."""
    os.kill(process.pid, signal.SIGSTOP)


class Doomed:
    """Fits on a cluster of processes whose scheduler is lost some seconds later, or after `awaited` is there.

    Attributes
    ----------
    noticed
        Seconds from the loss to the error; None: the fit was over before.
    """

    def __init__(
        self,
        directory: Path,
        table: object,
        seconds: float,
        lose: Callable[..., None],
        awaited: str = "",
    ) -> None:
        self.path, self.noticed, self.sentence = directory / "checkpoint", None, ""
        with Processes(directory) as cluster:
            for _ in range(2):
                cluster.start_worker()
            with distributed.Client(cluster.address, timeout=120, set_as_default=False) as client:
                client.wait_for_workers(2, timeout=120)
                known = (lose, cluster.scheduler, directory / awaited)
                threading.Timer(seconds, self.lose, known).start()
                try:
                    engine = glfm.DaskEngine(client, n_shards=3, save_every=1e-6)
                    fit(table, engine, checkpoint=self.path, checkpoint_every=1e-3)
                except SamplerError as error:
                    self.noticed, self.sentence = time.monotonic() - self.lost, str(error)

    def lose(self, lose: Callable[..., None], scheduler: subprocess.Popen[bytes], awaited: Path) -> None:
        while not awaited.exists():
            time.sleep(0.05)
        self.lost = time.monotonic()
        lose(scheduler)

    @property
    def resume(self) -> Path | None:
        """The checkpoint, unless the scheduler was lost before there was one."""
        return self.path if self.path.exists() else None


def check(found: list[Doomed], tell: Callable[[str], None], what: str) -> None:
    times = [one.noticed for one in found if one.noticed is not None]
    tell(
        f"{what}: {len(times)} of {len(found)} before the fit was over, noticed after {min(times):.1f} to "
        f"{max(times):.1f} s; {sum(one.resume is not None for one in found)} left a checkpoint"
    )
    assert len(times) >= 0.8 * len(found)
    assert max(times) < IN_TIME
    said = {one.sentence for one in found if one.sentence}
    assert [one for one in said if "go on from the checkpoint with fit(..., resume=...)" not in one] == []


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(("lose", "n", "what"), [(kill, N_KILLS, "killed"), (hang, N_HANGS, "hanging")])
def test_fits_are_resumed(frame, undisturbed, tmp_path, tell, lose, n, what):
    """From an intact checkpoint, without a cluster, to the bits of a fit that nothing has disturbed."""
    moments, numbers = random.Random(what), itertools.count()

    def one(seconds: float) -> Doomed:
        (directory := tmp_path / str(next(numbers))).mkdir()
        return Doomed(directory, frame, seconds, lose)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(one, [moments.uniform(0.0, LATEST) for _ in range(n)]))
    check(found, tell, f"schedulers {what}")
    for each in found:
        model = fit(frame, glfm.LocalEngine(n_shards=3), resume=each.resume)
        assert_same_draws(model.draws_, undisturbed.draws_)
    other = fit(frame, glfm.LocalEngine(n_shards=3), SETTINGS | {"random_state": 4})
    with pytest.raises(AssertionError):
        assert_same_draws(other.draws_, undisturbed.draws_)


@pytest.mark.usefixtures("busy")
def test_fits_of_partitions_are_resumed(frame, undisturbed, tmp_path, tell):
    """From their folder, on another cluster."""
    table = dd.from_pandas(frame, npartitions=3)
    found = []
    for i, awaited in enumerate(("", "checkpoint/chain-0/state.npz", "checkpoint/chain-1/draw-0-3.npz")):
        (directory := tmp_path / str(i)).mkdir()
        found.append(Doomed(directory, table, 0.5, kill, awaited))
    check(found, tell, "schedulers of partitions killed")
    assert [one.resume is not None for one in found] == [False, True, True]
    quiet = {"dashboard_address": ":0", "memory_limit": 0, "threads_per_worker": 1}
    with (
        distributed.LocalCluster(n_workers=2, processes=False, **quiet) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        for each in found:
            model = fit(table, glfm.DaskEngine(client), resume=each.resume)
            assert_same_draws(model.draws_, undisturbed.draws_)


def test_a_scheduler_that_hangs_for_a_while_changes_no_bit(frame, undisturbed, tmp_path):
    """It is waited for: only one that is silent for longer counts as lost."""
    with Processes(tmp_path) as cluster:
        for _ in range(2):
            cluster.start_worker()
        with distributed.Client(cluster.address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
            threading.Timer(2.0, hang, [cluster.scheduler]).start()
            threading.Timer(12.0, os.kill, [cluster.scheduler.pid, signal.SIGCONT]).start()
            begin = time.monotonic()
            model = fit(frame, glfm.DaskEngine(client, n_shards=3))
            assert time.monotonic() - begin > 10.0
    assert_same_draws(model.draws_, undisturbed.draws_)


def test_imputing_by_partition_ends(frame, tmp_path):
    """Before the scheduler is lost the draws are sent, after that an error says so, in time."""
    table = dd.from_pandas(frame, npartitions=3)
    with Processes(tmp_path) as cluster:
        cluster.start_worker()
        with distributed.Client(cluster.address) as client:
            client.wait_for_workers(1, timeout=120)
            model = fit(table, glfm.DaskEngine(client), SETTINGS | {"n_warmup": 3, "n_draws": 2})
            lazy = model.impute()
            assert not lazy.compute().isna().any().any()
            hang(cluster.scheduler)
            begin = time.monotonic()
            with pytest.raises(SamplerError, match=r"does not answer: call impute\(\) again"):
                model.impute()
            assert time.monotonic() - begin < IN_TIME
            kill(cluster.scheduler)
            with pytest.raises(Exception, match=r"lost the connection|[Cc]ancelled|[Cc]losed"):
                lazy.compute()
            assert time.monotonic() - begin < 2 * IN_TIME


def test_a_closed_client_is_noticed_at_once(frame, tmp_path):
    """Its event loop, on which answers arrive, is gone with it."""
    with distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=":0", memory_limit=0
    ) as cluster:
        client = distributed.Client(cluster.scheduler_address, set_as_default=False)
        threading.Timer(1.0, client.close).start()
        begin = time.monotonic()
        with pytest.raises(SamplerError, match="client was closed, or its cluster was: go on from"):
            fit(frame, glfm.DaskEngine(client, n_shards=3), SETTINGS | {"n_draws": 10**6})
        assert time.monotonic() - begin < IN_TIME
