"""A certificate: cells that were observed are hidden, predicted, and held against what they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import DataError
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kinds.base import Kind
from glfm.kinds.cells import Cells
from glfm.notebook import number_table
from glfm.posterior.predictive import Predictive
from glfm.schema import Schema
from glfm.schema.encoding import encode

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COVERS = {"cover_50": 0.5, "cover_80": 0.8, "cover_90": 0.9, "cover_95": 0.95}  # masses of intervals
_CHANCE = 2.6  # standard errors that chance alone hardly passes, in any of four masses
_FEWEST = 20  # cells from which coverage can be judged


@dataclass(frozen=True, eq=False)
class Calibration:
    """What became of cells that were hidden and predicted.

    Attributes
    ----------
    table
        Per kind of column, and for all cells: `hidden`, the number of hidden cells; `cover_50` to `cover_95`,
        the share of them that intervals of that mass held; `log_score`, the mean log density (of a discrete
        cell: log probability), and `log_score_alone`, that of the column's own distribution; `error` and
        `error_alone`, of the point prediction and of a constant.
    columns
        The same per column, with its kind.
    verdict
        What it means, in words.

    Notes
    -----
    Intervals of numbers and ordinals are central; of categories, the most probable levels. A discrete cell
    would always be covered too often, so that a value on the edge of an interval counts by chance, in the
    proportion that makes the interval's mass exact (a randomised probability integral transform).

    Errors are root mean squares in standard deviations of the column for numbers (of the predictive mean; the
    constant is the mean), the share of wrong levels for categories (mode; mode), and the mean distance as a
    share of the scale for ordinals (median; median).
    """

    table: pd.DataFrame
    columns: pd.DataFrame
    verdict: str

    def __repr__(self) -> str:
        return f"{self.table.to_string(float_format='{:.3g}'.format, na_rep='-')}\n{self.verdict}"

    def _repr_html_(self) -> str:
        return number_table(self.table, self.verdict)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the coverage of each kind beside the mass it should have; return the axes."""
        from glfm.plots.accuracy import draw_coverage

        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
        kinds = self.table.drop(index="all")
        observed = {str(kind): row[list(_COVERS)].to_numpy(np.float64) for kind, row in kinds.iterrows()}
        sizes = {str(kind): int(n) for kind, n in kinds["hidden"].items()}
        draw_coverage(list(_COVERS.values()), observed, sizes, ax=ax)
        return ax


def certify(
    model: Any,
    frame: Frame,
    schema: Schema,
    pinned: NDArray[np.bool_] | None,
    fraction: float,
    seed: np.random.SeedSequence,
    time_budget: float | None = None,
) -> Calibration:
    """Hide cells of a table, fit a copy of the model to the rest, and judge what it says of them."""
    x = encode(frame, schema.kinds)
    rng = np.random.default_rng(seed.spawn(1)[0])
    hidden = choose_hidden(x, schema.kinds, fraction, rng)
    columns = {name: hidden[:, d] for d, name in enumerate(schema.kinds)}
    settings = {"schema": unlearnt(schema, model.schema), "random_state": int(rng.integers(2**32))}
    rest = copy(model).set_params(**settings)
    rest.fit(frame.hiding(columns), inactive=pinned, time_budget=time_budget)
    return judge(rest.predictive(), rest.schema_.kinds, x, hidden, rng)


def unlearnt(schema: Schema, given: Mapping[str, Any] | Schema | None) -> Schema:
    """Return the schema as it was given or inferred, with its levels but nothing else that was learnt."""
    given = given if isinstance(given, Schema) else Schema(given or {})
    kinds: dict[str, Any] = {}
    for name, kind in schema.items():
        bare = given[name] if name in given else None if kind is None else type(kind)()
        levels = None if kind is None else kind.levels
        kinds[name] = bare if bare is None or levels is None else replace(bare, levels=levels)  # type: ignore[call-arg]
    return Schema(kinds, schema.reasons)


def check_fraction(fraction: float) -> None:
    """Refuse a share of cells to hide that is none."""
    if not isinstance(fraction, int | float) or not 0.0 < fraction < 1.0:
        raise DataError(f"fraction is a share of the observed cells between 0 and 1, not {fraction!r}.")


