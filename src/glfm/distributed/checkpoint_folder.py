"""The checkpoint of a partitioned table: a folder that all workers share, with the rows of every shard."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from glfm.errors import FileError, SchemaError
from glfm.frames.column import FloatArray
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw
from glfm.sampling.problem import Problem
from glfm.sampling.state import State

_FORMAT, _VERSION = "glfm-folder", 2


class CheckpointFolder:
    """The folder that holds the chains of a fit while it runs.

    `fit.json` identifies the fit, and `round.json` says how often it has gone on for longer. Each chain has a
    folder with one file per draw, one per shard for the rows, and `state.npz` for what the rows share; that
    one is written last, atomically, and says which files are valid.

    Parameters
    ----------
    path
        The folder, with the same path on the workers and in this process.
    every
        Seconds between two times that a chain is written.
    identity
        By name, what must be equal for a fit to go on from here.
    resume
        Whether to go on from a folder that exists.

    Attributes
    ----------
    round
        How often the fit has gone on for longer.
    """

    def __init__(
        self, path: str | PathLike[str], every: float, identity: Mapping[str, Any], resume: bool
    ) -> None:
        if not every > 0:
            raise SchemaError(f"checkpoint_every is a positive number of seconds, not {every!r}.")
        self.path, self.every, self.took = Path(path).absolute(), every, 0.0
        self.round = 0
        head = {"format": _FORMAT, "version": _VERSION, **identity}
        if resume:
            self._check(json.loads(json.dumps(head)))
            if (self.path / "round.json").exists():
                self.round = int(json.loads((self.path / "round.json").read_text()))
            return
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise FileError(
                f"The checkpoint of a table in partitions is a new or empty folder, but {str(path)!r} is "
                f"neither: go on from it with resume={str(path)!r}, remove it, or choose another."
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / "fit.json").write_text(json.dumps(head, indent=1))
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _check(self, head: dict[str, Any]) -> None:
        try:
            found = json.loads((self.path / "fit.json").read_text())
        except (OSError, ValueError) as error:
            raise FileError(f"The folder {str(self.path)!r} is no checkpoint of a dask DataFrame.") from error
        for name, value in head.items():
            if not isinstance(found, dict) or found.get(name) != value:
                raise FileError(
                    f"The folder {str(self.path)!r} is the checkpoint of a fit with another {name}: resume "
                    "with the same table, settings and seed."
                )

    def save(self, chains: Sequence[Chain]) -> None:
        """Do nothing: on a cluster every chain is written when it is due, by `commit`."""

    def start_round(self, number: int) -> None:
        """Say how often the fit has gone on for longer; draws of the rounds before are forgotten."""
        partial = self.path / "round.partial.json"
        try:
            partial.write_text(json.dumps(number))
            os.replace(partial, self.path / "round.json")
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self.round = number

    def finish(self, chains: Sequence[Chain]) -> None:
        """Do nothing: the last state has been written."""

    def shard_files(self, chain: int, sweep: int, n_shards: int) -> list[str]:
        """Return the files to which the shards of a chain write their rows after a sweep."""
        return [str(self._chain_folder(chain) / f"sweep-{sweep}" / f"shard-{i}.npz") for i in range(n_shards)]

    def commit(self, chain: Chain, shared: State, files: Sequence[str]) -> None:
        """Write the draws of a chain and what its rows share, after the shards have written their rows."""
        folder = self._chain_folder(chain.index)
        if not all(map(os.path.exists, files)):
            raise FileError(
                f"What workers write to {str(self.path)!r} is not there for this process: choose a folder "
                "that all machines share."
            )
        try:
            for draw in chain.draws:
                if not (target := self._draw_file(chain, draw.index)).exists():
                    _write(target, _draw_arrays(draw))
            _write(folder / "state.npz", _state_arrays(shared))
            for old in folder.glob("sweep-*"):
                if old.name != f"sweep-{shared.sweep}":
                    shutil.rmtree(old)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def restore(self, chain: Chain) -> None:
        """Set a chain to the state that was last written, if there is one."""
        folder = self._chain_folder(chain.index)
        if not (folder / "state.npz").exists():
            return
        try:
            state = _read_state(chain.problem, folder / "state.npz")
            draws = [
                _read_draw(chain.problem, self._draw_file(chain, t), chain.index, t)
                for t in range(chain.schedule.n_kept(state.sweep))
            ]
        except (OSError, ValueError, KeyError) as error:
            raise FileError(f"The checkpoint {str(self.path)!r} is damaged: {error}.") from error
        chain.state, chain.draws = state, draws

    def _chain_folder(self, chain: int) -> Path:
        return self.path / f"chain-{chain}"

    def _draw_file(self, chain: Chain, index: int) -> Path:
        return self._chain_folder(chain.index) / f"draw-{self.round}-{index}.npz"


def _unwritable(path: Path, error: OSError) -> FileError:
    return FileError(f"The folder {str(path)!r} cannot be written to: {error.strerror}.")


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, allow_pickle=False, **arrays)
    os.replace(partial, path)


def _state_arrays(shared: State) -> dict[str, Any]:
    return {
        "rng": shared.rng,
        "B": shared.B,
        "variance": shared.variance,
        **_numbered("theta", shared.theta),
        **_numbered("step", shared.step),
        "numbers": np.array([shared.sweep, shared.width], dtype=np.int64),
        "alpha": np.array(shared.alpha),
    }


def _read_state(problem: Problem, path: Path) -> State:
    with np.load(path, allow_pickle=False) as arrays:
        sweep, width = arrays["numbers"].tolist()
        return State(
            rng=arrays["rng"],
            Z=np.zeros((0, 0), dtype=problem.dtype),
            width=width,
            Y=np.zeros((0, problem.n_pseudo)),
            B=arrays["B"],
            variance=arrays["variance"],
            theta=_listed("theta", arrays, problem),
            step=_listed("step", arrays, problem),
            alpha=float(arrays["alpha"]),
            sweep=sweep,
        )


def _draw_arrays(draw: Draw) -> dict[str, Any]:
    return {
        "weights": draw.weights,
        "variances": draw.variances,
        "packed": draw.packed,
        **({} if draw.scores is None else {"scores": draw.scores}),
        **_numbered("theta", draw.thetas),
        "numbers": np.array([draw.alpha, draw.log_likelihood]),
    }


def _read_draw(problem: Problem, path: Path, chain: int, index: int) -> Draw:
    with np.load(path, allow_pickle=False) as arrays:
        alpha, log_likelihood = arrays["numbers"].tolist()
        return Draw(
            layout=problem.layout,
            chain=chain,
            index=index,
            alpha=alpha,
            weights=arrays["weights"],
            variances=arrays["variances"],
            thetas=tuple(_listed("theta", arrays, problem)),
            packed=arrays["packed"],
            scores=arrays.get("scores"),
            known_log_likelihood=log_likelihood,
        )


def _numbered(name: str, columns: Sequence[FloatArray]) -> dict[str, FloatArray]:
    """Return arrays, one per column of the table, by the names that they have in a file."""
    return {f"{name}-{d}": array for d, array in enumerate(columns)}


def _listed(name: str, arrays: Mapping[str, Any], problem: Problem) -> list[FloatArray]:
    return [arrays[f"{name}-{d}"] for d in range(len(problem.kinds))]
