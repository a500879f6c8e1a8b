"""How well chains agree that were run apart: R-hat, effective draws, and after how many sweeps they agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from arviz_stats.base import array_stats
from mixing_chain import GRID, warmup_of

AGREED = 1.05
QUANTITIES = ("log_likelihood", "features", "co_activation", "field")
WORST = 95  # percentile of the R-hats of the field's cells; of effective draws, 100 minus it
APART = 999.0  # stands for an infinite R-hat: chains that stand still, apart


def rhat(values: np.ndarray) -> float | None:
    """Return the rank-normalised split R-hat of chains x draws; None if there are too few to judge."""
    if len(values) < 2 or values.shape[1] < 4:
        return None
    if np.ptp(values) == 0:
        return 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = float(array_stats.rhat(values))
    return APART if not found < APART else found


def ess(values: np.ndarray) -> float | None:
    """Return the effective draws (bulk) of chains x draws; None if there are too few to judge."""
    if len(values) < 2 or values.shape[1] < 4:
        return None
    if np.ptp(values) == 0:
        return float(values.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nan_to_num(array_stats.ess(values, method="bulk")))


def over_cells(judge: Any, field: np.ndarray, percentile: float) -> float | None:
    """Return a percentile, over cells, of what chains x draws x cells are judged by."""
    each = [judge(field[:, :, i]) for i in range(field.shape[2])]
    return None if None in each else float(np.percentile(each, percentile))


def judge(traces: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    """Return what several chains of one table and sampler agree on.

    R-hat and effective draws are those of the sweeps after warm-up; processor seconds those of the same sweeps of
    all chains. The chains agree after t sweeps if the R-hats of the log-likelihood and of the field over
    sweeps t/2 to t are below 1.05; the seconds until then are those of one chain, on average, with its start.
    """
    series = {name: np.array([trace[name] for trace in traces]) for name in (*QUANTITIES, "seconds")}
    n_sweeps = series["seconds"].shape[1]
    late = slice(warmup_of(n_sweeps), None)
    spent = float(series["seconds"][:, late].sum())
    found: dict[str, Any] = {"rhat": {}, "ess": {}, "ess_per_second": {}}
    for name in QUANTITIES:
        values = series[name][:, late]
        if name == "field":
            r, n = over_cells(rhat, values, WORST), over_cells(ess, values, 100 - WORST)
        else:
            r, n = rhat(values), ess(values)
        found["rhat"][name] = None if r is None else round(r, 4)
        found["ess"][name] = None if n is None else round(n, 1)
        found["ess_per_second"][name] = None if n is None else float(f"{n / max(spent, 1e-9):.4g}")
    found["rhat_until"] = until(series, n_sweeps)
    agreed = [t for t, rs in found["rhat_until"].items() if None not in rs and max(rs) < AGREED]
    after = agreed[0] if agreed else None
    found["agree_after_sweeps"], found["agree_after_seconds"] = after, None
    if after is not None:
        start = np.mean([float(trace["start_seconds"]) for trace in traces])
        found["agree_after_seconds"] = round(
            float(start + series["seconds"][:, :after].sum(axis=1).mean()), 3
        )
    return found


def until(series: dict[str, np.ndarray], n_sweeps: int) -> dict[int, list[float | None]]:
    """Return the R-hats of log-likelihood and field over the second half of the first t sweeps."""
    out: dict[int, list[float | None]] = {}
    for t in (t for t in GRID if t <= n_sweeps):
        part = slice(t // 2, t)
        pair = rhat(series["log_likelihood"][:, part]), over_cells(rhat, series["field"][:, part], WORST)
        out[t] = [None if r is None else round(r, 4) for r in pair]
    return out


def read(path: Path) -> dict[str, np.ndarray]:
    """Read the traces of one chain."""
    with np.load(path) as found:
        return dict(found)
