"""The tables of benchmarks/mixing.py: made from known features, with the bound of what can be found; and real ones.

It is read by the interpreters of both commits, so that it uses public names of the package only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

REAL = (
    "heart_cleveland",
    "prostate",
    "german_credit",
    "abalone",
    "titanic",
    "wine_quality",
    "counties",
    "qsar_biodegradation",
    "nesarc_disorders",
)
QUICK_ROWS = 300
EVERY = {"adult": 24}  # of a large table every so many rows
PACKAGED = ("diabetes", "wine", "breast_cancer")  # tables that scikit-learn has inside


class Made(NamedTuple):
    """A table with its true features.

    Attributes
    ----------
    evidence
        The log-likelihood of each row, but for a constant of its own, under each of some combinations of features
        (combinations x features) and the true parameters.
    shares
        The share of rows that have each feature, by the law that made the table.
    """

    frame: pd.DataFrame
    schema: dict[str, Any] | None
    Z: np.ndarray
    shares: np.ndarray
    evidence: Callable[[np.ndarray], np.ndarray]


class Table(NamedTuple):
    """What a chain is given; where they are known the true features, and the best guesses of them."""

    frame: pd.DataFrame
    schema: dict[str, Any] | None
    Z: np.ndarray | None
    guesses: np.ndarray | None = None

    @property
    def digest(self) -> str:
        """The cells in a few letters: tables with the same digest are the same table."""
        text = self.frame.to_csv(index=False, float_format="%.10g")
        return hashlib.sha256(text.encode()).hexdigest()[:12]


# ---- what a cell says of its pseudo-observations


def of_points(y: np.ndarray, location: np.ndarray, sd: float = 1.0) -> np.ndarray:
    """Return the log density of known pseudo-observations under each location; 0 in holes."""
    gaps = (y[:, None] - location[None, :]) / sd
    return np.nan_to_num(-0.5 * gaps**2, nan=0.0)


def of_intervals(lower: np.ndarray, upper: np.ndarray, location: np.ndarray) -> np.ndarray:
    """Return the log probability of an interval, noise of variance 1, under each location; 0 in holes (NaN)."""
    out = np.zeros((lower.size, location.size))
    seen = ~np.isnan(lower)
    pairs, which = np.unique(np.column_stack([lower, upper])[seen], axis=0, return_inverse=True)
    a, b = (pairs[:, [i]] - location[None, :] for i in (0, 1))
    flip = a > 0  # the lower tail keeps its digits
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    top = special.log_ndtr(b)
    out[seen] = (top + np.log1p(-np.exp(special.log_ndtr(a) - top)))[which.ravel()]
    return out


def of_largest(winner: np.ndarray, location: np.ndarray) -> np.ndarray:
    """Return the log probability that a level wins, under each row of locations; 0 in holes (NaN).

    The first level has location 0, the others those of the columns of `location`; all have noise of variance 1.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    means = np.column_stack([np.zeros(len(location)), location])
    levels = np.empty((means.shape[1], len(means)))
    for w in range(means.shape[1]):
        others = np.delete(means, w, axis=1)
        beaten = special.log_ndtr(nodes[None, :, None] + means[:, [w], None] - others[:, None, :])
        levels[w] = np.log(np.exp(beaten.sum(axis=2)) @ weights / weights.sum() + 1e-300)
    out = np.zeros((winner.size, len(means)))
    seen = ~np.isnan(winner)
    out[seen] = levels[winner[seen].astype(int)]
    return out


def bound(made: Made) -> np.ndarray:
    """Return the correlation of the true features with the best guesses of one who knows all parameters."""
    return np.array([correlation(*pair) for pair in zip(made.Z.T, guesses(made).T, strict=True)])


