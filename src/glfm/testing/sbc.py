"""Simulation-based calibration: fits of tables drawn from the prior, whose truth is known.

Draw parameters and a table from the prior, run a chain on the table, and count how many of its draws lie
below the truth. Over many tables these ranks are uniform if the chain samples from the posterior (Talts,
Betancourt, Simpson, Vehtari and Gelman, 2018). Nothing here depends on the order of features.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from glfm.frames.column import FloatArray
from glfm.kinds.base import Kind
from glfm.posterior.rows import NewRows, Rows, TrainingRows
from glfm.sampling.chain import Chain
from glfm.sampling.draws import Draw, column_cells
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem, Problem
from glfm.testing.fits import make_fit
from glfm.testing.scores import score_table
from glfm.testing.simulation import PriorDraw, simulate_prior

if TYPE_CHECKING:
    import pandas as pd

MakeChain = Callable[[Problem, Schedule, np.random.SeedSequence], Chain]


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of the truth of simulated tables among the draws of their chains.

    Parameters
    ----------
    ranks
        Number of draws below the truth, ties broken at random: tables x quantities, 0 to `n_draws`.
    positions
        Predictive distribution function at hidden cells, from 0 to 1: tables x cells. At a value with
        positive probability it is drawn uniformly within the step.
    n_draws
        Draws per table.
    """

    ranks: pd.DataFrame
    positions: pd.DataFrame
    n_draws: int

    def scores(self, n_bins: int = 10) -> pd.DataFrame:
        """Compare the ranks with the uniform distribution.

        Returns
        -------
        pandas.DataFrame
            Three rows per quantity with the columns exact, seen, standard_error and z: the mean of the ranks
            as a share of `n_draws` + 1, their mean squared distance from the middle, and chi-square over
            `n_bins` bins, whose z is the normal quantile of its probability.
        """
        import pandas as pd

        n_tables, n_ranks = len(self.ranks), self.n_draws + 1
        every = (np.arange(n_ranks) + 0.5) / n_ranks
        rows = {}
        for name in self.ranks:
            at = (self.ranks[name].to_numpy() + 0.5) / n_ranks
            for what, law, sample in (
                ("mean", every, at),
                ("spread", (every - 0.5) ** 2, (at - 0.5) ** 2),
            ):
                error = law.std() / np.sqrt(n_tables)
                rows[f"{name}: {what}"] = _row(law.mean(), sample.mean(), error)
            expected = np.bincount((every * n_bins).astype(int), minlength=n_bins) * n_tables / n_ranks
            seen = np.bincount((at * n_bins).astype(int), minlength=n_bins)
            statistic = float(((seen - expected) ** 2 / expected).sum())
            z = float(norm.isf(chi2.sf(statistic, n_bins - 1)))
            rows[f"{name}: bins"] = (n_bins - 1.0, statistic, np.sqrt(2.0 * (n_bins - 1)), z)
        return pd.DataFrame.from_dict(rows, orient="index", columns=["exact", "seen", "standard_error", "z"])

    def coverage(self, masses: Sequence[float] = (0.5, 0.9)) -> pd.DataFrame:
        """Compare how often central intervals contain the hidden cells with their masses.

        Returns
        -------
        pandas.DataFrame
            One row per mass and cell with the columns exact, chain, standard_error and z.
        """
        at = self.positions.to_numpy()
        names = [f"{name}: {100 * mass:g} %" for mass in masses for name in self.positions]
        held = np.hstack([np.abs(at - 0.5) < 0.5 * mass for mass in masses]).astype(np.float64)
        mass_of = np.repeat(masses, at.shape[1])
        independent = np.sqrt(mass_of * (1.0 - mass_of) / len(at))
        return score_table(names, held, mass_of, n_batches=len(at), least_error=independent)


def sbc_ranks(
    kinds: Mapping[str, Kind],
    n_rows: int,
    priors: Priors,
    *,
    n_tables: int = 500,
    n_draws: int = 49,
    thin: int = 50,
    n_warmup: int = 400,
    hidden: float = 0.15,
    seed: int = 0,
    make_chain: MakeChain = Chain,
) -> Ranks:
    """Simulate tables from the prior, fit each, and return the ranks of the truth among the draws.

    One cell of every column is always hidden, others at random. Without a bound on the number of features,
    each table has one more row, hidden from the chain and later predicted as a new row.

    Parameters
    ----------
    kinds
        Kinds by column name, with shift, scale, unit and levels given.
    n_rows
        Rows of each table.
    priors
        Hyper-parameters.
    n_tables
        Number of tables.
    n_draws, thin, n_warmup
        Schedule of the chain on each table. Ranks are uniform only for independent draws: `thin` must be
        longer than the autocorrelation, and `n_warmup` long enough to forget the start.
    hidden
        Probability that a cell is missing.
    seed
        Seed of tables and chains.
    make_chain
        Makes the chain for each table; by default the package's own.
    """
    import pandas as pd

    schedule = Schedule(n_warmup, n_draws, thin)
    ranks, positions = [], []
    for table in np.random.SeedSequence(seed).spawn(n_tables):
        to_simulate, to_run, to_place = table.spawn(3)
        rng = np.random.default_rng(to_simulate)
        truth = _simulated(rng, kinds, n_rows, priors, hidden)
        chain = make_chain(truth.problem, schedule, to_run)
        for _ in chain:
            pass
        known = np.array([list(_quantities(truth.problem, draw).values()) for draw in chain.draws])
        true = _quantities(truth.problem, truth.seen)
        at = dict(zip(true, _ranked(rng, known, list(true.values())), strict=True))
        within: dict[str, float] = {}
        for label, rows, x in truth.asked(chain, to_place):
            for d, name in enumerate(kinds):
                sample, position = _placed(rng, chain, rows, d, x[d])
                at[f"{label} of {name}"] = int(_ranked(rng, sample[:, None], [x[d][1]])[0])
                within[f"{label} of {name}"] = position
        ranks.append(at)
        positions.append(within)
    return Ranks(pd.DataFrame(ranks), pd.DataFrame(positions), n_draws)


