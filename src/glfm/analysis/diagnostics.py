"""How well the chains of a fit agree, judged by quantities that do not depend on the order of features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.frames.column import FloatArray
from glfm.notebook import MOST_ROWS, number_table
from glfm.posterior.fit import Fit
from glfm.posterior.spacing import spaced
from glfm.sampling.draws import Draw, Draws
from glfm.sampling.problem import Problem

CONVERGED = 1.05  # R-hat below which chains are said to agree
_FEWEST = 4  # draws per chain from which convergence can be judged; of one chain, per half

_MOST_ROWS = 5000
FIELD = "field"
_N_CELLS = 50  # of the field
_WORST = 95  # percentile of the R-hats of these cells; of effective sample sizes, 100 minus it


def _log_likelihood(draw: Draw) -> float:
    """Return the log-likelihood; for a large table, an estimate from evenly spaced rows."""
    n_rows = len(draw.packed)
    if n_rows <= _MOST_ROWS or draw.x is None:  # without rows it is stored
        return draw.log_likelihood
    rows = spaced(n_rows, _MOST_ROWS)
    return float(np.nansum(draw.log_densities(rows))) * n_rows / _MOST_ROWS


LABEL_FREE: dict[str, Callable[[Draw], float]] = {
    "log-likelihood": _log_likelihood,
    "features": lambda draw: float(draw.n_features),
    "alpha": lambda draw: draw.alpha,
    "features per row": lambda draw: float(draw.Z.sum()) / draw.packed.shape[0],
    "co-activation": lambda draw: float((draw.Z.sum(axis=0).astype(np.float64) ** 2).sum()),
}


@dataclass(frozen=True)
class Diagnostics:
    """How well the chains of a fit agree.

    Attributes
    ----------
    table
        Per quantity: mean, sd, rank-normalised split R-hat, bulk and tail effective sample sizes. The
        log-likelihood of more than 5,000 rows is judged by 5,000 of them, evenly spaced. The field is what
        the features of a row say of a cell: the mean of a pseudo-observation in units of the noise. It is
        judged at 50 cells, the same for every fit of a table; 95 % of their R-hats are no larger.
    verdict
        What it means, in words.
    traces
        One row per draw: its chain, its position in the chain, and every quantity but the field.
    """

    table: pd.DataFrame
    verdict: str
    traces: pd.DataFrame

    @property
    def converged(self) -> bool:
        """Whether the chains agree on every quantity."""
        return bool((self.table["rhat"] < CONVERGED).all())

    def __repr__(self) -> str:
        return f"{self.table.to_string(float_format='{:.3g}'.format)}\n{self.verdict}"

    def _repr_html_(self) -> str:
        # Of many quantities, those that chains agree on least.
        worst = np.sort(np.argsort(-self.table["rhat"].to_numpy(), kind="stable")[:MOST_ROWS])
        left_out = len(self.table) - worst.size
        more = f" {left_out} more quantities have smaller R-hats." if left_out else ""
        return number_table(self.table.iloc[worst].rename_axis("quantity"), self.verdict + more)


def diagnose(fit: Fit) -> Diagnostics:
    """Judge convergence by quantities that do not depend on the order of features."""
    problem, draws = fit.problem, fit.draws
    chains = draws.by_chain()
    length = min(len(chain) for chain in chains)
    series = {
        name: np.array([[quantity(draw) for draw in chain[:length]] for chain in chains])
        for name, quantity in _quantities(problem, draws[0]).items()
    }
    judged = {name: _judge(values) for name, values in series.items()}
    field = _field([chain[:length] for chain in chains])
    if field is not None:
        judged[FIELD] = _judge_field(field)
    table = pd.DataFrame.from_dict(judged, orient="index")
    chain, draw = np.indices((len(chains), length))
    columns = {"chain": chain.ravel(), "draw": draw.ravel()}
    traces = pd.DataFrame(columns | {name: values.ravel() for name, values in series.items()})
    sample = "" if fit.whole is None else f" All of it rests on {fit.basis}."
    return Diagnostics(table, (in_warmup(draws) or _verdict(table, draws)) + sample, traces)


def _quantities(problem: Problem, example: Draw) -> dict[str, Callable[[Draw], float]]:
    """Return what is judged: the label-free quantities, each sampled noise variance, each free threshold."""
    found = dict(LABEL_FREE)
    if problem.priors.alpha is not None:
        del found["alpha"]
    for d, (name, kind) in enumerate(problem.kinds.items()):
        if kind.samples_noise:
            found[f"noise variance of {name}"] = partial(_noise, d=d)
        for r in range(1, example.thetas[d].size):
            found[f"threshold {r + 1} of {name}"] = partial(_threshold, d=d, r=r)
    return found


def _noise(draw: Draw, d: int) -> float:
    return float(draw.variances[d])


def _threshold(draw: Draw, d: int, r: int) -> float:
    return float(draw.thetas[d][r])


def _judge(values: FloatArray) -> dict[str, float]:
    """Return mean, sd, R-hat and effective sample sizes of chains x draws."""
    from arviz_stats.base import array_stats

    stats: Any = array_stats
    judged = {"mean": float(values.mean()), "sd": float(values.std())}
    if len(values) == 1:  # nothing to compare a chain with but itself
        values = values[:, : values.size // 2 * 2].reshape(2, -1)
    if values.shape[1] < _FEWEST:
        return {**judged, "rhat": np.nan, "ess_bulk": np.nan, "ess_tail": np.nan}
    if np.ptp(values) == 0:  # constant: the chains agree, and there is nothing to be effective about
        return {**judged, "rhat": 1.0, "ess_bulk": float(values.size), "ess_tail": float(values.size)}
    with np.errstate(divide="ignore", invalid="ignore"):  # halves of chains that stand still, apart: infinite
        return {
            **judged,
            "rhat": float(stats.rhat(values)),
            "ess_bulk": float(stats.ess(values, method="bulk")),
            "ess_tail": float(stats.ess(values, method="tail", prob=(0.05, 0.95))),
        }


def _field(chains: Sequence[Sequence[Draw]]) -> FloatArray | None:
    """Return the field at some places, chains x draws x places; None if no row is in this process."""
    example = chains[0][0]
    layout, n_rows = example.layout, len(example.packed)
    columns = [d for d, part in enumerate(layout.slices) if part.stop > part.start]
    if not n_rows or not columns:
        return None
    rng = np.random.default_rng(0)
    rows = rng.integers(n_rows, size=_N_CELLS)
    chosen = np.array(columns)[rng.integers(len(columns), size=_N_CELLS)]
    places = [rng.integers(layout.slices[d].start, layout.slices[d].stop) for d in chosen]
    return np.array([[_field_of(draw, rows, chosen, places) for draw in chain] for chain in chains])


def _field_of(draw: Draw, rows: NDArray[np.intp], columns: NDArray[np.intp], places: list[int]) -> FloatArray:
    means = (draw.activations_of(rows) * draw.weights[:, places].T).sum(axis=1)
    return np.asarray(means / np.sqrt(draw.variances[columns]))


def _judge_field(field: FloatArray) -> dict[str, float]:
    """Return mean and sd of all places, and the R-hat and effective sample sizes of the worst places."""
    of_places = pd.DataFrame([_judge(field[:, :, i]) for i in range(field.shape[2])])
    worst = {"rhat": _WORST, "ess_bulk": 100 - _WORST, "ess_tail": 100 - _WORST}
    judged = {"mean": float(field.mean()), "sd": float(field.std())}
    return judged | {name: float(np.percentile(of_places[name], at)) for name, at in worst.items()}


def in_warmup(draws: Draws) -> str | None:
    """Return that some chains were stopped in their warm-up, in words; None: no chain was."""
    stopped, n_chains = draws.n_warmup, draws.n_chains
    if not stopped:
        return None
    if stopped == len(draws):
        what = "its last state" if n_chains == 1 else f"the last states of its {n_chains} chains"
        return (
            f"The fit was stopped in warm-up: no draw after warm-up exists, only {what}, which the start "
            "still shapes. Fit for longer before you rely on it."
        )
    left = len(draws) - stopped
    return (
        f"{stopped} of {n_chains} chains were stopped in warm-up, so that convergence cannot be judged: "
        f"{'1 draw' if left == 1 else f'{left} draws'} after warm-up and {stopped} last "
        f"{'state' if stopped == 1 else 'states'} exist. Fit for longer before you rely on them."
    )


def _verdict(table: pd.DataFrame, draws: Draws) -> str:
    n_chains = draws.n_chains
    if table["rhat"].isna().any():
        there = "is 1 draw" if len(draws) == 1 else f"are {len(draws)} draws"
        of = "of one chain" if n_chains == 1 else f"of {n_chains} chains"
        return (
            f"Too few draws to judge convergence: there {there} {of}; keep at least {_FEWEST} per chain, "
            f"or {2 * _FEWEST} of one."
        )
    who = "The chains" if n_chains > 1 else "The halves of the only chain"
    worst, name = float(table["rhat"].max()), str(table["rhat"].idxmax())
    if worst >= CONVERGED:
        return (
            f"{who} do not agree yet on {name} (R-hat {worst:.2f}): predictions average over them, but "
            "longer chains would be better."
        )
    least, name = float(table["ess_bulk"].min()), str(table["ess_bulk"].idxmin())
    return (
        f"{who} agree (largest R-hat {worst:.3f}); the draws are worth at least {least:.0f} independent "
        f"ones (for {name})."
    )
