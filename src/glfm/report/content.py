"""Contents of the report as numbers and text, which the page lays out."""

from __future__ import annotations

import platform
from collections.abc import Hashable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from glfm import __version__
from glfm.analysis.diagnostics import CONVERGED, diagnose
from glfm.analysis.summary import NONE, Summary
from glfm.report.columns import ColumnFacts, Missingness, column_facts, missingness
from glfm.report.features import (
    FeatureFacts,
    MapCell,
    PatternFacts,
    effect_map,
    feature_facts,
    pattern_facts,
    status_counts,
)
from glfm.report.formatting import clipped, counted, number, percent
from glfm.report.surprising_cells import Surprise, surprising_cells
from glfm.report.view_data import view_data

_HIGHLIGHTS = 4
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
    highlights: list[FeatureFacts]
    caveats: list[str]
    columns: list[ColumnFacts]
    missing: Missingness
    convergence: Convergence
    features: list[FeatureFacts]
    others: dict[str, int]
    map_features: list[str]
    map_rows: list[tuple[str, list[MapCell]]]
    patterns: list[PatternFacts]
    more_patterns: int
    more_share: float
    surprise: Surprise
    settings: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    view: dict[str, Any]

    @property
    def clear(self) -> list[FeatureFacts]:
        """The features with status "clear"."""
        return [feature for feature in self.features if feature.status == "clear"]

    @property
    def doubtful(self) -> list[FeatureFacts]:
        """All other features."""
        return [feature for feature in self.features if feature.status != "clear"]


def collect(summary: Summary, title: str | None = None) -> Content:
    """Return the contents of the report on a fit."""
    columns = column_facts(summary)
    missing = missingness(summary, columns)
    features = feature_facts(summary)
    patterns, n_more, more_share = pattern_facts(summary, features)
    mapped, rows = effect_map(summary, features)
    convergence = _convergence(summary)
    return Content(
        title=title or "What is in this table",
        n_rows=summary.fit.problem.n_rows,
        n_columns=len(columns),
        introduction=_introduction(summary.fit.problem.n_rows, columns, missing, features, patterns),
        highlights=[one for one in features if one.status == "clear" and one.meaning][:_HIGHLIGHTS],
        caveats=_caveats(features, convergence),
        columns=columns,
        missing=missing,
        convergence=convergence,
        features=features,
        others=status_counts(features),
        map_features=mapped,
        map_rows=rows,
        patterns=patterns,
        more_patterns=n_more,
        more_share=more_share,
        surprise=surprising_cells(summary),
        settings=_settings(summary),
        versions=[("glfm", __version__), ("Python", platform.python_version())]
        + [(name, version(name)) for name in ("numpy", "numba", "scipy", "pandas")],
        view=view_data(summary, features, patterns),
    )


def _introduction(
    n_rows: int,
    columns: list[ColumnFacts],
    missing: Missingness,
    features: list[FeatureFacts],
    patterns: list[PatternFacts],
) -> list[str]:
    """Return the first paragraph, sentence by sentence."""
    n_ignored = sum(column.kind == "ignored" for column in columns)
    ignored = f", of which {n_ignored} {'is' if n_ignored == 1 else 'are'} left aside" if n_ignored else ""
    rows = f"{n_rows:,} row{'' if n_rows == 1 else 's'}"
    holes = f"{percent(missing.share)} of the cells are missing" if missing.n_holes else "no cell is missing"
    sentences = [f"{rows} and {len(columns)} column{'' if len(columns) == 1 else 's'}{ignored}; {holes}."]
    n_clear = sum(feature.status == "clear" for feature in features)
    if not n_clear:
        return [*sentences, "No feature is clear enough to be described."]
    without = sum(pattern.share for pattern in patterns if pattern.name == NONE)
    what, has = "yes-or-no traits that were not recorded but show", "at least one of them"
    if n_clear == 1:
        what, has = "a yes-or-no trait that was not recorded but shows", "it"
    return [
        *sentences,
        f"The table is described by {counted(n_clear, 'clear feature')}: {what} in its columns. "
        f"{percent(1.0 - without)} of the rows have {has}.",
    ]


def _caveats(features: list[FeatureFacts], convergence: Convergence) -> list[str]:
    n_unstable = sum(feature.status == "unstable" for feature in features)
    one = n_unstable == 1
    unstable = (
        f"{counted(n_unstable, 'further feature').capitalize()} {'is' if one else 'are'} unstable: another "
        f"run may not find {'it' if one else 'them'}, so {'it is' if one else 'they are'} listed apart."
    )
    disputed = [one.name for one in features if one.status == "clear" and one.is_disputed]
    doubt = (
        f"Not more than half of the chains find {', '.join(disputed)}: another run may find others instead."
    )
    return [convergence.headline, *([doubt] if disputed else []), *([unstable] if n_unstable else [])]


# ---- convergence


def _convergence(summary: Summary) -> Convergence:
    found, n_chains = diagnose(summary.fit.problem, summary.fit.draws), summary.fit.draws.n_chains
    worst = float(found.table["rhat"].max()) if found.table["rhat"].notna().all() else np.nan
    advice = (
        "Run it longer before relying on small differences: more draws per chain (--draws on the command "
        'line, n_draws in Python, or fit with until="converged").'
    )
    if np.isnan(worst):
        state, headline = "unknown", "There are too few draws to judge whether the run was long enough."
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
    return Convergence(state, headline, advice, found.verdict, table, traces)


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
    label = "number of features" if name == "features" else name
    return Trace(label, number(low), number(high), lines)


# ---- how it was made


_SETTINGS: dict[str, str] = {
    "random_state": "seed",
    "alpha": "concentration (alpha)",
    "weight_variance": "prior variance of weights",
    "bias": "a feature that every row has (bias)",
    "max_features": "largest number of features",
    "n_warmup": "warm-up sweeps per chain",
    "thin": "sweeps per draw",
}


def _settings(summary: Summary) -> list[tuple[str, str]]:
    lengths = [len(chain) for chain in summary.fit.draws.by_chain()]
    per_chain = (
        f"{min(lengths):,}" if min(lengths) == max(lengths) else f"{min(lengths):,} to {max(lengths):,}"
    )
    rows = [
        ("chains", f"{summary.fit.draws.n_chains}"),
        ("draws kept", f"{len(summary.fit.draws):,} ({per_chain} per chain)"),
    ]
    return rows + [(words, _setting(name, summary.fit.settings[name])) for name, words in _SETTINGS.items()]


def _setting(name: str, value: object) -> str:
    defaults: dict[tuple[str, Hashable], str] = {
        ("random_state", None): "none: another run gives other draws",
        ("alpha", None): "learnt, with a Gamma(1, 1) prior",
        ("max_features", None): "no bound",
    }
    if value is None or isinstance(value, bool):
        return defaults.get((name, value), "yes" if value else "no")
    return clipped(value)