@dataclass(frozen=True, eq=False)
class _Truth:
    """The truth of a simulated table: its parameters, one cell per column, one whole row."""

    problem: LocalProblem
    seen: Draw
    cells: list[tuple[int, float]]
    row: FloatArray | None

    def asked(
        self, chain: Chain, seed: np.random.SeedSequence
    ) -> list[tuple[str, Rows, list[tuple[int, float]]]]:
        """Return the hidden cell of each column: its row and its value."""
        fit = make_fit(self.problem, chain.draws, seed)
        cells: list[tuple[str, Rows, list[tuple[int, float]]]] = [("cell", TrainingRows(fit), self.cells)]
        if self.row is not None:
            nothing = np.full((1, self.row.size), np.nan)
            new = NewRows(nothing, fit, n_jobs=1)
            cells.append(("new row's cell", new, [(0, float(value)) for value in self.row]))
        return cells


def _simulated(
    rng: np.random.Generator, kinds: Mapping[str, Kind], n_rows: int, priors: Priors, hidden: float
) -> _Truth:
    extra = int(priors.max_features is None)
    draw = simulate_prior(rng, kinds, n_rows + extra, priors)
    holes = rng.random((n_rows, len(kinds))) < hidden
    asked = rng.integers(n_rows, size=len(kinds))
    holes[asked, np.arange(len(kinds))] = True
    problem = LocalProblem(kinds, np.where(holes, np.nan, draw.x[:n_rows]), priors)
    cells = [(int(n), float(draw.x[n, d])) for d, n in enumerate(asked)]
    return _Truth(problem, _as_draw(draw, problem), cells, draw.x[n_rows] if extra else None)


def _as_draw(draw: PriorDraw, problem: LocalProblem) -> Draw:
    """Return the truth as the chain would keep it: without features that only hidden rows have."""
    Z = draw.Z[: problem.n_rows]
    had = np.asarray(Z.any(axis=0))
    bias = np.ones(int(problem.priors.bias), dtype=np.bool_)
    return Draw(
        layout=problem.layout,
        chain=0,
        index=0,
        alpha=draw.alpha,
        weights=draw.B[np.concatenate([bias, had])],
        variances=draw.variance,
        thetas=tuple(draw.theta),
        packed=np.packbits(Z[:, had] != 0, axis=1),
        scores=Z[:, had].astype(np.float32) if problem.priors.weighted else None,
        x=problem.x,
    )


def _quantities(problem: LocalProblem, draw: Draw) -> dict[str, float]:
    """Return the ranked quantities of a draw; the likelihood detects a chain that ignores the table."""
    found: dict[str, float] = {"K": draw.n_features, "sum Z": int(draw.Z.sum())}
    if problem.priors.alpha is None:
        found["alpha"] = draw.alpha
    for d, (name, kind) in enumerate(problem.kinds.items()):
        if kind.samples_noise:
            found[f"noise variance of {name}"] = float(draw.variances[d])
        for r in range(1, draw.thetas[d].size):
            found[f"threshold {r + 1} of {name}"] = float(draw.thetas[d][r])
        b = draw.weights[:, problem.slices[d]]
        found[f"squared weights of {name}"] = float((b * b).sum() / draw.variances[d])
    found["log-likelihood"] = draw.log_likelihood
    return found


def _ranked(rng: np.random.Generator, draws: FloatArray, truth: Sequence[float]) -> NDArray[np.int64]:
    """Return the number of draws below the truth, with ties broken at random."""
    below, equal = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
    return np.asarray(below + rng.integers(0, equal + 1))


def _placed(
    rng: np.random.Generator, chain: Chain, rows: Rows, d: int, cell: tuple[int, float]
) -> tuple[FloatArray, float]:
    """Return a value of a cell under every draw, and the mixture's distribution function at the truth."""
    kind = list(chain.problem.kinds.values())[d]
    n, value = cell
    part, draws = chain.problem.slices[d], chain.draws
    at = [rows.location(t, np.array([n]), part) for t in range(len(draws))]
    variances, thetas = np.array([draw.variances[d] for draw in draws]), [draw.thetas[d] for draw in draws]
    sample = [
        kind.sample(rng, m, float(s2), theta) for m, s2, theta in zip(at, variances, thetas, strict=True)
    ]
    left, right = column_cells(draws, d, at).log_tails(np.array([value]))
    below, upto = 1.0 - np.exp(right[0]), np.exp(left[0])
    return np.concatenate(sample), float(below + rng.random() * (upto - below))


def _row(exact: float, seen: float, error: float) -> tuple[float, float, float, float]:
    return float(exact), float(seen), float(error), float((seen - exact) / error)