def guesses(made: Made) -> np.ndarray:
    """Return the best guesses, rows x features, of one who knows the true weights, noise and shares.

    The posterior of a row's features given its cells is enumerated over all combinations; the guess of a
    feature is its more probable value, the others summed out. One who has to learn the weights does not do
    better on average.
    """
    n_features = made.Z.shape[1]
    configurations = (np.arange(2**n_features)[:, None] >> np.arange(n_features)) & 1 == 1
    prior = np.where(configurations, np.log(made.shares), np.log1p(-made.shares)).sum(axis=1)
    post = special.softmax(made.evidence(configurations) + prior, axis=1)
    return post @ configurations > 0.5


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Return the correlation of two yes-or-no columns over rows, 0 if one does not vary."""
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def locations(configurations: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the means of the pseudo-columns, the first row of `B` being the bias."""
    return B[0] + configurations @ B[1:]


# ---- tables made from known features


def two_level(n_rows: int, n_columns: int = 55, n_features: int = 10) -> Made:
    """Two-level columns: features of a fifth of the rows, weights of sd 2, bias -1."""
    rng = np.random.default_rng(0)
    Z = rng.random((n_rows, n_features)) < 0.2
    B = np.vstack([np.full(n_columns, -1.0), rng.normal(0, 2, (n_features, n_columns))])
    x = locations(Z, B) + rng.standard_normal((n_rows, n_columns)) > 0
    frame = pd.DataFrame(x, columns=[f"c{d}" for d in range(n_columns)])

    def evidence(configurations: np.ndarray) -> np.ndarray:
        mean = locations(configurations, B)
        return x @ special.log_ndtr(mean).T + ~x @ special.log_ndtr(-mean).T

    return Made(frame, dict.fromkeys(frame, "categorical"), Z, np.full(n_features, 0.2), evidence)


LEVELS = ("a", "b", "c", "d")
CUTS = np.array([-np.inf, -1.0, 0.5, 2.0, np.inf])


