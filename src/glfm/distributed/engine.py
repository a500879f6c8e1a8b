"""The engine of a cluster: this process controls the chains, workers hold the shards of their rows."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from threading import Event
from typing import Any, ClassVar

from distributed import Client, get_client

from glfm.distributed.chain_run import ChainRun
from glfm.distributed.checkpoint_folder import CheckpointFolder
from glfm.distributed.cluster_shards import Traffic
from glfm.distributed.connection import Connection
from glfm.distributed.placement import Placement
from glfm.errors import FitWarning, SamplerError, SchemaError
from glfm.sampling.chain import Chain
from glfm.sampling.engine import Engine, Keeper
from glfm.sampling.parameters import Shared

_VERSIONS = "{name: __import__(name).__version__ for name in ('glfm', 'numpy', 'numba')}"
_ANSWER = 60.0  # seconds in which a worker must say which software it has
_SHARE, _SECONDS = 0.25, 10.0  # a worker for which the others wait for more than both is a straggler


class DaskEngine(Engine):
    """Run chains and shards on the workers of a `distributed` cluster.

    Rows stay on their workers between sweeps; sums over rows, weights and the like travel. The draws are
    those, bit for bit, of `LocalEngine` with as many shards on machines of the same make.

    Parameters
    ----------
    client
        A `distributed.Client`; None: the current one.
    n_shards
        Into how many shards the rows are cut; None: one per 50,000 rows, at most 64, or, if the table is a
        dask DataFrame, one per partition. Draws depend on it, but not on the workers.
    save_every
        Seconds between two times that the rows of a chain, features and pseudo-observations, are fetched, so
        that the chain can go on from there if a worker is lost. It is longer if that would take more than a
        tenth of the time, and shorter if a checkpoint is written more often.

    Attributes
    ----------
    traffic_ : Traffic
        What travelled in the last run: `round_trips`, numbers `sent` and `received`, seconds `waited` for
        each worker, over all chains and shards.
    """

    only_shards: ClassVar[bool] = True
    grace: ClassVar[float] = 10.0

    def __init__(
        self, client: Client | None = None, n_shards: int | None = None, save_every: float = 60.0
    ) -> None:
        self.client = client
        self.n_shards = n_shards
        self.save_every = save_every

    def __repr__(self) -> str:
        return f"DaskEngine({self.client!r}, n_shards={self.n_shards})"

    def __deepcopy__(self, memo: object) -> DaskEngine:
        return DaskEngine(self.client, self.n_shards, self.save_every)

    def __getstate__(self) -> dict[str, Any]:
        return {"client": None, "n_shards": self.n_shards, "save_every": self.save_every}

    def check(self) -> None:
        """Refuse a client that is closed, and workers that are missing or have other software."""
        check_cluster(self.active_client)
        if not self.save_every > 0:
            raise SchemaError(f"save_every is a positive number of seconds, not {self.save_every!r}.")

    @property
    def active_client(self) -> Client:
        """The client in force."""
        if self.client is not None:
            return self.client
        try:
            return get_client()
        except ValueError:
            raise SamplerError(
                "There is no dask client: make one with distributed.Client(...) and pass it to DaskEngine."
            ) from None

    def threads(self, n_jobs: int | None, n_chains: int) -> int:
        """Return the number of chains: all run at once, since the workers do their work."""
        return n_chains

    def open(self, chains: Sequence[Chain], n_jobs: int | None, keeper: Keeper | None) -> Placement:
        self.check()
        if not all(chain.n_shards for chain in chains):
            raise SchemaError(
                "The chains are those of the collapsed sampler, which has no shards to spread over workers: "
                "go on with LocalEngine, or fit again."
            )
        self.traffic_ = Traffic()
        save_every = self.save_every if keeper is None else min(self.save_every, keeper.every)
        folder = keeper if isinstance(keeper, CheckpointFolder) else None
        return Placement(self.active_client, chains, save_every, self.traffic_, folder)

    def close(self, pool: Any) -> None:
        placement: Placement = pool
        placement.release()
        if placement.losses:
            warnings.warn(
                f"Workers were lost on the way ({'; '.join(placement.losses)}): their rows were rebuilt from "
                "the last state that had been saved, and the draws are the same as without the loss.",
                FitWarning,
                stacklevel=5,
            )
        for address, share in stragglers(self.traffic_.waited, placement.seconds):
            warnings.warn(
                f"For {share:.0%} of the time the other workers had to wait for {address}: it is slower, "
                "busier or farther away than they are, and the fit would be faster without it.",
                FitWarning,
                stacklevel=5,
            )

    def is_compiled(self, chains: Sequence[Chain]) -> bool:
        """Whether every chain has made a sweep: workers compile on their own."""
        return False

    def sweeps(self, chain: Chain, stop: Event, pool: Any) -> Generator[Shared]:
        if chain.holds_warmup:
            chain.draws, chain.holds_warmup = [], False
        if chain.ended:
            return
        run = ChainRun(chain, pool, stop, 0.8 * self.grace)
        begin = time.monotonic()
        try:
            yield from run.sweeps()
        finally:
            pool.count(run.traffic, time.monotonic() - begin)


def current_client() -> Client | None:
    """Return the current client, if there is one that runs."""
    try:
        client = get_client()
    except ValueError:
        return None
    return client if client.status == "running" else None


def check_cluster(client: Any) -> None:
    """Refuse a client that cannot be used, and workers that are missing or have other software."""
    if not isinstance(client, Client) or client.asynchronous:
        what = "an asynchronous one" if isinstance(client, Client) else f"a {type(client).__name__}"
        raise SchemaError(f"DaskEngine takes a synchronous distributed.Client, not {what}.")
    if client.status in ("closing", "closed"):
        raise SamplerError(
            f"The dask client is {client.status}: make a new distributed.Client and pass it to DaskEngine."
        )
    connection = Connection(client)
    present = connection.steadily(lambda: connection.ask(client.nthreads))
    if not present:
        raise SamplerError("The cluster has no workers: start some, or scale it, before the fit.")
    there = connection.steadily(lambda: connection.ask(lambda: _software(client, list(present))))
    here = eval(_VERSIONS)
    for address, found in there.items():
        if isinstance(found, ModuleNotFoundError):
            raise SamplerError(
                f"The worker {address} has not got the package {found.name!r}: install pyglfm "
                f"{here['glfm']} on all workers."
            )
        if isinstance(found, OSError):  # of which TimeoutError is one
            raise SamplerError(
                f"The worker {address} does not answer ({found}): end it, or mend its network."
            )
        if isinstance(found, Exception):
            raise SamplerError(f"The worker {address} cannot import glfm ({found}): mend its installation.")
        for name, version in here.items():
            if found[name] != version:
                raise SamplerError(
                    f"The worker {address} has {name} {found[name]} but this process has {version}: install "
                    "the same on both, since draws may depend on it."
                )


async def _software(client: Client, workers: Sequence[str]) -> dict[str, Any]:
    """Return for each worker the versions of its software, or the error that it had in telling."""

    async def one(address: str) -> Any:
        asked = client.run(eval, _VERSIONS, workers=[address], on_error="return")
        try:
            return (await asyncio.wait_for(asked, _ANSWER))[address]
        except TimeoutError:
            return TimeoutError(f"for {_ANSWER:g} seconds")

    return dict(zip(workers, await asyncio.gather(*map(one, workers)), strict=True))


def stragglers(waited: Mapping[str, float], seconds: float) -> list[tuple[str, float]]:
    """Return workers for which the others waited for too large a share of the time, and the share."""
    found = [(address, idle / seconds) for address, idle in waited.items() if idle > _SECONDS]
    return [(address, share) for address, share in found if share > _SHARE]
