"""Imputers of other packages, which may be missing: see requirements-peers.txt."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pandas as pd
from imputers import Coding, Guess, Holes, fill_constant, seen_of

from glfm.kinds import Kind

DRAWS = 50  # of a cell, where a method's distribution is known by draws


# ---- gcimpute

LEVELS = 20  # of a nominal column: time grows with the cube of the coded columns


def fill_gcimpute(holes: Holes) -> Guess:
    """Fit a Gaussian copula with default settings and draw from it.

    It knows ordinals but no nominal columns: they are one column of 0 and 1 per level but the most common, for
    the 20 most common levels, and the level that is 1 in most draws is the guess. Guesses of numbers are its own,
    and the mean of draws where it takes a number for an ordinal.
    """
    from gcimpute.gaussian_copula import GaussianCopula

    setattr(np, "round_", np.round)  # noqa: B010 - the name of NumPy 1, which it still calls
    coding = Coding.learn(holes, LEVELS, is_binary_one=True)
    coded = coding.code(holes.x, is_scaled=False)
    rows = ~np.isnan(coded).all(axis=1)  # it refuses empty rows
    columns = np.array([np.unique(seen_of(column)).size > 1 for column in coded.T])  # and constant columns
    common = [
        _most_common(coded, part, levels) for part, levels in zip(coding.parts, coding.levels, strict=True)
    ]
    columns[[c for c in common if c is not None]] = False  # the other levels say what it is
    given = coded[np.ix_(rows, columns)]
    # Its own rule; what it takes for truncated columns it then fails on, so that they are ordinal here.
    is_ordinal = np.array([_mode_share(column) >= 0.1 for column in given.T])
    model = GaussianCopula(random_state=holes.seed, max_iter=5 if holes.quick else 50)
    kinds = {
        "ordinal": np.flatnonzero(is_ordinal).tolist(),
        "continuous": np.flatnonzero(~is_ordinal).tolist(),
    }
    with redirect_stdout(io.StringIO()):
        filled = model.fit_transform(given.copy(), **kinds)
        drawn = model.sample_imputation(num=DRAWS)
    point, draws = _constants(coded), np.repeat(_constants(coded)[:, :, None], DRAWS, axis=2)
    point[np.ix_(rows, columns)], draws[np.ix_(rows, columns)] = filled, drawn
    as_continuous = np.zeros(columns.size, dtype=bool)
    as_continuous[np.flatnonzero(columns)[~is_ordinal]] = True
    mean, median = fill_constant(holes)[:2]
    central = {}
    for d, kind in holes.columns():
        at, part, levels = np.flatnonzero(holes.hidden[:, d]), coding.parts[d], coding.levels[d]
        if levels is not None:
            share = draws[at, part].mean(axis=2)
            share[:, common[d] - part.start] = 0.0
            share[:, common[d] - part.start] = 1.0 - share.sum(axis=1)
            mean[at, d] = median[at, d] = levels[share.argmax(axis=1)]
        elif at.size:
            mean[at, d], median[at, d] = of_draws(draws[at, part.start], kind)
            if as_continuous[part.start]:
                mean[at, d] = median[at, d] = point[at, part.start]
            if kind.is_ordered:
                central[d] = draws[at, part.start]
    return Guess(mean, median, lambda: (None, mass_of_draws(central, holes)))


def _most_common(coded: np.ndarray, part: slice, levels: np.ndarray | None) -> int | None:
    return None if levels is None else part.start + int(np.nansum(coded[:, part], axis=0).argmax())


def _mode_share(column: np.ndarray) -> float:
    counts = np.unique(seen_of(column), return_counts=True)[1]
    return float(counts.max() / counts.sum())


def _constants(coded: np.ndarray) -> np.ndarray:
    filled = coded.copy()
    for column in filled.T:
        column[np.isnan(column)] = np.median(seen_of(column))
    return filled


# ---- chains of trees


def _named(holes: Holes) -> pd.DataFrame:
    """Return the table with numbers as they are, ordinals as positions and nominal levels as text."""
    columns = {}
    for d, kind in holes.columns():
        values = pd.Series(holes.x[:, d])
        columns[f"c{d}"] = (
            values if kind.is_ordered else values.map(_level, na_action="ignore").astype(object)
        )
    return pd.DataFrame(columns)


def _level(position: float) -> str:
    return f"l{position:.0f}"


def _of_named(table: pd.DataFrame, holes: Holes) -> Guess:
    """Return the guesses of a completed table of such columns; ordinals are rounded."""
    filled = fill_constant(holes).mean
    for d, kind in holes.columns():
        rows, values = holes.hidden[:, d], table[f"c{d}"]
        if kind.is_number:
            filled[rows, d] = values[rows]
        elif kind.is_ordered:
            filled[rows, d] = np.clip(np.rint(values[rows]), 0, kind.n_levels - 1)
        else:
            filled[rows, d] = values[rows].astype(str).str[1:].astype(float)
    return Guess(filled, filled)


def fill_miceforest(holes: Holes) -> Guess:
    """Impute by a chain of LightGBM models, five iterations, predictions as they are.

    Its default draws each value from rows with similar predictions, which is right for multiple imputation, makes
    the point errors measured here larger, and fails where a probability is 0 or 1.
    """
    import miceforest

    nominal = [f"c{d}" for d, kind in holes.columns() if not kind.is_ordered]
    frame = _named(holes).astype(dict.fromkeys(nominal, "category"))
    kernel = miceforest.ImputationKernel(frame, mean_match_candidates=0, random_state=holes.seed)
    kernel.mice(1 if holes.quick else 5, num_threads=1)
    table = kernel.complete_data(0)
    return _of_named(table, holes)


# ---- lace

STATES, SWEEPS = 8, 1000
MOST_LEVELS = 250  # it takes less than 256
FEW_COUNTS = 20  # up to so many different counts are levels, as lace's own inference has it


def fill_lace(holes: Holes) -> Guess:
    """Fit lace: 8 states of 1,000 sweeps; numbers are continuous, counts of few values and ordinals categorical."""
    import lace
    import polars as pl

    codes = {d: _values(holes.truth[:, d], kind) for d, kind in holes.columns()}
    codebook = lace.Codebook.empty("table")
    codebook.append_column_metadata(
        [
            lace.ColumnMetadata.continuous(f"c{d}")
            if values is None
            else lace.ColumnMetadata.categorical(f"c{d}", values.size)
            for d, values in codes.items()
        ]
    )
    names = [f"r{n}" for n in range(len(holes.x))]
    codebook.set_row_names(names)
    columns: dict[str, Any] = {"ID": names}
    for d, values in codes.items():
        columns[f"c{d}"] = _series(holes.x[:, d], values)
    engine = lace.Engine.from_df(
        pl.DataFrame(columns), codebook=codebook, n_states=STATES, rng_seed=holes.seed
    )
    engine.update(10 if holes.quick else SWEEPS, quiet=True)
    mean, median = fill_constant(holes)[:2]
    draws, scores = {}, {}
    for d, kind in holes.columns():
        rows = np.flatnonzero(holes.hidden[:, d])
        values = codes[d]
        if not rows.size:
            continue
        if values is None:
            draws[d] = np.stack([engine.draw(int(row), f"c{d}", DRAWS).to_numpy() for row in rows])
            # A mean of draws is at the mercy of the long tails of clusters of few rows, and so is its own guess.
            mean[rows, d] = median[rows, d] = np.median(draws[d], axis=1)
        else:
            scores[d] = p = _probabilities(engine, f"c{d}", rows, values.size)
            middle = values[(np.cumsum(p, axis=1) < 0.5).sum(axis=1).clip(0, values.size - 1)]
            mode = values[p.argmax(axis=1)]
            mean[rows, d] = p @ values if kind.is_number else mode
            median[rows, d] = middle if kind.is_ordered else mode

    def judge() -> tuple[np.ndarray, np.ndarray]:
        score = np.full(holes.x.shape, np.nan)
        mass = mass_of_draws(draws, holes)
        rng = np.random.default_rng(holes.seed)
        for d, kind in holes.columns():
            rows, values = np.flatnonzero(holes.hidden[:, d]), codes[d]
            if not rows.size:
                continue
            truth = holes.truth[rows, d]
            if values is None:
                found = engine.surprisal(f"c{d}", rows=rows.tolist(), values=truth.tolist())
                score[rows, d] = -found["surprisal"].to_numpy()
                continue
            own = np.searchsorted(values, truth).clip(0, values.size - 1)
            p = np.take_along_axis(scores[d], own[:, None], axis=1)[:, 0]
            score[rows, d] = np.log(np.where(values[own] == truth, p, 1e-6))
            if kind.is_ordered:
                below = np.take_along_axis(np.cumsum(scores[d], axis=1), own[:, None], axis=1)[:, 0]
                mass[rows, d] = np.abs(2.0 * (below - rng.random(rows.size) * p) - 1.0)
        return score, mass

    return Guess(mean, median, judge)


def _values(truth: np.ndarray, kind: Kind) -> np.ndarray | None:
    """Return the values of a column that is categorical to lace, ascending, or None."""
    values, counts = np.unique(seen_of(truth), return_counts=True)
    if kind.is_number:
        return values if kind.name == "count" and values.size <= FEW_COUNTS else None
    return np.sort(values[np.argsort(-counts, kind="stable")[:MOST_LEVELS]])


def _series(x: np.ndarray, values: np.ndarray | None) -> Any:
    import polars as pl

    if values is None:
        return pl.Series([None if np.isnan(v) else float(v) for v in x], dtype=pl.Float64)
    codes = {value: code for code, value in enumerate(values)}
    return pl.Series([codes.get(v) for v in x], dtype=pl.UInt8)


def _probabilities(engine: Any, name: str, rows: np.ndarray, n_levels: int) -> np.ndarray:
    columns = [
        -engine.surprisal(name, rows=rows.tolist(), values=[level] * rows.size)["surprisal"].to_numpy()
        for level in range(n_levels)
    ]
    p = np.exp(np.column_stack(columns))
    return p / p.sum(axis=1, keepdims=True)


# ---- distributions known by draws


def of_draws(draws: np.ndarray, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (of levels: mode) and median of draws, cells x draws."""
    if kind.is_number:
        return draws.mean(axis=1), np.median(draws, axis=1)
    shares = np.column_stack([(draws == level).mean(axis=1) for level in range(kind.n_levels)])
    mode = shares.argmax(axis=1)
    return mode, (np.cumsum(shares, axis=1) < 0.5 - 1e-9).sum(axis=1) if kind.is_ordered else mode


def mass_of_draws(draws: dict[int, np.ndarray], holes: Holes) -> np.ndarray:
    """Return the mass of the smallest central interval that holds the truth; ties count by chance."""
    mass = np.full(holes.x.shape, np.nan)
    rng = np.random.default_rng(holes.seed)
    for d, values in draws.items():
        rows = np.flatnonzero(holes.hidden[:, d])
        truth = holes.truth[rows, d][:, None]
        below, equal = (values < truth).sum(axis=1), (values == truth).sum(axis=1)
        rank = (below + rng.random(rows.size) * (equal + 1)) / (values.shape[1] + 1)
        mass[rows, d] = np.abs(2.0 * rank - 1.0)
    return mass
