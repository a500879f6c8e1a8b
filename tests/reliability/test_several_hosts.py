"""Workers on hosts of their own and networks that are slow or break: no changed bit, no hang.

A proxy stands for a network that misbehaves. Hosts are network namespaces joined by veth, which need root.
"""

import itertools
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pandas as pd
import pytest

import glfm
from glfm.errors import FileError, SamplerError
from glfm.testing import assert_same_draws
from tables import patients

WITHOUT = "dask and distributed are not installed: the extra [dask]"
distributed = pytest.importorskip("distributed", reason=WITHOUT)
dd = pytest.importorskip("dask.dataframe", reason=WITHOUT)

from cluster_processes import Processes, free_port, wait_until_open  # noqa: E402
from proxy import Proxy  # noqa: E402

pytestmark = [
    pytest.mark.reliability,
    pytest.mark.timeout(400),  # what takes longer hangs
    # Of workers that were lost, and of those for which others wait.
    pytest.mark.filterwarnings("ignore::glfm.errors.FitWarning"),
]

SETTINGS = {"n_chains": 2, "n_warmup": 8, "n_draws": 6, "thin": 2, "random_state": 3, "progress": False}
IN_TIME = 30.0


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return patients(60)


@pytest.fixture(scope="module")
def local(frame) -> glfm.GLFM:
    return fit(frame, glfm.LocalEngine(n_shards=3))


def fit(table, engine, **arguments) -> glfm.GLFM:
    return glfm.GLFM(**SETTINGS, engine=engine).fit(table, **arguments)


class Disturbed(glfm.DaskEngine):
    """Something happens when the first chain has made six sweeps.

    Attributes
    ----------
    at
        When it happened; None: not yet.
    """

    def __init__(self, client, happens: Callable[[], object], n_shards: int | None = 3) -> None:
        super().__init__(client, n_shards, save_every=1e-6)
        self.happens, self.at = happens, None

    def sweeps(self, chain, stop, pool):
        for shared in super().sweeps(chain, stop, pool):
            if chain.index == 0 and shared.sweep >= 6 and self.at is None:
                self.at = time.monotonic()
                self.happens()
            yield shared


# ---- networks that misbehave


