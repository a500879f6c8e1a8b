"""`model.plot`: one method per picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from glfm.analysis.dependence import Measure
from glfm.analysis.diagnostics import CONVERGED, FIELD, LABEL_FREE, Diagnostics, diagnose
from glfm.analysis.effects import largest_effects
from glfm.analysis.summary import OTHER, SCALE, Pattern, Summary
from glfm.errors import SchemaError
from glfm.frames.column import FloatArray
from glfm.frames.frame import Frame
from glfm.kinds.base import Kind
from glfm.plots import columns as column_pictures
from glfm.plots import matrices
from glfm.plots.artists import Artists, choose, elide, grid, label
from glfm.plots.panels import number
from glfm.plots.style import ORANGE, SHADES, open_frame
from glfm.plots.us_states import read_states, tile_map
from glfm.posterior.predictive import predict

_COPIES = 5  # number of imputations that are pooled
_MOST_OTHERS = 4  # quantities shown beside the label-free ones


class Plot:
    """Pictures of a fit, made by `GLFM.plot`.

    Every method returns `Artists`: a list of matplotlib artists with `figure`, `axes`, `data` (the numbers
    that were drawn) and `save(path)`. A notebook shows it; no window opens. A picture of one panel is
    drawn on `ax` if given.
    """

    def __init__(self, summary: Summary) -> None:
        fit = summary.fit
        self._summary = summary
        self._frame, self._problem, self._draws = fit.table, fit.rows, fit.draws
        self._predictive = predict(fit.of_sample)

    def patterns(
        self,
        columns: str | Iterable[str] | None = None,
        patterns: Iterable[Pattern] | None = None,
        ax: Axes | None = None,
    ) -> Artists:
        """Draw the distribution of columns under patterns, over that of the observed cells.

        Parameters
        ----------
        columns
            Names; None: all modelled columns.
        patterns
            As in `GLFM.density`; None: the five most common patterns of the clear features.
        ax
            Where to draw, if it is one column.

        Returns
        -------
        Artists
            `data` is `GLFM.density` of every column, by column and value. A column of numbers with a long
            tail has a logarithmic axis, and heights are then shares per decade. If zero has a
            probability of its own, it is drawn on a strip at the left, with its scale at the right. In a
            picture of several columns, the rarest levels of a category with more than 12 are drawn as one.
        """
        names = self._columns(columns)
        if ax is not None and len(names) > 1:
            raise SchemaError(f"ax is for one column, but {len(names)} were chosen: choose one.")
        chosen = self._summary.read_patterns(patterns)
        return column_pictures.draw_patterns(self._summary, self._kinds(names), self._x(names), chosen, ax)

    def effects(
        self,
        features: Sequence[str] | None = None,
        columns: str | Iterable[str] | None = None,
        ax: Axes | None = None,
    ) -> Artists:
        """Draw how rows with each feature differ in each column, in standard deviations.

        Of a scale, they are the rows in its upper third, beside those in its lower third.

        Parameters
        ----------
        features
            Names; None: the clear ones, or all if none is.
        columns
            Names; None: all modelled columns.
        ax
            Where to draw.

        Returns
        -------
        Artists
            `data` are the rows of `GLFM.effects` that are shown: the one that says most of each feature and
            column. Of a number it is the number; of an ordinal the column as a whole or a level, of a
            category a level, which is named: of two the one that rows with the feature have more often.
            `sure` says whether the 90 % interval excludes zero; other effects are grey and have no number.
        """
        kinds = self._kinds(self._columns(columns))
        effects = self._summary.effects
        places = {name: i for i, name in enumerate(self._features(features))}
        effects = effects[effects["feature"].isin(places)]
        effects = effects[effects["column"].isin(list(kinds))]
        order = {name: i for i, name in enumerate(kinds)}
        shown = largest_effects(effects).sort_values(
            ["feature", "column"], key=lambda names: names.map({**order, **places}), kind="stable"
        )
        return matrices.draw_effects(shown.reset_index(drop=True), kinds, ax)

    def dependence(
        self,
        measure: Measure = "mi",
        columns: str | Iterable[str] | None = None,
        ax: Axes | None = None,
    ) -> Artists:
        """Draw the dependence of columns, with dependent columns next to each other.

        Parameters
        ----------
        measure
            "mi" or "probability", as in `GLFM.dependence`.
        columns
            Names; None: all modelled columns.
        ax
            Where to draw.

        Returns
        -------
        Artists
            `data` is `GLFM.dependence` of these columns, in the order drawn: by average linkage. The diagonal
            is grey and has no colour.
        """
        names = self._columns(columns)
        table = self._summary.dependence.frame(measure)
        return matrices.draw_dependence(table.loc[names, names], measure, ax)

    def shares(
        self,
        top: int = 10,
        by: str | None = None,
        ax: Axes | None = None,
        features: Sequence[str] | None = None,
    ) -> Artists:
        """Draw the shares of patterns.

        Parameters
        ----------
        top
            Number of patterns.
        by
            A column: draw a map of the shares at each of its values, and of all other patterns together.
        ax
            Where to draw.
        features
            Names of the yes/no features that define patterns; None: the clear ones, or all if none is. With
            many features, nearly every row has its own pattern: choose a few.

        Returns
        -------
        Artists
            `data` is `GLFM.patterns` of these features.
        """
        table = self._summary.patterns(top, by, features)
        if by is not None:
            return matrices.draw_shares_by(table, by, ax)
        n_patterns = len(self._summary.patterns(features=features))
        return matrices.draw_shares(table, self._problem.n_rows, n_patterns, ax)

    def features(self, features: Sequence[str] | None = None, ax: Axes | None = None) -> Artists:
        """Draw which row has which feature, shaded by its probability, and each row's place on scales.

        Parameters
        ----------
        features
            Names; None: the clear ones, or all if none is.
        ax
            Where to draw.

        Returns
        -------
        Artists
            `data` is `GLFM.activations` of these features, with the rows in the order drawn: by the yes/no
            features they have, then from high to low on scales. Of many rows, evenly spaced ones are drawn.
        """
        names = self._features(features)
        at = [self._summary.names.index(name) for name in names]
        place = self._summary.consensus.probabilities[:, at]
        is_scale = (self._summary.features["form"][names] == SCALE).to_numpy(dtype=np.bool_)
        return matrices.draw_features(place, is_scale, names, self._frame.labels, ax)

    def explained(self, ax: Axes | None = None) -> Artists:
        """Draw the share of the field that features explain against their number.

        Parameters
        ----------
        ax
            Where to draw.

        Returns
        -------
        Artists
            `data` has one row per number of features: `explained`, the share that so many explain together,
            and `reproduced`, whether the last of them is found again. Others are hollow.
        """
        return matrices.draw_explained(self._summary.explained, ax)

    def trace(self, quantities: str | Iterable[str] | None = None) -> Artists:
        """Draw traces of quantities, one line per chain, with the R-hat of each.

        Parameters
        ----------
        quantities
            Names as in `GLFM.diagnostics().traces`; None: label-free ones such as log-likelihood and number
            of features, and the four others (noise variances, thresholds) with the largest R-hat.

        Returns
        -------
        Artists
            `data` are the traces: chain, draw, and each quantity.
        """
        diagnostics = diagnose(self._summary.fit)
        known = list(diagnostics.traces.columns.drop(["chain", "draw"]))
        names = choose(_usual(diagnostics) if quantities is None else quantities, known, "quantity")
        axes = grid([1.9] * len(names), 3.0, most=4)
        artists: list[Artist] = []
        for panel, name in zip(axes, names, strict=True):
            for i, (_, chain) in enumerate(diagnostics.traces.groupby("chain")):
                colour = SHADES[i % len(SHADES)]
                artists += panel.plot(chain["draw"], chain[name], color=colour, linewidth=0.9, alpha=0.85)
            rhat = float(diagnostics.table["rhat"][name])
            words = "unknown" if np.isnan(rhat) else f"{rhat:.2f}"
            title = panel.set_title(f"{label(name, 34)}\nR-hat {words}", fontsize=8)
            if rhat >= CONVERGED:
                title.set_color(ORANGE)
            panel.yaxis.set_major_formatter(number)
            panel.yaxis.set_major_locator(MaxNLocator(4))
            panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
            panel.tick_params(labelsize=7)
            open_frame(panel)
        axes[0].figure.supxlabel("draw", fontsize=8)
        return Artists(artists, axes, diagnostics.traces[["chain", "draw", *names]], is_new=True)

    def missing(self, ax: Axes | None = None) -> Artists:
        """Draw the missing cells of the modelled columns, with the share of each column.

        Returns
        -------
        Artists
            `data` has 1 for a missing and 0 for an observed cell; for more than 1,000 rows, the share of
            missing cells in groups of neighbouring rows.
        """
        holes = np.isnan(self._problem.x)
        return matrices.draw_missing(holes, list(self._problem.names), self._frame.labels, ax)

    def imputed(self, columns: str | Iterable[str] | None = None) -> Artists:
        """Draw the imputed cells of columns over their observed cells.

        The two differ if cells are not missing completely at random. Up to five sampled imputations are
        pooled, because medians and modes vary less than cells.

        Parameters
        ----------
        columns
            Names; None: all modelled columns with holes.

        Returns
        -------
        Artists
            `data` has heights of observed and imputed, by column and value.
        """
        names = list(self._problem.names)
        some = [name for name in names if np.isnan(self._problem.x[:, names.index(name)]).any()]
        chosen = choose(columns, some, "column with holes") if columns is not None or some else []
        filled: list[FloatArray] = []
        for copy in self._predictive.sample(min(_COPIES, len(self._draws))) if chosen else ():
            table = Frame.read(copy)
            parts = [self._problem.kinds[name].encode_value(table.column(name)) for name in chosen]
            filled.append(np.column_stack(parts))
        return column_pictures.draw_imputed(self._kinds(chosen), self._x(chosen), filled)

    def pseudo(self, column: str, transform: object = None) -> Artists:
        """Draw a column of numbers and its pseudo-observations, before and after a transform.

        A dashed line is the normal distribution with the same mean and variance: the model fits best if
        pseudo-observations look like a mixture of a few normal distributions.

        Parameters
        ----------
        column
            A modelled column of numbers.
        transform
            To try: a name ("log", "log1p", "sqrt"), a `glfm.Transform` or its three functions; None: that of
            the column's kind, if it has one.

        Returns
        -------
        Artists
            `data` has one row per observed cell: its value and its pseudo-observations.
        """
        [name] = self._columns([column])
        kind, values = self._problem.kinds[name], self._frame.column(name)
        return column_pictures.draw_pseudo(name, kind, values, transform)

    def map(
        self,
        by: str,
        pattern: str | Iterable[str] | None = None,
        top: int = 5,
        features: Sequence[str] | None = None,
    ) -> Artists:
        """Draw the shares of patterns, or the mean places on scales, in each state of the United States.

        Parameters
        ----------
        by
            A column of states: two-letter codes or full names, in any case.
        pattern
            Names of patterns, such as "F1 + F3"; None: the most common ones.
        top
            Number of patterns, if none is given.
        features
            As in `shares`. If a scale is among them, or if there is no yes/no feature, every feature has a
            map of its own: the mean place of rows on a scale, the share that has a yes/no feature.

        Returns
        -------
        Artists
            `data` has one row per state, by two-letter code, and one column per pattern or feature.
        """
        form = self._summary.features["form"]
        scales = features is not None and any(form.get(name) == SCALE for name in features)
        if pattern is None and (scales or (features is None and not self._summary.traits)):
            table = self._summary.places(by, features).iloc[:, :top]
        elif pattern is None:
            table = self._summary.patterns(top, by, features).drop(columns=OTHER, errors="ignore")
        else:
            table = self._summary.patterns(None, by, features)
            names = [pattern] if isinstance(pattern, str) else list(pattern)
            table = table[choose(list(self._summary.read_patterns(names)), list(table.columns), "pattern")]
        table.index = pd.Index(read_states(table.index, f"Values of column {elide(by)!r}"), name=by)
        axes = grid([3.0 if table.shape[1] > 1 else 4.3] * table.shape[1], 3.7, most=3)
        highest = max(float(table.to_numpy().max()), 0.01)
        artists: list[Artist] = []
        for panel, name in zip(axes, table.columns, strict=True):
            is_scale = form.get(name) == SCALE
            look: Any = {
                "limits": (0.0, highest),
                "scale": False,
                "format": "{:.2f}" if is_scale else "{:.0%}",
            }
            title = f"{name}, low to high" if is_scale else name
            artists += tile_map(table[name], ax=panel, title=title, **look)
        return Artists(artists, axes, table, is_new=True)

    # ---- arguments

    def _columns(self, columns: str | Iterable[str] | None) -> list[str]:
        return choose(columns, self._problem.names, "modelled column")

    def _features(self, features: Sequence[str] | None) -> list[str]:
        known = self._summary.names
        if features is None:
            return self._summary.clear or known
        return choose(features, known, "feature")

    def _kinds(self, names: Sequence[str]) -> dict[str, Kind]:
        return {name: self._problem.kinds[name] for name in names}

    def _x(self, names: Sequence[str]) -> FloatArray:
        return self._problem.x[:, [self._problem.names.index(name) for name in names]]


def _usual(diagnostics: Diagnostics) -> list[str]:
    """Return the label-free quantities, and the others with the largest R-hat."""
    table = diagnostics.table.drop(FIELD, errors="ignore")  # which has no trace
    first = [name for name in table.index if name in LABEL_FREE]
    others = table["rhat"].drop(first).sort_values(ascending=False)
    return first + list(others.index[:_MOST_OTHERS])
