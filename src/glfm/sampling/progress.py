"""Progress on stderr: bars for chains and compiled code, or for an answer, with the time that is left.

A command has several parts, one after the other. The time that is left is always that to its end: inside
`with followed_by(...)` what comes after is counted too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

_PATIENCE = 2.0  # seconds for which an answer may take without a word
_EVERY = 20.0  # seconds between two lines in a file
_LEAST = 0.005  # of all sweeps, from which on the time that is left is said

Item = TypeVar("Item")


class _Ahead(NamedTuple):
    """What comes after the part of a command that is being done."""

    times: float = 0.0  # as long as that part
    until: float | None = None  # by when it will be over, on the monotonic clock

    def left(self, done: float, seconds: float, most: float | None = None) -> str:
        """Return how long it is to the end of all, as text.

        A share of a part is `done` after so many seconds, and will be within `most`.
        """
        part = seconds / max(done, 1e-9)
        if most is not None:
            part = min(part, max(most, seconds))
        left = part - seconds + self.times * part
        if self.until is not None:
            left = min(left, max(self.until - time.monotonic(), 0.0))
        return f"about {left:.0f} s left" if left < 120.0 else f"about {left / 60.0:.0f} min left"


_AHEAD: ContextVar[_Ahead] = ContextVar("ahead", default=_Ahead())  # noqa: B039 - it never changes


@contextmanager
def followed_by(times: float = 0.0, until: float | None = None) -> Iterator[None]:
    """Count what comes after this part of a command, `times` as long, in the time that is said to be left.

    `until` is by when all will be over, on the monotonic clock, if there is a time budget.
    """
    token = _AHEAD.set(_Ahead(times, until))
    try:
        yield
    finally:
        _AHEAD.reset(token)


def _bars(*columns: Any) -> Any:
    """Return bars of rich."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    return Bars(*columns, console=Console(stderr=True))


class Progress:
    """Bars on stderr for each chain and all of them, or nothing; in a file also a line now and then.

    Parameters
    ----------
    done
        The sweeps that each chain has made before.
    n_sweeps
        How many each will have made.
    shown
        Whether anything is shown.
    seconds
        A time budget, which the time left does not exceed.
    """

    def __init__(
        self, done: Sequence[int], n_sweeps: int, shown: bool = True, seconds: float | None = None
    ) -> None:
        self._done, self._start = list(done), list(done)
        self._first, self._total = sum(done), n_sweeps * len(done)
        self._begin = self._timed = self._said = time.monotonic()
        self._from = self._first  # sweeps at the moment from which on they are timed
        self._compiling = False
        self._seconds, self._ahead = seconds, _AHEAD.get()
        self._all: Any = None
        self._bars: Any = None
        self._tasks: list[Any] = []
        self._compiled: Any = None
        if shown:
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

            self._bars = _bars(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[what]}"),
            )
            self._tasks = [
                self._bars.add_task(f"chain {chain}", total=n_sweeps, completed=sweep, what=_sweeps(0))
                for chain, sweep in enumerate(done, start=1)
            ]
            self._all = self._bars.add_task("all", total=self._total, completed=self._first, what="sweeps")

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str) -> None:
        """Show a line above the bars."""
        if self._bars is not None:
            self._bars.console.print(text)

    def update(self, chain: int, sweep: int, n_features: int) -> None:
        """Show where a chain is."""
        if self._bars is not None:
            self._bars.update(self._tasks[chain], completed=sweep, what=_sweeps(n_features))
            self._done[chain] = sweep
            self._update_all()

    def _update_all(self) -> None:
        done, now = sum(self._done), time.monotonic()
        most_made = max(made - before for made, before in zip(self._done, self._start, strict=True))
        if most_made <= 1:  # the first sweep may have compiled what it needs
            self._timed, self._from = now, done
        timed = (done - self._from) / max(self._total - self._from, 1)
        if self._compiling or timed < _LEAST:  # these sweeps tell nothing of how long the others will take
            self._bars.update(self._all, completed=done, what="sweeps")
            return
        most = None if self._seconds is None else self._seconds - (self._timed - self._begin)
        left = self._ahead.left(timed, now - self._timed, most)
        self._bars.update(self._all, completed=done, what=f"sweeps, {left}")
        if not sys.stderr.isatty() and now - self._said >= _EVERY:
            self._said = now
            _say("sampling", (done - self._first) / max(self._total - self._first, 1), left)

    def prepare(self, done: int, total: int) -> None:
        """Show how much of the compiled code is there; all of it ends the bar.

        Sweeps that wait for it are not timed: what they take says nothing of the time that is left.
        """
        self._compiling = done < total
        if self._compiling:
            self._timed, self._from = time.monotonic(), sum(self._done)
        if self._bars is None or (self._compiled is None and done >= total):
            return
        if self._compiled is None:
            self._compiled = self._bars.add_task("compiled code", total=total, what="once per installation")
        self._bars.update(self._compiled, completed=done, visible=done < total)


def _sweeps(n_features: int) -> str:
    return f"sweeps, {n_features} features"


class Answering:
    """Progress of one answer: nothing for a short one; then a bar, or a line now and then in a file.

    What is inside `with Answering(...)` says how far it is by `tracked`, at any depth; of an answer that is a
    part of another only the outer one is shown.
    """

    def __init__(self, what: str, shown: bool = True) -> None:
        self._what, self._shown = what, shown
        self._bars: Any = None
        self._task: Any = None
        self._token: Any = None
        self._begin = self._said = time.monotonic()
        self._ahead = _AHEAD.get()
        self._low, self._high = 0.0, 1.0  # the part of the whole that is being done

    def __enter__(self) -> Self:
        if self._shown and _CURRENT.get() is None:
            self._token = _CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _CURRENT.reset(self._token)
        if self._bars is not None:
            self._bars.stop()

    def tracked(self, items: Iterable[Item], n: int) -> Iterator[Item]:
        """Yield `n` items, each of which is one part of what is being done."""
        low, high = self._low, self._high
        try:
            for i, item in enumerate(items):
                self._low, self._high = (low + (high - low) * part / n for part in (i, i + 1))
                yield item
                self._show(low + (high - low) * (i + 1) / n)
        finally:
            self._low, self._high = low, high

    def _show(self, done: float) -> None:
        now = time.monotonic()
        if now - self._begin < _PATIENCE or (done >= 1.0 and self._bars is None):
            return
        left = self._ahead.left(done, now - self._begin)
        if sys.stderr.isatty():
            if self._bars is None:
                from rich.progress import BarColumn, TaskProgressColumn, TextColumn

                left_column = TextColumn("{task.fields[left]}")
                self._bars = _bars(TextColumn(self._what), BarColumn(), TaskProgressColumn(), left_column)
                self._task = self._bars.add_task("", total=1.0, left="")
                self._bars.start()
            self._bars.update(self._task, completed=done, left=left)
        elif now - self._said >= _EVERY:
            self._said = now
            _say(self._what, done, left)


_CURRENT: ContextVar[Answering | None] = ContextVar("answering", default=None)


def tracked(items: Iterable[Item], n: int) -> Iterator[Item]:
    """Yield `n` items, each a part of the answer that is being found, if one is shown."""
    answering = _CURRENT.get()
    yield from items if answering is None else answering.tracked(items, n)


def _say(what: str, done: float, left: str) -> None:
    """Write one line: how much of a part is done, and how long it is to the end of all."""
    print(f"{what}: {done:.0%}, {left}", file=sys.stderr, flush=True)
