"""Contents of the report as numbers and text, which the page lays out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from glfm.analysis.diagnostics import CONVERGED, diagnose, in_warmup
from glfm.analysis.summary import Summary
from glfm.posterior.fit import Fit
from glfm.report.columns import ColumnFacts, Missingness, column_facts, missingness
from glfm.report.features import (
    FeatureFacts,
    MapCell,
    PatternFacts,
    effect_map,
    feature_facts,
    pattern_facts,
)
from glfm.report.figures import Counts, Curve, Strip, explained_curve, feature_counts, strips
from glfm.report.formatting import clipped, counted, listed, number, percent
from glfm.report.links import Links, strongest_links
from glfm.report.methods import methods, settings, versions
from glfm.report.surprising_cells import Surprise, surprising_cells
from glfm.report.view_data import view_data

_COLUMNS_NAMED = 7  # in the first paragraph
_FOR_SURPRISE = 0.7  # share of the time that is left for surprising cells
_TRACED = ("log-likelihood", "features")
_WIDTH, _HEIGHT, _MARGIN = 600.0, 120.0, 4.0


@dataclass(frozen=True)
class Trace:
    """The trace of one quantity, as points of one polyline per chain."""

    name: str
    low: str
    high: str
    lines: list[str]


@dataclass(frozen=True)
class Convergence:
    """Whether the chains agree, as text and numbers."""

    state: str  # "yes", "no" or "unknown"
    headline: str
    advice: str
    verdict: str
    table: list[dict[str, Any]]
    traces: list[Trace]


@dataclass(frozen=True)
class Content:
    """The contents of the page, from top to bottom."""

    title: str
    n_rows: int
    n_columns: int
    introduction: list[str]
    caveats: list[str]
    strips: list[Strip]
    features: list[FeatureFacts]
    curve: Curve
    map_features: list[FeatureFacts]
    map_rows: list[tuple[str, list[MapCell]]]
    links: Links
    patterns: list[PatternFacts]
    more_patterns: int
    more_share: float
    view: dict[str, Any]
    surprise: Surprise
    convergence: Convergence
    counts: Counts
    columns: list[ColumnFacts]
    missing: Missingness
    methods: str
    settings: list[tuple[str, str]]
    versions: list[tuple[str, str]]

    @property
    def clear(self) -> list[FeatureFacts]:
        """The features with status "clear"."""
        return [feature for feature in self.features if feature.status == "clear"]

    @property
    def doubtful(self) -> list[FeatureFacts]:
        """All other features."""
        return [feature for feature in self.features if feature.status != "clear"]


def collect(summary: Summary, title: str | None = None, until: float | None = None) -> Content:
    """Return the contents of the report on a fit; `until` is when they should be there, by the clock."""
    columns = column_facts(summary)
    missing = missingness(summary, columns)
    features = feature_facts(summary)
    patterns, n_more, more_share = pattern_facts(summary, features)
    mapped, rows = effect_map(summary, features)
    convergence, worst = _convergence(summary)
    links, curve = strongest_links(summary), explained_curve(summary)
    clear = [feature for feature in features if feature.status == "clear"]
    return Content(
        title=title or "What is in this table",
        n_rows=summary.fit.problem.n_rows,
        n_columns=len(columns),
        introduction=[
            _size(summary.fit, columns, missing),
            *(_found(clear) if clear else _little(links)),
        ],
        caveats=_caveats(summary, clear, convergence),
        strips=strips(summary, features),
        features=features,
        curve=curve,
        map_features=mapped,
        map_rows=rows,
        links=links,
        patterns=patterns,
        more_patterns=n_more,
        more_share=more_share,
        view=view_data(summary, features, patterns),
        surprise=surprising_cells(
            summary, None if until is None else _FOR_SURPRISE * (until - time.monotonic())
        ),
        convergence=convergence,
        counts=feature_counts(summary),
        columns=columns,
        missing=missing,
        methods=methods(summary, missing, curve, worst),
        settings=settings(summary),
        versions=versions(),
    )


def _size(fit: Fit, columns: list[ColumnFacts], missing: Missingness) -> str:
    n_ignored = sum(column.kind == "ignored" for column in columns)
    ignored = f", of which {n_ignored} {'is' if n_ignored == 1 else 'are'} left aside" if n_ignored else ""
    n_rows = fit.problem.n_rows
    rows = f"{n_rows:,} row{'' if n_rows == 1 else 's'}"
    rows += "" if fit.whole is None else f", a random sample of {fit.whole.frame.n_rows:,},"
    holes = f"{percent(missing.share)} of the cells are missing" if missing.n_holes else "no cell is missing"
    return f"{rows} and {len(columns)} column{'' if len(columns) == 1 else 's'}{ignored}; {holes}."


def _found(clear: list[FeatureFacts]) -> list[str]:
    """Return how many features there are, where they show, and how much they explain."""
    n_scales = sum(feature.is_scale for feature in clear)
    n_yes_no = len(clear) - n_scales
    parts = [counted(n_yes_no, "yes-or-no trait")] if n_yes_no else []
    parts += [f"{counted(n_scales, 'scale')} from low to high"] if n_scales else []
    strength: dict[str, float] = {}
    for effect in (effect for feature in clear for effect in feature.effects):
        strength[effect.column] = max(strength.get(effect.column, 0.0), effect.weight)
    shown = sorted(strength, key=lambda column: -strength[column])[:_COLUMNS_NAMED]
    explained = sum(feature.explained for feature in clear)
    one = len(clear) == 1
    return [
        f"Its rows differ by {listed(parts)} that {'is' if one else 'are'} found again and again, though no "
        f"column records {'it' if one else 'them'}. {'It shows' if one else 'They show'} most in "
        f"{listed([clipped(name, 40) for name in shown])}, and "
        f"{'accounts' if one else 'together account'} for {percent(explained)} of what the model "
        "knows of differences between rows."
    ]


def _little(links: Links) -> list[str]:
    """Return what there is to say where no feature is clear."""
    if links.is_nothing:
        return [
            "There is nothing to see: no feature is clear, and no two columns depend on each other to speak "
            f"of (the strongest link has {links.strongest:.3f} nats of mutual information, of which 0.01 is "
            "a correlation of 0.14). Each column is best described on its own."
        ]
    return [
        "No feature is clear: no trait or scale of the rows is found again and again. What can be seen is "
        "which columns depend on each other, the strongest first."
    ]


def _caveats(summary: Summary, clear: list[FeatureFacts], convergence: Convergence) -> list[str]:
    """Return how sure all of it is."""
    if not clear:
        return [convergence.headline]
    several = summary.fit.draws.n_chains > 1
    what = "halves of the chains" if several else "the halves of the chain"
    least = np.floor(100.0 * min(0.999, *(feature.agreement for feature in clear))) / 100.0  # never "1.00"
    words = f"of {least:.2f}" if len(clear) == 1 else f"of {least:.2f} or more each"
    return [
        f"How sure is it? Both {what}, and rows that are resampled, show "
        f"{'it' if len(clear) == 1 else 'them'} again, with a correlation {words} (1 would be the same).",
        convergence.headline,
    ]


# ---- convergence


def _convergence(summary: Summary) -> tuple[Convergence, float]:
    """Return whether chains agree, and the largest R-hat."""
    found, n_chains = diagnose(summary.fit), summary.fit.draws.n_chains
    worst = float(found.table["rhat"].max()) if found.table["rhat"].notna().all() else np.nan
    advice = (
        "Run it longer before relying on small differences: more draws per chain (--draws on the command "
        'line, n_draws in Python, or fit with until="converged").'
    )
    stopped = in_warmup(summary.fit.draws)
    if stopped is not None:
        state, headline = "unknown", stopped
    elif np.isnan(worst):
        n_draws = counted(len(summary.fit.draws), "draw")
        state = "unknown"
        headline = f"There are too few draws ({n_draws}) to judge whether the run was long enough."
    elif n_chains == 1:
        state = "yes" if found.converged else "no"
        headline = (
            "There is one chain only: its first and second half "
            f"{'agree' if found.converged else 'do not agree yet'}, but whether another start would end "
            "elsewhere is unknown."
        )
        advice = "Run several chains to know whether they agree."
    elif found.converged:
        state = "yes"
        headline = f"The {counted(n_chains, 'independent chain')} agree: the run was long enough."
        advice = ""
    else:
        state = "no"
        headline = (
            f"The {counted(n_chains, 'independent chain')} do not agree yet: take shares and effects as "
            "provisional."
        )
    table = [
        {"name": str(name), "agrees": bool(row["rhat"] < CONVERGED)}
        | {key: _stat(row[key]) for key in ("mean", "sd", "ess_bulk", "ess_tail")}
        | {"rhat": "unknown" if np.isnan(row["rhat"]) else f"{row['rhat']:.3f}"}
        for name, row in found.table.iterrows()
    ]
    traces = [_trace(found.traces, name) for name in _TRACED]
    return Convergence(state, headline, advice, found.verdict, table, traces), worst


def _stat(value: float) -> str:
    return number(float(value))


def _trace(traces: pd.DataFrame, name: str) -> Trace:
    """Return the trace of a quantity as polylines in a picture of 600 x 120."""
    values = traces[name].to_numpy(dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    lines = []
    last = max(int(traces["draw"].max()), 1)
    for _, chain in traces.groupby("chain"):
        across = _WIDTH * chain["draw"].to_numpy(dtype=np.float64) / last
        share = (chain[name].to_numpy(dtype=np.float64) - low) / (high - low) if high > low else 0.5
        down = _HEIGHT - _MARGIN - (_HEIGHT - 2.0 * _MARGIN) * np.broadcast_to(share, across.shape)
        lines.append(" ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True)))
    label = "number of features of a draw" if name == "features" else name
    return Trace(label, number(low), number(high), lines)
