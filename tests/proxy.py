"""A proxy between the processes of a cluster: it delays what passes, holds it up, or cuts connections."""

import asyncio
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

_PIECE = 1 << 16  # bytes


class Proxy:
    """Passes TCP connections on, in an event loop of its own.

    Parameters
    ----------
    target
        Where to: host and port.
    host
        Where it listens.

    Attributes
    ----------
    port
        Where it listens.
    delay
        Seconds for which every piece of data is held back.
    rate
        Most bytes per second of each direction of a connection; None: no limit.
    """

    def __init__(self, target: tuple[str, int], host: str = "127.0.0.1") -> None:
        self._target, self._host = target, host
        self.delay, self.rate = 0.0, None
        self._open: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self.port: int = self._do(self._listen()).result(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._close()).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def hold(self) -> None:
        """Let nothing pass, and say nothing: a black hole."""
        self._loop.call_soon_threadsafe(self._passing.clear)

    def heal(self) -> None:
        """Let everything pass again, what was held up first, as a network does."""
        self._loop.call_soon_threadsafe(self._passing.set)

    def cut(self) -> int:
        """Cut all connections that are open; return how many; new ones are let in."""
        return int(self._do(self._cut()).result(10))

    def _do(self, work: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _listen(self) -> int:
        self._passing = asyncio.Event()
        self._passing.set()
        self._server = await asyncio.start_server(self._serve, self._host, 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        for source, sink in ((reader, far_writer), (far_reader, writer)):
            pump = asyncio.ensure_future(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(_PIECE):
                await asyncio.sleep(self.delay + (len(piece) / self.rate if self.rate else 0.0))
                await self._passing.wait()
                sink.write(piece)
                await sink.drain()
        except OSError:
            pass
        finally:
            self._open.discard(sink)
            sink.close()

    async def _cut(self) -> int:
        found = list(self._open)
        for writer in found:
            writer.transport.abort()
        return len(found) // 2

    async def _close(self) -> None:
        self._server.close()
        await self._cut()
        for pump in list(self._pumps):
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
