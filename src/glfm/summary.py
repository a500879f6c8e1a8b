"""What people read of a posterior: convergence and features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata

from glfm.align import feature_order, match, representative
from glfm.column import FloatArray
from glfm.draws import Draw, Draws

__all__ = ["Diagnostics", "diagnose", "feature_table", "split_rhat"]

_ALIKE = 0.5  # share of common rows from which a feature counts as found again
_CONVERGED = 1.05

LABEL_FREE: dict[str, Callable[[Draw], float]] = {
    "log-likelihood": lambda draw: draw.log_likelihood,
    "features": lambda draw: float(draw.n_features),
    "alpha": lambda draw: draw.alpha,
    "features per row": lambda draw: float(draw.Z.sum()) / draw.packed.shape[0],
    "co-activation": lambda draw: float((draw.Z.sum(axis=0).astype(np.float64) ** 2).sum()),
}


@dataclass(frozen=True)
class Diagnostics:
    """How well the chains of a fit agree."""

    table: pd.DataFrame
    verdict: str

    def __repr__(self) -> str:
        return f"{self.table.to_string(float_format='{:.3g}'.format)}\n{self.verdict}"


def diagnose(draws: Draws) -> Diagnostics:
    """Judge convergence by quantities that do not depend on the order of features."""
    chains = draws.by_chain()
    length = min(len(chain) for chain in chains)
    rows = {}
    for name, quantity in LABEL_FREE.items():
        values = np.array([[quantity(draw) for draw in chain[:length]] for chain in chains])
        rows[name] = {"mean": values.mean(), "sd": values.std(), "rhat": split_rhat(values)}
    table = pd.DataFrame.from_dict(rows, orient="index")
    worst = float(table["rhat"].max())
    if length < 4:
        verdict = "Too few draws to judge convergence: fit with more."
    elif worst < _CONVERGED:
        verdict = f"The chains agree (largest R-hat {worst:.3f})."
    else:
        name = str(table["rhat"].idxmax())
        verdict = (
            f"The chains do not agree yet on {name} (R-hat {worst:.2f}): predictions average over them, but "
            "longer chains would be better."
        )
    return Diagnostics(table, verdict)


def split_rhat(values: FloatArray) -> float:
    """Return the rank-normalised split R-hat (Vehtari et al., 2021) of chains x draws."""
    half = values.shape[1] // 2
    if half < 2:
        return float("nan")
    split = np.concatenate([values[:, :half], values[:, -half:]])
    if np.ptp(split) == 0:
        return 1.0
    folded = np.abs(split - np.median(split))
    return max(_rhat(_rank_normal(split)), _rhat(_rank_normal(folded)))


def _rank_normal(values: FloatArray) -> FloatArray:
    ranks = rankdata(values).reshape(values.shape)
    return np.asarray(norm.ppf((ranks - 0.375) / (values.size + 0.25)))


def _rhat(values: FloatArray) -> float:
    n = values.shape[1]
    within = values.var(axis=1, ddof=1).mean()
    between = n * values.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))


def feature_table(draws: Draws) -> pd.DataFrame:
    """Return the features of the representative draw, the most common first.

    `share` is the share of rows that have the feature, `stability` the share of draws in which a feature
    with at least half of their rows in common is found again.
    """
    reference = representative(draws)
    Z = reference.Z[:, feature_order(reference)]
    alike = np.array([match(Z, draw.Z)[1] for draw in draws]).reshape(len(draws), Z.shape[1])
    return pd.DataFrame(
        {"share": Z.mean(axis=0), "stability": (alike >= _ALIKE).mean(axis=0)},
        index=[f"F{k + 1}" for k in range(Z.shape[1])],
    )