def choose_hidden(
    x: FloatArray, kinds: Mapping[str, Kind], fraction: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which cells to hide: a share of every column's observed cells, at least one where possible.

    The last observed cell of a row or a column stays, and so does that of a level or of the value zero, which
    the rest would know nothing of.
    """
    check_fraction(fraction)
    hidden = np.zeros(x.shape, dtype=np.bool_)
    left_in_row = (~np.isnan(x)).sum(axis=1)
    for d, kind in enumerate(kinds.values()):
        observed = np.flatnonzero(~np.isnan(x[:, d]))
        wanted = min(max(1, round(fraction * observed.size)), observed.size - 1)
        counts = Counter(x[observed, d].tolist())
        left = {v: n for v, n in counts.items() if kind.n_levels or v == 0.0 or v in kind.atoms}
        for row in rng.permutation(observed):
            if wanted <= 0:
                break
            value = float(x[row, d])
            if left_in_row[row] < 2 or left.get(value, 2) < 2:
                continue
            hidden[row, d] = True
            wanted -= 1
            left_in_row[row] -= 1
            if value in left:
                left[value] -= 1
    if not hidden.any():
        raise DataError(
            "No cell can be hidden without taking the last one of a row, a column or a level: calibration "
            "needs a larger table."
        )
    return hidden


def judge(
    predictive: Predictive,
    kinds: Mapping[str, Kind],
    x: FloatArray,
    hidden: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Calibration:
    """Compare the predictions of hidden cells with their values.

    `predictive` and `kinds` are those of the fit without the hidden cells, `x` is the whole table, encoded.
    """
    parts = []
    for d, (name, kind) in enumerate(kinds.items()):
        rows = np.flatnonzero(hidden[:, d])
        if not rows.size:
            continue
        seen = x[~hidden[:, d] & ~np.isnan(x[:, d]), d]
        part = _judge_column(predictive.cells(name, rows), x[rows, d], seen, rng)
        parts.append(part.assign(column=name, kind=kind.name))
    cells = pd.concat(parts, ignore_index=True)
    columns = cells.groupby("column", sort=False)[["kind"]].first().join(_averages(cells, "column"))
    table = pd.concat([_averages(cells, "kind"), _averages(cells.assign(kind="all"), "kind")])
    table.loc["all", ["error", "error_alone"]] = np.nan  # errors of different kinds have no common unit
    return Calibration(table, columns, coverage_in_words(table))


def _judge_column(
    cells: Cells, truth: FloatArray, seen: FloatArray, rng: np.random.Generator
) -> pd.DataFrame:
    """Return per cell: the mass of the smallest interval that holds it, log scores and losses."""
    kind = cells.kind
    if kind.is_number:
        guess, constant = cells.mean(), float(seen.mean())
        power, unit = 2, float(seen.std()) or 1.0
    elif kind.is_ordered:
        guess, constant = cells.quantile(0.5), float(np.sort(seen)[(seen.size - 1) // 2])
        power, unit = 1, max(kind.n_levels - 1.0, 1.0)
    else:
        guess, constant = cells.mode(), float(kind.tally(seen).argmax())
        power, unit = 0, 1.0
    return pd.DataFrame(
        {
            "mass": enclosing_mass(cells, truth, rng),
            "log_score": cells.log_density(truth),
            "log_score_alone": kind.log_density_alone(seen, truth),
            "error": _loss(guess, truth, power, unit),
            "error_alone": _loss(np.full(truth.size, constant), truth, power, unit),
            "squared": power == 2,
        }
    )


def enclosing_mass(cells: Cells, x: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the mass of the smallest interval that holds each value: uniform if predictions are right."""
    chance = rng.random(x.size)
    if not cells.kind.is_ordered:
        p = cells.probabilities
        own = p[np.arange(x.size), x.astype(np.intp)][:, None]
        more = np.where(p > own, p, 0.0).sum(axis=1)
        return np.asarray(more + chance * np.where(p == own, p, 0.0).sum(axis=1))
    return np.abs(2.0 * (cells.cdf(x) - chance * cells.mass(x)) - 1.0)


def _loss(guess: FloatArray, truth: FloatArray, power: int, unit: float) -> FloatArray:
    if power == 0:
        return np.asarray(guess != truth, dtype=np.float64)
    return np.asarray(np.abs(guess - truth) / unit) ** power


def _averages(cells: pd.DataFrame, by: str) -> pd.DataFrame:
    covered = {name: cells["mass"] < mass for name, mass in _COVERS.items()}
    scores = ["log_score", "log_score_alone", "error", "error_alone"]
    groups = cells.assign(**covered).groupby(by, sort=False)
    table = groups[[*covered, *scores]].mean()
    table.loc[groups["squared"].first(), ["error", "error_alone"]] **= 0.5
    table.insert(0, "hidden", groups.size())
    return table


def coverage_in_words(table: pd.DataFrame) -> str:
    """Return what a person should know of the coverage of all cells and of each kind."""
    rows: dict[str, dict[str, float]] = table.to_dict("index")  # type: ignore[assignment]
    total = rows.pop("all")
    n = int(total["hidden"])
    if n < _FEWEST:
        few = f"{n} hidden cell is" if n == 1 else f"{n} hidden cells are"
        return f"{few} too few to judge intervals by: raise fraction, or trust a larger table."
    name, z = _worst(total)
    words = f"{_COVERS[name]:.0%} intervals covered {total[name]:.0%} of {n} hidden cells: {_judgement(z)}."
    off = []
    for kind, row in rows.items():
        name, z_kind = _worst(row)
        if abs(z_kind) >= _CHANCE + 0.4 and (abs(z) < _CHANCE or z * z_kind < 0) and row["hidden"] >= _FEWEST:
            share = f"{row[name]:.0%} at {_COVERS[name]:.0%}"
            off.append(f"those of {kind} columns were {_judgement(z_kind)} ({share})")
    if off:
        return f"{words} But {' and '.join(off)}."
    gain = total["log_score"] - total["log_score_alone"]
    if not np.isfinite(gain) or gain <= 0.0:
        return f"{words} The other cells of a row did not help to predict the hidden one."
    return f"{words} The other cells of a row gained {gain:.2f} nats per hidden cell over its column alone."


def _worst(row: Mapping[str, float]) -> tuple[str, float]:
    """Return the coverage to speak of and how far it is off, in binomial standard errors."""
    z = {
        name: float((row[name] - mass) / np.sqrt(mass * (1.0 - mass) / row["hidden"]))
        for name, mass in _COVERS.items()
    }
    worst = max(z, key=lambda name: abs(z[name]))
    name = "cover_90" if abs(z[worst]) < _CHANCE or abs(z["cover_90"]) >= _CHANCE else worst
    return name, z[name]


def _judgement(z: float) -> str:
    if abs(z) < _CHANCE:
        return "as they should"
    return "too narrow" if z < 0 else "too wide"
