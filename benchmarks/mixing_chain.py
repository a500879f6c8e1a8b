"""One chain of one sampler, watched sweep by sweep: what benchmarks/mixing.py asks of either commit.

It is read by the interpreters of both commits, so that it uses public names of the package only: an engine of the
fit's own runs the chain and looks at every sweep, so that nothing has to be kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import mixing_tables
import numpy as np

AFTER = (25, 50, 100, 200, 600)  # sweeps after which the features are compared with the true ones
GRID = (25, 50, 75, 100, 150, 200, 300, 400, 500, 600)  # sweeps after which chains may agree
LARGE = 0.05  # share of the rows from which on a feature is large, unless all others have it
N_CELLS = 200  # of the field
MOST_ROWS = 5_000  # whose log-likelihood is traced


def warmup_of(sweeps: int) -> int:
    """Return the sweeps that are not compared: a third, as in a fit with default settings."""
    return sweeps // 3


def correlations(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the correlation of each true feature with each found one over rows; 0 for one that does not vary."""
    a, b = (m - m.mean(axis=0) for m in (truth.astype(np.float32), found.astype(np.float32)))
    scale = np.sqrt((a**2).sum(axis=0))[:, None] * np.sqrt((b**2).sum(axis=0))
    return np.divide(a.T @ b, scale, out=np.zeros_like(scale), where=scale > 0)


