"""Progress of the chains on the terminal: one bar each, with the time that is left."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self


class Progress:
    """Bars on stderr, or nothing at all; `done` are the sweeps that each chain has made before."""

    def __init__(self, done: Sequence[int], n_sweeps: int, shown: bool = True) -> None:
        self._bars: Any = None
        self._tasks: list[Any] = []
        if shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bars

            self._bars = Bars(
                TextColumn("chain {task.fields[number]}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("sweeps, {task.fields[features]} features, left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._tasks = [
                self._bars.add_task("", total=n_sweeps, completed=sweep, number=chain, features=0)
                for chain, sweep in enumerate(done, start=1)
            ]

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
            self._bars.update(self._tasks[chain], completed=sweep, features=n_features)