def inverse_softplus(x: np.ndarray) -> np.ndarray:
    """Return the number whose softplus is x; minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return x + np.log(-np.expm1(-x))


def five_kinds(n_rows: int, n_columns: int = 24, n_features: int = 6, missing: float = 0.15) -> Made:
    """Columns of all kinds in turn, with holes: features of a fifth of the rows, weights of sd 1.5, noise 1."""
    rng = np.random.default_rng(1)
    import glfm

    Z = rng.random((n_rows, n_features)) < 0.2
    holes = rng.random((n_rows, n_columns)) < missing
    columns: dict[str, Any] = {}
    schema: dict[str, Any] = {}
    parts: list[tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]] = []

    def add(kind: str, values: Any, B: np.ndarray, says: Callable[[np.ndarray], np.ndarray]) -> None:
        name = f"{kind}{len(columns)}"
        columns[name] = values
        levels = {"categorical": glfm.Categorical(levels=LEVELS), "ordinal": glfm.Ordinal(levels=LEVELS)}
        schema[name] = levels.get(kind, kind)
        parts.append((B, says))

    for d in range(n_columns):
        kind = ("real", "positive", "count", "categorical", "ordinal")[d % 5]
        width = 3 if kind == "categorical" else 1
        B = np.vstack([rng.normal(0, 0.5, (1, width)), rng.normal(0, 1.5, (n_features, width))])
        Y = locations(Z, B) + rng.standard_normal((n_rows, width))
        y, seen = Y[:, 0], np.where(holes[:, d], np.nan, 0.0)
        if kind == "real":
            add(kind, 3.0 * y + 10.0, B, lambda m, y=y + seen: of_points(y, m[:, 0]))
        elif kind == "positive":
            add(kind, 5.0 * np.logaddexp(0.0, y), B, lambda m, y=y + seen: of_points(y, m[:, 0]))
        elif kind == "count":
            x = np.floor(2.0 * np.logaddexp(0.0, y))
            low, high = inverse_softplus(0.5 * x) + seen, inverse_softplus(0.5 * (x + 1.0)) + seen
            add(kind, x, B, lambda m, low=low, high=high: of_intervals(low, high, m[:, 0]))
        elif kind == "ordinal":
            code = np.digitize(y, CUTS[1:-1])
            low, high = CUTS[code] + seen, CUTS[code + 1] + seen
            values = pd.Categorical.from_codes(code, list(LEVELS), ordered=True)
            add(kind, values, B, lambda m, low=low, high=high: of_intervals(low, high, m[:, 0]))
        else:
            code = np.column_stack([rng.standard_normal(n_rows), Y]).argmax(axis=1)
            values = np.array(LEVELS, dtype=object)[code]
            add(kind, values, B, lambda m, code=code + seen: of_largest(code, m))
    frame = pd.DataFrame(columns).mask(holes)

    def evidence(configurations: np.ndarray) -> np.ndarray:
        return sum(says(locations(configurations, B)) for B, says in parts)

    return Made(frame, schema, Z, np.full(n_features, 0.2), evidence)


def smooth(n_rows: int, n_columns: int = 12) -> Made:
    """Real columns: four features of a fifth of the rows over two Gaussian factors that every row has.

    The bound knows the loadings of the factors, too.
    """
    rng = np.random.default_rng(2)
    Z = rng.random((n_rows, 4)) < 0.2
    B = np.vstack([np.zeros(n_columns), rng.normal(0, 2, (4, n_columns))])
    loadings = rng.standard_normal((2, n_columns))
    smooth_part = rng.standard_normal((n_rows, 2)) @ loadings
    y = locations(Z, B) + smooth_part + 0.5 * rng.standard_normal((n_rows, n_columns))
    root = np.linalg.cholesky(loadings.T @ loadings + 0.25 * np.eye(n_columns))

    def evidence(configurations: np.ndarray) -> np.ndarray:
        white, means = (np.linalg.solve(root, part.T).T for part in (y, locations(configurations, B)))
        return sum(of_points(white[:, d], means[:, d]) for d in range(n_columns))

    frame = pd.DataFrame(y, columns=[f"c{d}" for d in range(n_columns)])
    return Made(frame, dict.fromkeys(frame, "real"), Z, np.full(4, 0.2), evidence)


def images(n_rows: int) -> Made:
    """The toy images of examples/toy_images.py: four shapes of one image in five each, noise of variance 0.5."""
    from glfm.datasets import make_images

    rng = np.random.default_rng(0)
    shapes = make_images(1).shapes.reshape(4, -1)
    Z = rng.random((n_rows, 4)) < 0.2
    x = Z @ shapes + np.sqrt(0.5) * rng.standard_normal((n_rows, shapes.shape[1]))

    def evidence(configurations: np.ndarray) -> np.ndarray:
        means = configurations @ shapes
        return sum(of_points(x[:, d], means[:, d], np.sqrt(0.5)) for d in range(x.shape[1]))

    frame = pd.DataFrame(x, columns=[f"pixel{d}" for d in range(x.shape[1])])
    return Made(frame, dict.fromkeys(frame, "real"), Z, np.full(4, 0.2), evidence)


def clinic(n_rows: int) -> Made:
    """The table of `glfm demo`, kinds inferred as there; what the traits weigh stands in the package."""
    from glfm import datasets

    made = datasets.make_clinic(n_rows, seed=0)
    shares = np.array(list(datasets._TRAITS.values()))
    return Made(made.frame, None, made.Z, shares, lambda c: _of_patients(made.frame, c))


def _of_patients(frame: pd.DataFrame, configurations: np.ndarray) -> np.ndarray:
    """Return what the cells of `datasets.make_clinic` say; rounded numbers count as exact."""
    from glfm import datasets

    B = np.array(list(datasets._CLINIC.values())).T
    mean = dict(zip(datasets._CLINIC, locations(configurations, B).T, strict=True))

    def numbers(name: str) -> np.ndarray:
        return frame[name].to_numpy(dtype=float, na_value=np.nan)

    def codes(name: str, levels: tuple[Any, ...]) -> np.ndarray:
        found = pd.Categorical(frame[name], categories=list(levels)).codes.astype(float)
        return np.where(found < 0, np.nan, found)

    def ordered(name: str, levels: tuple[Any, ...], cuts: tuple[float, ...]) -> np.ndarray:
        edges = np.array([-np.inf, *cuts, np.inf])
        code = codes(name, levels)
        at = np.nan_to_num(code).astype(int)
        return of_intervals(edges[at] + 0 * code, edges[at + 1] + 0 * code, mean[name])

    def counted(name: str, unit: float, slope: float) -> np.ndarray:
        x = numbers(name)
        low, high = (inverse_softplus((x + i) / unit) / slope for i in (0, 1))
        return of_intervals(low, high, mean[name])

    total = of_points(numbers("bp_change") / 6.0, mean["bp_change"])
    total += of_points(numbers("weight_change") / 1.2, mean["weight_change"])
    crp, limit = numbers("crp"), inverse_softplus(np.array(0.25)) / 1.5
    undetected = np.where(crp == 0, 0.0, np.nan)
    total += of_intervals(undetected - np.inf, undetected + limit, mean["crp"])
    total += of_points(np.where(crp > 0, inverse_softplus(crp / 4.0) / 1.5, np.nan), mean["crp"])
    total += of_points(inverse_softplus(numbers("bnp").clip(0.05) / 60.0) / 1.2, mean["bnp"])
    total += counted("visits", 1.5, 1.0) + counted("drugs", 2.0, 0.8)
    wards = np.column_stack([mean[f"ward={name}"] for name in datasets._WARDS[1:]])
    total += of_largest(codes("ward", datasets._WARDS), wards)
    mean["sex"] = mean["sex=male"]
    total += ordered("sex", ("female", "male"), (0.0,)) + ordered("smoker", (False, True), (0.0,))
    total += ordered("pain", datasets._PAIN, (0.0, 1.2, 2.4))
    return total + sum(ordered(name, datasets._OFTEN, (0.0, 1.5)) for name in ("fatigue", "cough"))


# Name, number of rows, what makes it.
MADE: dict[str, tuple[int, Callable[[int], Made]]] = {
    "clinic": (400, clinic),
    "images": (1_000, images),
    "smooth": (1_000, smooth),
    "five_kinds": (2_000, five_kinds),
    "two_level_3000": (3_000, two_level),
    "two_level_10000": (10_000, two_level),
}
TITLES = {
    "clinic": "the demo's clinic",
    "images": "toy images",
    "smooth": "four features over two smooth factors",
    "five_kinds": "all five kinds, 15 % holes",
    "two_level_3000": "two levels",
    "two_level_10000": "two levels",
    "nesarc_disorders": "disorders",
}
TABLES = (*MADE, *REAL)


def make(name: str, quick: bool) -> Made:
    """Make a table from known features; a quick one has few rows."""
    n_rows, maker = MADE[name]
    return maker(max(min(n_rows, QUICK_ROWS), n_rows // 10) if quick else n_rows)


def open_table(name: str, quick: bool) -> Table:
    """Make or load a table; a quick one has few rows."""
    if name in MADE:
        made = make(name, quick)
        return Table(made.frame, made.schema, made.Z, guesses(made))
    if name in PACKAGED:
        return packaged(name)
    from glfm import datasets

    frame, schema, _ = getattr(datasets, f"load_{name}")()
    frame = frame.iloc[:: EVERY.get(name, 1)].reset_index(drop=True)
    if quick and len(frame) > QUICK_ROWS:
        chosen = np.random.default_rng(0).choice(len(frame), QUICK_ROWS, replace=False)
        frame = frame.iloc[np.sort(chosen)].reset_index(drop=True)
    return Table(frame, schema, None)


def packaged(name: str) -> Table:
    """Return a table that scikit-learn has inside, its kinds inferred; classes are levels."""
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")(as_frame=True)
    frame = found.data.copy()
    frame["target"] = np.array(found.target_names)[found.target] if "target_names" in found else found.target
    return Table(frame, None, None)


def available(names: list[str], say: Callable[[str], object]) -> list[str]:
    """Return the tables that can be had, and say which cannot."""
    if os.environ.get("GLFM_DATA"):
        return names
    skipped = [name for name in names if name in REAL]
    if skipped:
        say(f"Skipped, because GLFM_DATA is not set: {', '.join(skipped)}.")
    return [name for name in names if name not in skipped]