def likeness(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return, per true feature, the largest absolute correlation with a found one."""
    return np.abs(correlations(truth, found)).max(axis=1, initial=0.0)


def n_large(Z: np.ndarray) -> int:
    """Return the number of features that more than 5 % of the rows have, and more than 5 % have not."""
    share = Z.mean(axis=0)
    return int(((share > LARGE) & (share < 1 - LARGE)).sum())


class Watch:
    """What is noted of a chain after each of its sweeps."""

    def __init__(self, table: mixing_tables.Table, sweeps: int) -> None:
        self.truth, self.best, self.warmup = table.Z, table.guesses, warmup_of(sweeps)
        rng = np.random.default_rng(0)
        n_rows = len(table.frame)
        self.rows = rng.integers(n_rows, size=N_CELLS)
        self.column, self.place = rng.random((2, N_CELLS))
        self.spaced = np.unique(np.linspace(0, n_rows - 1, min(n_rows, MOST_ROWS)).round().astype(np.intp))
        self.scale = n_rows / self.spaced.size
        self.traces: dict[str, list[Any]] = {
            name: [] for name in ("seconds", "log_likelihood", "features", "large", "co_activation", "field")
        }
        self.likeness: dict[int, np.ndarray] = {}
        self.votes = None if self.truth is None else np.zeros(self.truth.shape)

    def look(self, draw: Any, seconds: float) -> None:
        """Note the state after a sweep that took so many processor seconds."""
        Z = draw.Z
        note = {
            "seconds": seconds,
            "log_likelihood": float(np.nansum(draw.log_densities(self.spaced))) * self.scale,
            "features": draw.n_features,
            "large": n_large(Z),
            "co_activation": float((Z.sum(axis=0).astype(np.float64) ** 2).sum()),
            "field": self.field(draw),
        }
        for name, value in note.items():
            self.traces[name].append(value)
        sweep = len(self.traces["seconds"])
        if self.truth is not None and (sweep in AFTER or sweep > self.warmup):
            self.compare(sweep, Z)

    def field(self, draw: Any) -> np.ndarray:
        """Return (Z B) in units of noise at fixed places: a row, a column, one of its pseudo-columns."""
        B, noise = draw.B, draw.noise_variance
        names = list(B)
        chosen = [names[int(u * len(names))] for u in self.column]
        at = [int(u * B[name].shape[1]) for name, u in zip(chosen, self.place, strict=True)]
        weights = np.column_stack([B[name][:, s] for name, s in zip(chosen, at, strict=True)])
        sd = np.sqrt([noise[name] for name in chosen])
        return (draw.activations_of(self.rows) * weights.T).sum(axis=1) / sd

    def compare(self, sweep: int, Z: np.ndarray) -> None:
        """Compare with the truth; after warm-up, the feature most like a true one votes for the rows it has."""
        found = correlations(self.truth, Z)
        if sweep in AFTER:
            self.likeness[sweep] = np.abs(found).max(axis=1, initial=0.0)
        if sweep > self.warmup and Z.shape[1]:
            best = np.abs(found).argmax(axis=1)
            opposite = found[np.arange(best.size), best] < 0
            self.votes += Z[:, best] ^ opposite

    def line(self) -> dict[str, Any]:
        """Return the numbers that stand in the JSON."""
        traces = {name: np.array(values) for name, values in self.traces.items() if name != "field"}
        sweeps = traces["seconds"].size
        late, grid = slice(self.warmup, None), [t for t in GRID if t <= sweeps]
        line: dict[str, Any] = {
            "sweep_ms": round(1e3 * float(traces["seconds"][late].mean()), 4),
            "sweeps_seconds": round(float(traces["seconds"].sum()), 3),
            "features": round(float(traces["features"][late].mean()), 2),
            "large": round(float(traces["large"][late].mean()), 2),
        }
        for name, digits in (("features", 0), ("large", 0), ("log_likelihood", 1)):
            line[f"{name}_after"] = {t: round(float(traces[name][t - 1]), digits) for t in grid}
        if self.truth is not None:
            line["likeness_after"] = {t: rounded(each) for t, each in self.likeness.items()}
            said = self.votes > 0.5 * (sweeps - self.warmup)  # by most sweeps
            pairs = zip(self.truth.T, said.T, strict=True)
            line["likeness"] = rounded(np.array([mixing_tables.correlation(*pair) for pair in pairs]))
            line["only_one_is_right"] = only_one_is_right(self.truth, self.best, said)
        return line


def only_one_is_right(truth: np.ndarray, best: np.ndarray, said: np.ndarray) -> list[list[int]]:
    """Return, per feature, in how many rows the best guess alone is right, and in how many what sweeps say is."""
    right, ours = best == truth, said == truth
    return np.stack([(right & ~ours).sum(axis=0), (ours & ~right).sum(axis=0)], axis=1).tolist()


def rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), 4) for value in values]


def run_chain(table: mixing_tables.Table, seed: int, sweeps: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit one chain from its own start; return the numbers of the JSON, and all traces."""
    import glfm

    watch, begin = Watch(table, sweeps), time.process_time()
    started = []

    class Watched(glfm.LocalEngine):
        def run(self, chains: Any, *_: Any, **__: Any) -> bool:
            started.append(time.process_time() - begin)
            (chain,) = chains
            states = iter(chain)
            while not chain.ended:
                before = time.process_time()
                next(states)
                seconds = time.process_time() - before
                chain.keep_warmup()  # a compact copy of the state, which is not to stay
                chain.holds_warmup = False
                watch.look(chain.draws.pop(), seconds)
            return True

    n_warmup = warmup_of(sweeps)
    settings: dict[str, Any] = {"n_chains": 1, "n_warmup": n_warmup, "n_draws": 1, "thin": sweeps - n_warmup}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        glfm.GLFM(table.schema, random_state=seed, progress=False, engine=Watched(), **settings).fit(
            table.frame
        )
    line = {"start_seconds": round(started[0], 3), **watch.line()}
    traces = {name: np.array(values, dtype=np.float64) for name, values in watch.traces.items()}
    return line, {**traces, "field": traces["field"].astype(np.float32), "start_seconds": started[0]}


# ---- a process of one commit


def answer() -> None:
    """Read what is asked, line by line, and answer each with a line of JSON."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what else is printed does not mix with answers
    opened: dict[str, tuple[mixing_tables.Table, str]] = {}
    for text in sys.stdin:
        asked = json.loads(text)
        try:
            said = describe() if "table" not in asked else _answer(asked, opened)
        except Exception as error:
            traceback.print_exc()
            said = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(said), file=out, flush=True)


def _answer(asked: dict[str, Any], opened: dict[str, tuple[mixing_tables.Table, str]]) -> dict[str, Any]:
    import glfm

    name = asked["table"]
    if name not in opened:
        opened.clear()
        table = mixing_tables.open_table(name, asked["quick"])
        opened[name] = table, table.digest
        run_chain(table, 1_000, 12)  # compiles, or loads what was compiled
    table, digest = opened[name]
    about = {"digest": digest, "rows": len(table.frame), "columns": table.frame.shape[1]}
    if asked["traces"] is None:  # independent components have none
        import mixing_components

        return {**about, **mixing_components.run(table, asked["seed"])}
    try:
        line, traces = run_chain(table, asked["seed"], asked["sweeps"])
    except glfm.SamplerError as error:  # that a sampler gives up is a result
        return {**about, "failed": str(error)[:300]}
    part = Path(f"{asked['traces']}.part.npz")
    np.savez_compressed(part, **traces)
    part.replace(asked["traces"])
    return {**about, **line}


def describe() -> dict[str, Any]:
    """Return which sources the package of this interpreter has, and which commit they are, if that is known."""
    import glfm

    package = Path(glfm.__file__).parent
    sources = sources_digest(package)
    return {"sources": sources, "commit": _commit(package, sources), "version": glfm.__version__}


def sources_digest(package: Path) -> str:
    """Return the sources of a package in a few letters."""
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        found.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:12]


def _commit(package: Path, sources: str) -> str | None:
    """Return the commit of sources that git knows here, or of the folder that they were installed from."""
    if _git(package, "ls-files", "__init__.py"):
        changed = "+changes" if _git(package, "status", "--porcelain", ".") else ""
        return f"{_git(package, 'rev-parse', 'HEAD')}{changed}"
    origin = json.loads(distribution("pyglfm").read_text("direct_url.json") or "{}")
    if "vcs_info" in origin:
        return str(origin["vcs_info"]["commit_id"])
    folder = Path(origin.get("url", "").removeprefix("file://")) / "src" / "glfm"
    if folder.is_dir() and sources_digest(folder) == sources:
        return _git(folder, "rev-parse", "HEAD") or None
    return None


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
