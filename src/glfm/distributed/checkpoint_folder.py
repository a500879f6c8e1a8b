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

_FORMAT, _VERSION = "glfm-folder", 1


class CheckpointFolder:
    """The folder that holds the chains of a fit while it runs.

    `fit.json` identifies the fit. Each chain has a folder with one file per draw, one per shard for the rows,
    and `state.npz` for what the rows share; that one is written last, atomically, and says which files are
    valid.

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
    """

    def __init__(
        self, path: str | PathLike[str], every: float, identity: Mapping[str, Any], resume: bool
    ) -> None:
        if not every > 0:
            raise SchemaError(f"checkpoint_every is a positive number of seconds, not {every!r}.")
        self.path, self.every, self.took = Path(path).absolute(), every, 0.0
        head = {"format": _FORMAT, "version": _VERSION, **identity}
        if resume:
            self._check(json.loads(json.dumps(head)))
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
            raise FileError(f"The folder {str(path)!r} cannot be written to: {error.strerror}.") from error

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
        """Do nothing: there is one round."""

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
                if not (target := folder / f"draw-{draw.index}.npz").exists():
                    _write(target, _draw_arrays(draw))
            _write(folder / "state.npz", _state_arrays(shared, len(chain.draws)))
            for old in folder.glob("sweep-*"):
                if old.name != f"sweep-{shared.sweep}":
                    shutil.rmtree(old)
        except OSError as error:
            raise FileError(
                f"The folder {str(self.path)!r} cannot be written to: {error.strerror}."
            ) from error

    def restore(self, chain: Chain) -> None:
        """Set a chain to the state that was last written, if there is one."""
        folder = self._chain_folder(chain.index)
        if not (folder / "state.npz").exists():
            return
        try:
            state, n_draws = _read_state(chain.problem, folder / "state.npz")
            draws = [
                _read_draw(chain.problem, folder / f"draw-{t}.npz", chain.index, t) for t in range(n_draws)
            ]
        except (OSError, ValueError, KeyError) as error:
            raise FileError(f"The checkpoint {str(self.path)!r} is damaged: {error}.") from error
        chain.state, chain.draws = state, draws

    def _chain_folder(self, chain: int) -> Path:
        return self.path / f"chain-{chain}"


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, allow_pickle=False, **arrays)
    os.replace(partial, path)


def _state_arrays(shared: State, n_draws: int) -> dict[str, Any]:
    return {
        "rng": shared.rng,
        "B": shared.B,
        "variance": shared.variance,
        **_numbered("theta", shared.theta),
        **_numbered("step", shared.step),
        "numbers": np.array([shared.sweep, shared.width, n_draws], dtype=np.int64),
        "alpha": np.array(shared.alpha),
    }


def _read_state(problem: Problem, path: Path) -> tuple[State, int]:
    with np.load(path, allow_pickle=False) as arrays:
        sweep, width, n_draws = arrays["numbers"].tolist()
        state = State(
            rng=arrays["rng"],
            Z=np.zeros((0, 0), dtype=np.uint8),
            width=width,
            Y=np.zeros((0, problem.n_pseudo)),
            B=arrays["B"],
            variance=arrays["variance"],
            theta=_listed("theta", arrays, problem),
            step=_listed("step", arrays, problem),
            alpha=float(arrays["alpha"]),
            sweep=sweep,
        )
    return state, n_draws


def _draw_arrays(draw: Draw) -> dict[str, Any]:
    return {
        "weights": draw.weights,
        "variances": draw.variances,
        "packed": draw.packed,
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
            known_log_likelihood=log_likelihood,
        )


def _numbered(name: str, columns: Sequence[FloatArray]) -> dict[str, FloatArray]:
    """Return arrays, one per column of the table, by the names that they have in a file."""
    return {f"{name}-{d}": array for d, array in enumerate(columns)}


def _listed(name: str, arrays: Mapping[str, Any], problem: Problem) -> list[FloatArray]:
    return [arrays[f"{name}-{d}"] for d in range(len(problem.kinds))]
