"""The predictive distribution of every cell of a table, as frames in the user's own library."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from glfm.errors import FitWarning, SchemaError, check_mass, check_name, listing
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kinds.base import Kind
from glfm.kinds.cells import Cells
from glfm.notebook import text_table
from glfm.posterior.fit import Fit
from glfm.posterior.forests import Inputs
from glfm.posterior.learner_inputs import filled_inputs, input_slices, without
from glfm.posterior.placing import in_time
from glfm.posterior.rows import NewRows, Rows, asked_draws, rows_for
from glfm.posterior.spacing import blocks
from glfm.posterior.uncertainty import cell_frame, ranked
from glfm.sampling.draws import column_cells
from glfm.sampling.progress import Answering, tracked
from glfm.schema.conditions import Unseen

Answer = Callable[[Cells], FloatArray]
How = Literal["auto", "mode", "mean", "median", "sample"]


class Predictive:
    """The distribution of every cell given the observed cells of its row, averaged over draws.

    Made by `GLFM.predictive`. Every method answers for all cells, observed or not, with the rows of the
    table; values never leave the support of their kind.

    Examples
    --------
    >>> import glfm
    >>> df = glfm.datasets.make_clinic(40).frame
    >>> settings = {"n_chains": 1, "n_warmup": 20, "n_draws": 5, "random_state": 0, "progress": False}
    >>> predictive = glfm.GLFM(**settings).fit(df).predictive()
    >>> lower, upper = predictive.interval(0.9)
    >>> bool((lower["visits"] <= upper["visits"]).all())
    True
    >>> sorted(predictive.proba("ward"))
    ['cardiology', 'general', 'lung', 'surgery']
    """

    def __init__(
        self, frame: Frame, rows: Rows, fit: Fit, unseen: Unseen = "error", progress: bool = False
    ) -> None:
        self._frame = frame
        self._problem = fit.problem
        self._draws = fit.draws
        self._rows = rows
        self._seed = fit.seed
        self._learners = {} if fit.refinement is None else fit.refinement.in_use
        self._readers = [] if fit.refinement is None else fit.refinement.readers
        self._unseen = unseen
        self._progress = progress

    def __repr__(self) -> str:
        return (
            f"<predictive of {self._rows.n_rows} rows x {len(self._problem.names)} columns "
            f"from {len(self._draws)} draws>"
        )

    def _repr_html_(self) -> str:
        kinds, n_rows = self._problem.kinds, self._rows.n_rows
        rows = [(name, kind.name, int(self._holes[name].size)) for name, kind in kinds.items()]
        ask = (
            "mean(), median(), mode(), interval(0.9), proba(column), logpdf(values), cdf(values), sd(), "
            "entropy(), uncertainty(), sample(n) and impute() answer for every cell."
        )
        return text_table(
            ("column", "kind", "missing"),
            rows,
            f"Predictive of {n_rows:,} rows from {len(self._draws)} draws: {ask}",
        )

    def mean(self) -> Any:
        """Return the means of the numeric columns."""
        return self._frame.new(self._decoded(self._columns("is_number", lambda cells: cells.mean())))

    def median(self) -> Any:
        """Return the medians of the numeric and ordinal columns."""
        return self._quantile(0.5)

    def mode(self) -> Any:
        """Return the most probable value of every cell.

        For a number it is the value of highest density. Where some values are points with a probability
        (zeros of a positive column, spikes of a quantile mapping), it is the most probable point if points
        have at least one half of the mass.
        """
        return self._frame.like(self._decoded(self._columns("name", lambda cells: cells.mode())))

    def interval(self, mass: float = 0.9) -> tuple[Any, Any]:
        """Return the lower and upper ends of central intervals of numeric and ordinal columns."""
        tail = tail_of(mass)
        return self._quantile(tail), self._quantile(1.0 - tail)

    def _quantile(self, q: float) -> Any:
        return self._frame.like(self._decoded(self._columns("is_ordered", lambda cells: cells.quantile(q))))

    def proba(self, column: str) -> Any:
        """Return the probability of every level of a categorical or ordinal column, rows x levels."""
        kind = self.kind(column)
        if not kind.n_levels:
            raise SchemaError(
                f"Column {column!r} is {kind.name} and has no levels: ask for its cdf, median or interval."
            )
        p = self._column(column, lambda cells: cells.probabilities)
        levels = kind.decode(np.arange(p.shape[1], dtype=np.float64))
        return self._frame.new({str(level): p[:, r] for r, level in enumerate(levels)})

    def logpdf(self, values: Any) -> Any:
        """Return the log density (of a discrete cell: log probability) of given values; NaN in the holes.

        Zeros of a positive column and spikes of a quantile mapping have a log probability among the log
        densities of other values.
        Densities of dates and durations are per day.
        """
        return self._frame.new(self._at(values, "name", lambda cells, x: cells.log_density(x)))

    def cdf(self, values: Any) -> Any:
        """Return the probability of not exceeding given values of numeric and ordinal columns."""
        return self._frame.new(self._at(values, "is_ordered", lambda cells, x: cells.cdf(x)))

    def sd(self) -> Any:
        """Return the standard deviations of the numeric columns; those of dates and durations in days."""
        return self._frame.new(self._columns("is_number", lambda cells: cells.sd()))

    def entropy(self) -> Any:
        """Return the Shannon entropies, in nats, of the categorical and ordinal columns.

        Numbers have none that does not depend on their units: ask for their `sd`.
        """
        return self._frame.new(self._columns("n_levels", lambda cells: cells.entropy()))

    def uncertainty(self, mass: float = 0.9) -> pd.DataFrame:
        """Return how sure every imputed cell is, the least reliable first; see `GLFM.uncertainty`."""
        tail = tail_of(mass)
        parts = []
        for name in self._problem.names:
            for rows in blocks(self._holes[name]):
                part = cell_frame(self.cells(name, rows), self.spread(name), tail)
                parts.append(part.assign(row=list(self._frame.labels[rows]), column=name))
        return ranked(parts)

    def sample(self, n: int = 1) -> list[Any]:
        """Return `n` whole tables, each drawn jointly from one posterior draw, in turn if there are fewer.

        Numbers have the decimals of their column.
        """
        return [self._frame.like(self._decoded(x)) for x, _ in self._sampled(n)]

    def impute(self, how: How = "auto", n: int = 1) -> Any:
        """Return the table with its holes filled; see `GLFM.impute`."""
        check_imputations(how, n, len(self._draws))
        if n > 1 or how == "sample":
            frames = [self.complete(x) for x, _ in self._sampled(n)]
            return frames if n > 1 else frames[0]
        filled = {}
        for name in self._tracked([name for name in self._problem.names if self._holes[name].size]):
            x, holes = self._rows.x[:, self._problem.names.index(name)].copy(), self._holes[name]
            x[holes] = self.kind(name).recorded(self._column(name, lambda cells: _point(cells, how), holes))
            filled[name] = x
        return self.complete(filled)

    def shifted(
        self, column: str, shifts: Sequence[FloatArray], n: int
    ) -> Iterator[tuple[dict[str, FloatArray], list[FloatArray]]]:
        """Yield `n` imputations of which one column is drawn once for every shift of its pseudo-scale.

        Each is the encoded table, as `impute(n=n)` draws it, and the column, encoded, under each shift (one
        number per free pseudo-column). The random numbers are the same under every shift.
        """
        check_imputations("sample", n, len(self._draws))
        x, holes = self._rows.x[:, self._problem.names.index(column)], self.holes(column)
        for table, moved in self._sampled(n, column, shifts):
            filled = np.tile(x, (len(shifts), 1))
            filled[:, holes] = np.array(moved)[:, holes]
            yield table, list(filled)

    def complete(self, x: dict[str, FloatArray]) -> Any:
        """Return the table with its holes, and only they, filled from encoded columns."""
        return self._frame.complete(self._decoded(x), self._holes)

    def spread(self, column: str) -> float:
        """Return how far the observed cells of a column of the fit spread: a variance or an entropy."""
        return self._problem.facts.spreads[self._problem.names.index(column)]

    def holes(self, column: str) -> NDArray[np.intp]:
        """Return the rows in which a column has no value."""
        self.kind(column)
        return self._holes[column]

    def left_empty(self) -> dict[str, int]:
        """Return how many missing cells each column has that is not modelled, where there are some."""
        ignored = (name for name in self._frame.names if name not in self._problem.kinds)
        found = {name: self._frame.n_missing(name) for name in ignored}
        return {name: n for name, n in found.items() if n}

    # ---- how it is done

    @cached_property
    def _holes(self) -> dict[str, NDArray[np.intp]]:
        missing = np.isnan(self._rows.x)
        return {name: np.flatnonzero(missing[:, d]) for d, name in enumerate(self._problem.names)}

    def kind(self, column: str) -> Kind:
        """Return the kind of a modelled column."""
        check_name(column, self._problem.names)
        return self._problem.kinds[column]

    def cells(self, column: str, rows: NDArray[np.intp]) -> Cells:
        """Return the cells of some rows, with one component per draw."""
        d = self._problem.names.index(column)
        part = self._problem.slices[d]
        cells = column_cells(self._draws, d, list(self._rows.locations(rows, part)))
        if d not in self._learners:
            return cells
        return cells.moved(self._moves(d, cells, rows), self._learners[d].move)

    def _moves(self, d: int, cells: Cells, rows: NDArray[np.intp]) -> FloatArray:
        """Return what moves the cells of some rows towards the guesses of their column's learner."""
        learner = self._learners[d]
        others = without(input_slices(self._problem)[d], self._inputs.shape[1])
        return cells.moves(learner.learnt.guess(self._inputs[np.ix_(rows, others)]), learner.move)

    def _all_moves(self, d: int) -> FloatArray:
        """Return what moves all cells of a column; found once."""
        if d not in self._known_moves:
            part, found = self._problem.slices[d], []
            for some in blocks(np.arange(self._rows.n_rows)):
                cells = column_cells(self._draws, d, list(self._rows.locations(some, part)))
                found.append(self._moves(d, cells, some))
            self._known_moves[d] = np.concatenate(found)
        return self._known_moves[d]

    @cached_property
    def _known_moves(self) -> dict[int, FloatArray]:
        return {}

    @cached_property
    def _inputs(self) -> Inputs:
        """What learners read of all rows."""
        return filled_inputs(self._rows, self._problem, self._draws, self._readers)

    def _column(self, column: str, answer: Answer, rows: NDArray[np.intp] | None = None) -> FloatArray:
        """Answer a question for a column, some rows at a time."""
        rows = np.arange(self._rows.n_rows) if rows is None else rows
        return np.concatenate([answer(self.cells(column, some)) for some in blocks(rows)])

    def _columns(self, which: str, answer: Answer) -> dict[str, FloatArray]:
        """Answer a question for all columns for which an attribute of the kind is true."""
        kinds = self._problem.kinds
        chosen = [name for name in kinds if getattr(kinds[name], which)]
        return {name: self._column(name, answer) for name in self._tracked(chosen)}

    def _tracked(self, names: Sequence[str]) -> Iterator[str]:
        """Yield columns that are answered for, after all rows have been placed, and show how far that is."""
        with Answering("predictive", self._progress):
            for stage in tracked(self._rows.stages, len(self._rows.stages)):
                if stage == "cells":
                    yield from tracked(names, len(names))
                elif names:
                    self._rows.place()

    def _at(
        self, values: Any, which: str, answer: Callable[[Cells, FloatArray], FloatArray]
    ) -> dict[str, FloatArray]:
        """Answer a question about given values, one per cell."""
        given = self._frame.read_values(values)
        out = {}
        for name, kind in self._problem.kinds.items():
            if name in given.names and getattr(kind, which):
                x = kind.encode_value(given.column(name), self._unseen)
                out[name] = np.full(x.size, np.nan)
                for some in blocks(np.flatnonzero(~np.isnan(x))):
                    out[name][some] = answer(self.cells(name, some), x[some])
        return out

    def _sampled(
        self, n: int, column: str | None = None, shifts: Sequence[FloatArray] = ()
    ) -> Iterator[tuple[dict[str, FloatArray], list[FloatArray]]]:
        """Yield `n` encoded tables, and with each of them one column again under every shift."""
        rng = np.random.default_rng(self._seed)
        order = np.concatenate([rng.permutation(len(self._draws)) for _ in range(-(-n // len(self._draws)))])
        rows = np.arange(self._rows.n_rows)
        for table, t in enumerate(order[:n]):
            noise = self._rows.noise(rng, t, table)
            x, moved = {}, []
            for d, (name, kind) in enumerate(self._problem.kinds.items()):
                location = self._rows.location(t, rows, self._problem.slices[d])
                cells = self._component(d, t, location)
                if name == column:
                    drawn = (cells.shifted(by).sample(deepcopy(noise), 0) for by in shifts)
                    moved = [kind.recorded(values) for values in drawn]
                x[name] = kind.recorded(cells.sample(noise, 0))
            yield x, moved

    def _component(self, d: int, t: int, location: FloatArray) -> Cells:
        """Return the cells of a column under draw number `t` alone."""
        alone = column_cells([self._draws[t]], d, [location])
        learner = self._learners.get(d)
        return alone if learner is None else alone.moved(self._all_moves(d), learner.move)

    def _decoded(self, columns: dict[str, FloatArray]) -> dict[str, NDArray[Any]]:
        return {name: self._problem.kinds[name].decode(x) for name, x in columns.items()}


def check_imputations(how: How, n: int, n_draws: int) -> None:
    """Refuse what cannot be asked of an imputation."""
    if how not in ("auto", "mode", "mean", "median", "sample"):
        raise SchemaError(f"Unknown how {how!r}: use auto, mode, mean, median or sample.")
    if n < 1:
        raise SchemaError(f"The number of imputations must be at least 1, not {n!r}.")
    if n > 1 and n > n_draws:
        raise SchemaError(
            f"Each of n = {n} imputations needs a draw of its own but there are {n_draws}: "
            "ask for fewer or fit with more draws."
        )


def tail_of(mass: float) -> float:
    """Return what a central interval leaves out on each side."""
    check_mass(mass)
    return 0.5 * (1.0 - mass)


def _point(cells: Cells, how: How) -> FloatArray:
    """Return one value per cell, the mode if its kind does not have what is asked for."""
    if how in ("auto", "median") and cells.kind.is_ordered:
        return cells.quantile(0.5)
    if how == "mean" and cells.kind.is_number:
        return cells.kind.nearest(cells.mean())
    return cells.mode()


def predict(
    fit: Fit, X: Any = None, unseen: Unseen = "error", n_jobs: int | None = None, progress: bool = False
) -> Predictive:
    """Return the predictive distribution of the rows of the fit, or of rows never seen."""
    fit = asked_draws(fit, X)
    frame, rows = rows_for(fit, X, unseen, n_jobs)
    return Predictive(frame, rows, fit, unseen, progress)


def impute(
    fit: Fit,
    X: Any,
    how: How,
    n: int,
    unseen: Unseen = "error",
    n_jobs: int | None = None,
    seconds: float | None = None,
    progress: bool = False,
) -> Any:
    """Return the table of the fit, or rows never seen, with the holes filled; see `GLFM.impute`."""
    begin = time.monotonic()
    fit = asked_draws(fit, X, n)
    frame, rows = rows_for(fit, X, unseen, n_jobs)
    if seconds is not None and isinstance(rows, NewRows):
        left = max(seconds - (time.monotonic() - begin), 0.0)
        fit, n_passes = in_time(fit, rows.x, n_jobs, left)
        rows = NewRows(rows.x, fit, n_jobs, n_passes)
    predictive = Predictive(frame, rows, fit, unseen, progress)
    completed = predictive.impute(how, n)
    _warn_of_holes(predictive.left_empty())
    return completed


def _warn_of_holes(left: Mapping[str, int]) -> None:
    """Say which columns of a completed table still have missing cells, because no model is of them."""
    if not left:
        return
    n = sum(left.values())
    what, whose = ("1 column is", "its") if len(left) == 1 else (f"{len(left)} columns are", "their")
    cells = "1 missing cell stays" if n == 1 else f"{n} missing cells stay"
    them = "it" if len(left) == 1 else "them"
    warnings.warn(
        f"{what} ignored ({listing(left)}): {whose} {cells} empty; a schema that gives {them} a kind fills "
        f"{them}.",
        FitWarning,
        stacklevel=4,
    )
