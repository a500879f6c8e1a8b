"""The demo: a fit of a generated clinic, compared with its known truth."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from glfm.datasets import Clinic, make_clinic
from glfm.estimators.glfm import GLFM
from glfm.frames.column import FloatArray
from glfm.kinds import Kind
from glfm.plots.style import save
from glfm.schema import Schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = "bp_change"  # the column whose intervals the picture shows
_MASS = 0.9
_MEASURES = "numbers: RMS error / sd     categories: share wrong     ordinals: mean distance / scale"


def run(
    output: Path | None = Path("glfm-demo.png"),
    *,
    n_rows: int = 400,
    n_chains: int = 4,
    n_warmup: int = 200,
    n_draws: int = 100,
    thin: int = 10,
    seed: int = 0,
    progress: bool = True,
    echo: Callable[[str], object] = print,
) -> None:
    """Fit the clinic, print what was found, and write a picture.

    Parameters
    ----------
    output
        File of the picture; None: no picture.
    n_rows, n_chains, n_warmup, n_draws, thin, seed
        Size of the table and settings of the fit.
    progress
        Whether to show progress on stderr.
    echo
        Function that prints each section of text.
    """
    clinic = make_clinic(n_rows, seed)
    holes = clinic.frame.isna().to_numpy()
    echo(
        f"A generated clinic: {n_rows} patients, {clinic.frame.shape[1]} columns, {holes.sum()} holes "
        f"({holes.mean():.0%} of the cells).\nFour hidden traits made the table; the model sees only the "
        "table.\n"
    )
    schema = Schema.infer(clinic.frame)
    echo(f"Schema, inferred\n{_indented(repr(schema))}\n")
    model = GLFM(
        schema,
        n_chains=n_chains,
        n_warmup=n_warmup,
        n_draws=n_draws,
        thin=thin,
        random_state=seed,
        progress=progress,
    ).fit(clinic.frame)
    Z = model.activations().to_numpy(dtype=np.float64) > 0.5
    traits = match_traits(clinic, Z)
    echo(_traits_text(traits, Z, _marks(clinic.frame, model.schema_.kinds)))
    completed = model.impute()
    lower, upper = model.predictive().interval(_MASS)
    errors = hole_errors(clinic, model.schema_.kinds, completed, lower, upper)
    echo(_errors_text(errors))
    echo(f"Convergence of {n_chains} chains\n  {model.diagnostics().verdict}\n")
    if output is not None:
        save(_picture(clinic, Z, traits, errors, completed, lower, upper), output)
        echo(f"Picture: {output}")


# ---- against the truth


def match_traits(clinic: Clinic, Z: NDArray[np.bool_]) -> pd.DataFrame:
    """Return the feature that resembles each trait most, one to one, by correlation over rows.

    A feature and its opposite describe the same table, so the sign of a correlation is ignored; `opposite`
    is True where it is negative. `feature` is -1 if there are fewer features than traits.
    """
    n_traits = clinic.Z.shape[1]
    correlation = np.array([[_correlation(trait, feature) for feature in Z.T] for trait in clinic.Z.T])
    table = pd.DataFrame({"rows": clinic.Z.sum(axis=0)}, index=pd.Index(clinic.traits, name="trait"))
    mine, theirs = linear_sum_assignment(-np.abs(correlation.reshape(n_traits, Z.shape[1])))
    feature, found = np.full(n_traits, -1), np.zeros(n_traits)
    feature[mine], found[mine] = theirs, correlation[mine, theirs]
    return table.assign(feature=feature, opposite=found < 0, correlation=np.abs(found))


def _correlation(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    if a.all() or b.all() or not a.any() or not b.any():
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def hole_errors(
    clinic: Clinic,
    kinds: Mapping[str, Kind],
    completed: pd.DataFrame,
    lower: pd.DataFrame,
    upper: pd.DataFrame,
) -> pd.DataFrame:
    """Return, per kind, the errors of imputed values and of constants, and the coverage of intervals.

    Errors are root mean squares in standard deviations for numbers, the share of wrong levels for
    categories, and mean distances in shares of the whole scale for ordinals. The constant is the mean,
    the mode or the median of the observed cells of the column.
    """
    parts = []
    for name, kind in kinds.items():
        hole = clinic.frame[name].isna().to_numpy()
        truth, guess = _encoded(clinic.complete[name], kind), _encoded(completed[name], kind)
        constant = np.full(truth.size, _constant(truth[~hole], kind))
        part = {"glfm": _losses(guess, truth, kind)[hole], "constant": _losses(constant, truth, kind)[hole]}
        if kind.is_ordered:
            low, high = _encoded(lower[name], kind), _encoded(upper[name], kind)
            part["held"] = ((low <= truth) & (truth <= high)).astype(np.float64)[hole]
        parts.append(pd.DataFrame(part).assign(kind=kind.name, is_number=kind.is_number))
    cells = pd.concat(parts)
    table = cells.groupby("kind", sort=False)[["glfm", "constant", "held"]].mean()
    squared = cells.groupby("kind", sort=False)["is_number"].first()
    table.loc[squared, ["glfm", "constant"]] **= 0.5
    table.insert(0, "holes", cells["kind"].value_counts())
    return table


def _encoded(values: pd.Series[Any], kind: Kind) -> FloatArray:
    """Return numbers unchanged, levels as their position, NaN where missing."""
    if kind.is_number:
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    codes = np.asarray(pd.Categorical(values, categories=list(kind.levels or ())).codes)
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _constant(observed: FloatArray, kind: Kind) -> float:
    if kind.is_number:
        return float(observed.mean())
    if kind.is_ordered:
        return float(np.sort(observed)[observed.size // 2])
    return float(np.bincount(observed.astype(np.intp)).argmax())


def _losses(guess: FloatArray, truth: FloatArray, kind: Kind) -> FloatArray:
    if kind.is_number:
        return np.asarray(np.square((guess - truth) / truth.std()))
    if kind.is_ordered:
        return np.asarray(np.abs(guess - truth) / (kind.n_levels - 1))
    return np.asarray(guess != truth, dtype=np.float64)


# ---- words


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _table(rows: Sequence[Sequence[object]], text: Container[int]) -> str:
    """Return aligned lines; columns in `text` are left-aligned, numbers right-aligned."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = []
    for row in cells:
        padded = (
            cell.ljust(width) if i in text else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(f"  {'  '.join(padded).rstrip()}")
    return "\n".join(lines)


def _traits_text(traits: pd.DataFrame, Z: NDArray[np.bool_], marks: dict[str, FloatArray]) -> str:
    rows: list[Sequence[object]] = [("trait", "found as", "rows", "found", "correlation", "marked by")]
    for name, size, feature, opposite, correlation in traits.itertuples():
        has = _signed(Z, feature, opposite)
        words = _marked_by(has, marks)
        found = has.sum()
        rows.append((name, _feature_name(feature, opposite), size, found, f"{correlation:.2f}", words))
    lines = ["Hidden traits, and the features that were found", _table(rows, text=(0, 1, 5))]
    lines.append("  Marked by: where the observed cells of these rows differ most from the others, in sd.")
    if traits["opposite"].any():
        lines.append('  "not": the rows without it; a feature and its opposite say the same of a table.')
    others = [int(Z[:, k].sum()) for k in range(Z.shape[1]) if k not in set(traits["feature"])]
    if others:
        lines.append(f"  Rows of other features, which are no trait: {', '.join(map(str, others))}.")
    return "\n".join(lines) + "\n"


def _marks(frame: pd.DataFrame, kinds: Mapping[str, Kind]) -> dict[str, FloatArray]:
    """Return the table in standard deviations, NaN where missing, with one column per level."""
    marks = {}
    for name, kind in kinds.items():
        x = _encoded(frame[name], kind)
        if kind.is_ordered:
            marks[name] = x
        else:
            levels = list(enumerate(kind.levels or ()))
            for i, level in (
                levels[1:] if len(levels) == 2 else levels
            ):  # the second of two levels is redundant
                marks[f"{name}={level}"] = np.where(np.isnan(x), np.nan, x == i)
    return {name: (x - np.nanmean(x)) / np.nanstd(x) for name, x in marks.items() if np.nanstd(x) > 0}


def _marked_by(has: NDArray[np.bool_], marks: dict[str, FloatArray]) -> str:
    if has.all() or not has.any():
        return ""
    gaps = {name: float(np.nanmean(x[has]) - np.nanmean(x[~has])) for name, x in marks.items()}
    most = sorted(gaps, key=lambda name: -abs(gaps[name]))[:3]
    return ", ".join(f"{name} {gaps[name]:+.1f}" for name in most)


def _feature_name(feature: int, opposite: bool) -> str:
    if feature < 0:
        return "-"
    return f"not F{feature + 1}" if opposite else f"F{feature + 1}"


def _signed(Z: NDArray[np.bool_], feature: int, opposite: bool) -> NDArray[np.bool_]:
    """Return the rows that have the trait according to the feature matched with it."""
    if feature < 0:
        return np.zeros(Z.shape[0], dtype=np.bool_)
    return ~Z[:, feature] if opposite else Z[:, feature]


def _errors_text(errors: pd.DataFrame) -> str:
    rows: list[Sequence[object]] = [("kind", "holes", "glfm", "constant", "within 90% interval")]
    for kind, holes, error, constant, held in errors.itertuples():
        share = "-" if np.isnan(held) else f"{held:.0%}"
        rows.append((kind, holes, f"{error:.2f}", f"{constant:.2f}", share))
    return (
        f"Holes filled, and how far off\n{_table(rows, text=(0,))}\n"
        "  Error of numbers: root mean square, in sd; of categories: share of wrong levels; of ordinals:\n"
        "  mean distance, 1 being from the first level to the last. Constant: the mean, mode or median\n"
        "  of the column. Intervals of counts and ordinals hold more, since these come in steps.\n"
    )


# ---- picture


def _picture(
    clinic: Clinic,
    Z: NDArray[np.bool_],
    traits: pd.DataFrame,
    errors: pd.DataFrame,
    completed: pd.DataFrame,
    lower: pd.DataFrame,
    upper: pd.DataFrame,
) -> Figure:
    """Draw traits beside features, errors beside constants, and intervals beside hidden values."""
    from matplotlib.figure import Figure

    from glfm.plots.accuracy import draw_errors, draw_intervals

    figure = Figure(figsize=(12, 6.2), layout="constrained")
    left, right = np.asarray(figure.subfigures(1, 2, width_ratios=[5, 6], wspace=0.04))
    _draw_traits(left.subplots(1, 2), clinic, Z, traits)
    top, bottom = right.subplots(2, 1, height_ratios=[1, 1])
    bars = {
        str(kind): {"glfm": row["glfm"], "constant (mean, mode or median)": row["constant"]}
        for kind, row in errors.iterrows()
    }
    draw_errors(bars, ax=top)
    top.set_title(f"Error of {errors['holes'].sum()} filled holes, by kind of column", loc="left")
    top.set_xlabel(_MEASURES, fontsize="small")
    top.legend(frameon=False, loc="lower right")
    hole = clinic.frame[_SHOWN].isna()
    parts = (frame.loc[hole, _SHOWN].to_numpy(float) for frame in (clinic.complete, completed, lower, upper))
    lines, middles, values = draw_intervals(*parts, ax=bottom)
    bottom.set_title(f"The {hole.sum()} holes of {_SHOWN} and their 90% intervals", loc="left")
    bottom.set_ylabel("mmHg")
    bottom.legend(
        [values, middles, lines],
        ["hidden value (orange: outside)", "imputed", "90% interval"],
        frameon=False,
        loc="upper left",
    )
    return figure


def _draw_traits(axes: Any, clinic: Clinic, Z: NDArray[np.bool_], traits: pd.DataFrame) -> None:
    from glfm.plots.matrices import draw_feature_matrix

    pairs = list(zip(traits["feature"], traits["opposite"], strict=True))
    found = np.column_stack([_signed(Z, *pair) for pair in pairs])
    order = np.lexsort(~clinic.Z.T[::-1])
    truth, found = clinic.Z[order], found[order]
    differs = (truth != found).mean()
    draw_feature_matrix(truth, clinic.traits, ax=axes[0])
    draw_feature_matrix(found, [_feature_name(*pair) for pair in pairs], ax=axes[1], marked=truth != found)
    axes[0].set_title("Hidden traits", loc="left")
    axes[0].set_ylabel(f"{len(truth)} patients, sorted")
    axes[1].set_title("Features found", loc="left")
    axes[1].set_xlabel(f"orange: differs from the trait\n({differs:.1%} of the cells)")