class Network:
    """A cluster of two workers, with proxies to and from the first of them, and from the client."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self.cluster = stack.enter_context(Processes(directory))
        scheduler = ("127.0.0.1", int(self.cluster.address.rpartition(":")[2]))
        wait_until_open(scheduler)
        listening = free_port()
        self.to_worker = stack.enter_context(Proxy(("127.0.0.1", listening)))
        self.from_worker = stack.enter_context(Proxy(scheduler))
        self.from_client = stack.enter_context(Proxy(scheduler))
        self.cluster.start_worker(
            *("--listen-address", f"tcp://127.0.0.1:{listening}"),
            *("--contact-address", f"tcp://127.0.0.1:{self.to_worker.port}"),
            scheduler=f"tcp://127.0.0.1:{self.from_worker.port}",
        )
        self.cluster.start_worker()
        address = f"tcp://127.0.0.1:{self.from_client.port}"
        self.client = stack.enter_context(distributed.Client(address, timeout=120, set_as_default=False))
        self.client.wait_for_workers(2, timeout=120)

    @property
    def of_worker(self) -> tuple[Proxy, Proxy]:
        return self.to_worker, self.from_worker


@pytest.fixture
def network(tmp_path) -> Iterator[Network]:
    with ExitStack() as stack:
        yield Network(stack, tmp_path)


def later(seconds: float, *calls: Callable[[], object]) -> None:
    """Make some calls after a while, from elsewhere."""
    for call in calls:
        threading.Timer(seconds, call).start()


def test_latency(network, frame, local):
    """Of 10 ms each way between the client and the cluster, and between it and a worker."""
    for proxy in (network.from_client, *network.of_worker):
        proxy.delay = 0.01
    model = fit(frame, glfm.DaskEngine(network.client, n_shards=3))
    assert_same_draws(model.draws_, local.draws_)


def test_a_worker_on_a_slow_line(network, frame, local):
    """Of 200 kB a second, from the sixth sweep on."""

    def slow_down() -> None:
        for proxy in network.of_worker:
            proxy.rate = 2e5

    engine = Disturbed(network.client, slow_down)
    assert_same_draws(fit(frame, engine).draws_, local.draws_)
    assert engine.at is not None


@pytest.mark.parametrize("whose", ["worker", "client"])
@pytest.mark.parametrize("partitions", [False, True], ids=["memory", "partitions"])
def test_a_cut_connection(network, frame, local, whose, partitions, tmp_path):
    """A worker that loses its scheduler ends itself, and the other goes on; a client connects again."""
    proxies = network.of_worker if whose == "worker" else (network.from_client,)
    n_cut = []
    engine = Disturbed(network.client, lambda: n_cut.extend(proxy.cut() for proxy in proxies))
    table = dd.from_pandas(frame, npartitions=3) if partitions else frame
    model = fit(table, engine, checkpoint=tmp_path / "checkpoint", checkpoint_every=1e-3)
    assert sum(n_cut) > 0
    assert_same_draws(model.draws_, local.draws_)


@pytest.mark.parametrize("whose", ["worker", "client"])
def test_a_partition_that_heals(network, frame, local, whose):
    """For eight seconds nothing passes, and nobody is told."""
    proxies = network.of_worker if whose == "worker" else (network.from_client,)

    def split() -> None:
        for proxy in proxies:
            proxy.hold()
        later(8.0, *(proxy.heal for proxy in proxies))

    engine = Disturbed(network.client, split)
    model = fit(frame, engine)
    assert time.monotonic() - engine.at > 8.0
    assert_same_draws(model.draws_, local.draws_)


def test_a_partition_that_does_not_heal(network, frame, local, tmp_path):
    """Between client and scheduler: the checkpoint is intact, and the fit goes on without the cluster."""
    path = tmp_path / "fit.glfm"
    engine = Disturbed(network.client, network.from_client.hold)
    with pytest.raises(SamplerError, match="does not answer: go on from the checkpoint"):
        fit(frame, engine, checkpoint=path, checkpoint_every=1e-3)
    assert time.monotonic() - engine.at < IN_TIME
    assert_same_draws(fit(frame, glfm.LocalEngine(n_shards=3), resume=path).draws_, local.draws_)
    network.from_client.heal()


# ---- hosts


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


_NUMBERS = itertools.count()


class Hosts:
    """Network namespaces: a hub for the scheduler, and two hosts; veth joins it to them, and to here."""

    def __init__(self, stack: ExitStack) -> None:
        mark = f"glfm{os.getpid() % 10**5}{next(_NUMBERS)}"
        self.names = {host: f"{mark}{host}" for host in ("hub", "a", "b")}
        for name in self.names.values():
            run("ip", "netns", "add", name)
            stack.callback(run, "ip", "netns", "del", name)
            self.inside(name, "ip", "link", "set", "lo", "up")
        hub = self.names["hub"]
        self.inside(hub, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for i, host in enumerate(("here", "a", "b")):
            near, far = f"{mark}{i}n", f"{mark}{i}f"
            run("ip", "link", "add", near, "netns", hub, "type", "veth", "peer", "name", far)
            if host == "here":  # with its addresses and routes; those of a namespace go with it
                stack.callback(run, "ip", "link", "del", far)
            self.inside(hub, "ip", "address", "add", f"10.77.{i}.1/24", "dev", near)
            self.inside(hub, "ip", "link", "set", near, "up")
            if host != "here":
                run("ip", "link", "set", far, "netns", self.names[host])
            where = self.names.get(host)
            self.inside(where, "ip", "address", "add", f"10.77.{i}.2/24", "dev", far)
            self.inside(where, "ip", "link", "set", far, "up")
            self.inside(where, "ip", "route", "add", "10.77.0.0/16", "via", f"10.77.{i}.1")
        self.links = {host: f"{mark}{i}n" for i, host in enumerate(("here", "a", "b"))}

    def inside(self, name: str | None, *command: str) -> None:
        """Run a command in a namespace; None: here."""
        run(*(self.on(name) if name else ()), *command)

    @staticmethod
    def on(name: str) -> tuple[str, ...]:
        return "ip", "netns", "exec", name

    def link(self, host: str, state: str) -> None:
        """Let the link of a host to the hub be up or down."""
        self.inside(self.names["hub"], "ip", "link", "set", self.links[host], state)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the command ip (iproute2)")
    with ExitStack() as stack:
        probe = f"glfm{os.getpid() % 10**5}p"
        try:
            run("ip", "netns", "add", probe)
            stack.callback(run, "ip", "netns", "del", probe)
            run("ip", "link", "add", probe, "netns", probe, "type", "veth")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"there are no network namespaces or no veth here: {error.stderr.strip()}")
        yield Hosts(stack)


@contextmanager
def cluster_on(hosts: Hosts, directory: Path, **of_first: str) -> Iterator[distributed.Client]:
    """A cluster whose scheduler is on the hub, and whose workers are on the hosts."""
    with Processes(directory, host="10.77.0.1", prefix=hosts.on(hosts.names["hub"])) as cluster:
        local = of_first.pop("local", str(directory))
        for i, (host, more) in enumerate({"a": of_first, "b": {}}.items(), start=1):
            kept = ("--local-directory", local if host == "a" else str(directory))
            prefix = hosts.on(hosts.names[host])
            cluster.start_worker("--host", f"10.77.{i}.2", *kept, prefix=prefix, **more)
        with distributed.Client(cluster.address, timeout=120, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=120)
            yield client


def test_hosts(hosts, frame, local, tmp_path):
    """Workers have addresses of their own, and both have shards."""
    with cluster_on(hosts, tmp_path) as client:
        assert {re.split("[:/]+", one)[1] for one in client.nthreads()} == {"10.77.1.2", "10.77.2.2"}
        engine = glfm.DaskEngine(client, n_shards=3)
        assert_same_draws(fit(frame, engine).draws_, local.draws_)
        table = dd.from_pandas(frame, npartitions=3)
        assert_same_draws(fit(table, glfm.DaskEngine(client)).draws_, local.draws_)
    assert len(engine.traffic_.waited) == 2


@pytest.mark.parametrize("seconds", [5.0, None], ids=["for a while", "for good"])
def test_a_link_that_is_down(hosts, frame, local, tmp_path, seconds):
    """Data that was not received is sent again; after 30 s connections end, and the other worker goes on."""

    def split() -> None:
        hosts.link("a", "down")
        if seconds is not None:
            later(seconds, lambda: hosts.link("a", "up"))

    with cluster_on(hosts, tmp_path) as client:
        engine = Disturbed(client, split)
        model = fit(frame, engine)
    assert engine.at is not None
    assert_same_draws(model.draws_, local.draws_)


def test_a_client_that_is_cut_off(hosts, frame, local, tmp_path):
    path = tmp_path / "fit.glfm"
    with cluster_on(hosts, tmp_path) as client:
        engine = Disturbed(client, lambda: hosts.link("here", "down"))
        with pytest.raises(SamplerError, match="go on from the checkpoint"):
            fit(frame, engine, checkpoint=path, checkpoint_every=1e-3)
        assert time.monotonic() - engine.at < IN_TIME
        hosts.link("here", "up")
    assert_same_draws(fit(frame, glfm.LocalEngine(n_shards=3), resume=path).draws_, local.draws_)


def test_a_slow_host(hosts, frame, local, tmp_path):
    """Whose worker yields to three processes that compute."""
    with ExitStack() as stack, cluster_on(hosts, tmp_path) as client:
        slow = next(one for one in client.nthreads() if "10.77.1.2" in one)
        client.run(os.nice, 15, workers=[slow])
        for _ in range(3):
            idler = subprocess.Popen(["python3", "-c", "while True: pass"])
            stack.callback(idler.wait)
            stack.callback(idler.kill)
        assert_same_draws(fit(frame, glfm.DaskEngine(client, n_shards=3)).draws_, local.draws_)


def test_netem(hosts, frame, local, tmp_path):
    """Latency that varies, and two of a hundred packets lost."""
    netem = ("tc", "qdisc", "add", "dev", hosts.links["a"], "root", "netem")
    try:
        hosts.inside(hosts.names["hub"], *netem, "delay", "20ms", "10ms", "loss", "2%")
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        pytest.skip(f"the kernel has no netem, or there is no command tc: {error}")
    with cluster_on(hosts, tmp_path) as client:
        assert_same_draws(fit(frame, glfm.DaskEngine(client, n_shards=3)).draws_, local.draws_)


# ---- full disks


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    """A disk of 300 kB."""
    (directory := tmp_path / "disk").mkdir()
    try:
        run("mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(directory))
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        pytest.skip(f"a small disk cannot be mounted, which needs root: {error}")
    yield directory
    run("umount", "--lazy", str(directory))


def fill(directory: Path) -> None:
    """Write until there is no room."""
    with suppress(OSError), (directory / "filler").open("wb", 0) as file:
        while True:
            file.write(bytes(4096))


def test_a_full_disk_of_a_worker(hosts, disk, frame, local, tmp_path):
    """Where it keeps what is its own: a fit needs none of it."""
    with cluster_on(hosts, tmp_path, local=str(disk), TMPDIR=str(disk)) as client:
        fill(disk)
        assert_same_draws(fit(frame, glfm.DaskEngine(client, n_shards=3)).draws_, local.draws_)


def test_a_full_disk_under_a_checkpoint_folder(network, disk, frame, local, tmp_path):
    """The fit stops with an error; when there is room again, it goes on from the folder."""
    table, path = dd.from_pandas(frame, npartitions=3), disk / "checkpoint"
    engine = Disturbed(network.client, lambda: fill(disk), n_shards=None)
    with pytest.raises(FileError, match="No space left on device"):
        fit(table, engine, checkpoint=path, checkpoint_every=1e-3)
    (disk / "filler").unlink()
    run("mount", "-o", "remount,size=100m", str(disk))
    model = fit(table, glfm.DaskEngine(network.client), resume=path)
    assert_same_draws(model.draws_, local.draws_)
