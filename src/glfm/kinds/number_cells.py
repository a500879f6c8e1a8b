"""The predictive distribution of cells whose values are numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from glfm.frames.column import FloatArray
from glfm.kernels.mixture import interpolate, mixture_log_density, mixture_log_mass, mixture_quantile
from glfm.kinds.base import Noise
from glfm.kinds.cells import Cells, Guess, Move, average
from glfm.kinds.links import VALUE_LIMIT

if TYPE_CHECKING:
    from glfm.kinds.numeric import NumericKind

_GRID = 24
_STEPS = 16
_STEP, _LEVEL = 0.1, 0.05  # of a lattice: in standard deviations, and of their logarithm
_LEAST = 1e-6  # of the size of a column: means far below it are read as differences, not as ratios
_COMPONENTS = 256  # of a kernel density, at most
_SCALES = (0.2, 2.0)  # of a move, at least and at most
_CLOSE = 1e-2  # in weight and scale, and in nats
# Of what learners have seen: standard deviations around a place, in those of the column, and largest share.
_WIDTHS, _MOST_SHARE = np.array([0.05, 0.12, 0.25, 0.5]), 0.95
_MOST_LOG = 500.0  # of a ratio of densities


@dataclass(frozen=True, eq=False)
class NumberCells(Cells):
    """Cells whose values are numbers.

    Draws are mixed on the pseudo-scale, where every component is a (possibly truncated) normal.

    Parameters
    ----------
    seen
        Places on the pseudo-scale where a learner has seen cells in rows like these, rows x places: further
        components; None: there are none.
    share
        Probability of these components together.
    width
        Standard deviation of each of them.
    """

    kind: NumericKind
    seen: FloatArray | None = None
    share: float = 0.0
    width: float = 0.0

    @cached_property
    def _mixture(self) -> tuple[FloatArray, FloatArray]:
        """Means (rows x components) and standard deviations of the components on the pseudo-scale."""
        means = np.column_stack([location[:, 0] for location in self.locations])
        sds = np.sqrt(self.variances + self.kind.aux_variance)
        if self.seen is not None:
            means = np.hstack([means, self.seen])
            sds = np.append(
                sds, np.full(self.seen.shape[1], math.sqrt(self._around + self.kind.aux_variance))
            )
        return np.ascontiguousarray(means), sds

    @cached_property
    def _weights(self) -> FloatArray:
        """Weights of the components, 1 on average."""
        n_draws = len(self.locations)
        if self.seen is None:
            return np.ones(n_draws)
        n_places = self.seen.shape[1]
        n = n_draws + n_places
        each = (1.0 - self.share) * n / n_draws, self.share * n / n_places
        return np.repeat(each, (n_draws, n_places))

    @property
    def _around(self) -> float:
        """Noise variance around a place where a learner has seen cells."""
        return max(self.width * self.width - self.kind.aux_variance, 0.0)

    def parts(self) -> Iterator[tuple[FloatArray, float, FloatArray]]:
        yield from super().parts()
        if self.seen is not None:
            for place in self.seen.T:
                yield place[:, None], self._around, self.thetas[0]

    @cached_property
    def _log_support(self) -> FloatArray:
        """Log mass of the support under every component, rows x draws."""
        means, sds = self._mixture
        parts = [self.kind.log_support_mass(means[:, t], sds[t]) for t in range(sds.size)]
        return np.ascontiguousarray(np.column_stack(parts))

    def log_density(self, x: FloatArray) -> FloatArray:
        return self._log_density_between(*self.kind.bounds(x), self.kind.link.log_slope(x), np.isnan(x))

    def _log_density_between(
        self, lower: FloatArray, upper: FloatArray, log_slope: FloatArray, is_hole: NDArray[np.bool_]
    ) -> FloatArray:
        """Return log densities of values whose place on the pseudo-scale is a point or an interval."""
        means, sds = self._mixture
        score = np.full(lower.size, np.nan)
        point = np.flatnonzero(lower == upper)
        point = point[np.isfinite(lower[point])]
        score[point] = mixture_log_density(
            lower[point], means[point], sds, self._weights, self._log_support[point]
        )
        score[point] += log_slope[point]
        mass = self.log_mass(lower, upper)
        score = np.where(np.isnan(mass), score, mass)
        # What no point of the pseudo-scale gives has no density.
        return np.where(np.isnan(score) & ~is_hole, -np.inf, score)

    def log_mass_near(self, x: FloatArray) -> FloatArray:
        if self.kind.is_whole:
            return self.log_density(x)
        lower, upper = self.kind.place(x - 0.5), self.kind.place(x + 0.5)
        for value, low, high in self.kind.atom_cells:
            hit = x == value
            lower = np.where(hit, low, lower if low > -np.inf else np.maximum(lower, high))
            upper = np.where(hit, high, upper if high < np.inf else np.minimum(upper, low))
        return self.log_mass(lower, upper)

    def log_mass(self, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Return the log probability of one interval of the pseudo-scale per cell; NaN where it is empty."""
        means, sds = self._mixture
        lower, upper = np.clip(lower, *self.kind.support), np.clip(upper, *self.kind.support)
        mass = np.full(self.n_rows, np.nan)
        inside = np.flatnonzero(lower < upper)
        mass[inside] = mixture_log_mass(
            lower[inside], upper[inside], means[inside], sds, self._weights, self._log_support[inside]
        )
        return mass

    def mean(self) -> FloatArray:
        link = self.kind.link
        if self._is_line:
            return np.asarray(link.forward(self._center))
        if link.transform is None:
            return self._interpolated_mean()
        return average([self.kind.mean(*part) for part in self.parts()], self._weights)

    @property
    def _is_line(self) -> bool:
        """Whether values are a linear function of the pseudo-scale."""
        link = self.kind.link
        is_line = link.mapping.name == "affine" and link.transform is None and link.curve is None
        return bool(np.isinf(self.kind.lowest)) and is_line

    def _interpolated_mean(self) -> FloatArray:
        """Return the mean, that of every component read between points of a lattice of means and sds.

        A component's mean is a smooth function of both, so that errors are some millionths of the spread of a
        column; numbers with a lowest value are read on the log scale. The lattice is the same for all rows.
        """
        means, sds = self._mixture
        has_log = self.kind.lowest == 0.0
        least = _LEAST * self.kind.size  # so that a mean of zero has a logarithm
        level, shares = _cubic(np.log(sds) / _LEVEL)
        parts = np.zeros_like(means)
        for number in np.unique(level):
            sd = math.exp(_LEVEL * number)
            some, which = np.nonzero(level == number)
            at = means[:, some] / (_STEP * sd)
            points = np.unique(np.unique(np.floor(at))[:, None] + np.arange(-2.0, 4.0))
            variance = sd * sd - self.kind.aux_variance
            height = self.kind.mean(_STEP * sd * points[:, None], variance, self.thetas[0])
            height = np.log(height + least) if has_log else height
            parts[:, some] += shares[some, which] * interpolate(at, points, height)
        found = np.maximum(np.exp(parts) - least, 0.0).T if has_log else parts.T
        return average(list(found), self._weights)

    def sd(self) -> FloatArray:
        link = self.kind.link
        if self._is_line:  # a difference of squares would lose the digits of values far from zero
            return np.asarray(link.unit * link.scale * np.sqrt(np.add(*self.split())))
        with np.errstate(over="ignore", invalid="ignore"):
            squares = [self.kind.mean_square(*part) for part in self.parts()]
            size = self.kind.size
            off = (self.mean() - self.kind.origin) / size
            spread = size * np.sqrt(np.maximum(average(squares, self._weights) - off**2, 0.0))
        return np.where(spread < VALUE_LIMIT, spread, VALUE_LIMIT)

    def split(self) -> tuple[FloatArray, FloatArray]:
        means, sds = self._mixture
        n_draws = len(self.locations)
        between = (1.0 - self.share) ** 2 * means[:, :n_draws].var(
            axis=1
        )  # places seen are those of all draws
        if self.seen is None:
            return np.full(self.n_rows, np.mean(sds * sds)), between
        squares = np.square(means - self._center[:, None]) + sds * sds
        return np.mean(self._weights * squares, axis=1) - between, between

    def quantile(self, q: float) -> FloatArray:
        means, sds = self._mixture
        q = q if self.kind.link.increasing else 1.0 - q
        return self.kind.to_value(
            np.asarray(mixture_quantile(q, means, sds, self._weights, *self.kind.support))
        )

    def cdf(self, x: FloatArray) -> FloatArray:
        return average([self.kind.cdf(x, *part) for part in self.parts()], self._weights)

    def log_tails(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        means, sds = self._mixture
        low, high = self.kind.support
        lower, upper = (np.clip(end, low, high) for end in self.kind.bounds(x))
        first, last = np.full(x.size, low), np.full(x.size, high)
        left = mixture_log_mass(first, upper, means, sds, self._weights, self._log_support)
        right = mixture_log_mass(lower, last, means, sds, self._weights, self._log_support)
        return (left, right) if self.kind.link.increasing else (right, left)

    def sample(self, rng: Noise, t: int) -> FloatArray:
        own = super().sample(rng, t)
        if self.seen is None:
            return own
        u = rng.random((self.n_rows, 2))
        place = np.minimum((u[:, 1] * self.seen.shape[1]).astype(np.intp), self.seen.shape[1] - 1)
        at = np.take_along_axis(self.seen, place[:, None], axis=1)
        other = self.kind.sample(rng, at, self._around, self.thetas[t])
        return np.where(u[:, 0] < self.share, other, own)

    # ---- refinement

    @property
    def _center(self) -> FloatArray:
        """The mean location of each cell."""
        return average(list(self._mixture[0].T), self._weights)

    def inputs(self, counts: NDArray[np.int64]) -> FloatArray:
        return self._center[:, None]

    def moves(self, guess: Guess, move: Move) -> FloatArray:
        """Return what is added to locations once they are scaled, and the places that a learner has seen.

        The mean location m becomes m + weight (guess - m), and the deviations of draws from it are scaled, so
        that what draws say of several cells of a row stays as dependent as it is.
        """
        center = self._center
        added = ((1.0 - move.scale) * center + move.weight * (guess.center[:, 0] - center))[:, None]
        return added if not move.share else np.hstack([added, guess.seen])

    def moved(self, moves: FloatArray, move: Move) -> NumberCells:
        aux, scale = self.kind.aux_variance, move.scale
        variances = np.maximum(scale * scale * (self.variances + aux) - aux, 0.0)
        locations = [scale * location + moves[:, :1] for location in self.locations]
        seen = moves[:, 1:] if move.share else None
        return replace(
            self, locations=locations, variances=variances, seen=seen, share=move.share, width=move.width
        )

    def shifted(self, by: FloatArray) -> NumberCells:
        return replace(super().shifted(by), seen=None if self.seen is None else self.seen + by)

    def best_moves(self, x: FloatArray, guesses: Sequence[Guess]) -> list[tuple[Move, FloatArray]]:
        """Return the best moves, with the spread relative to the model's own.

        The cells may come from few draws, which are too sure of what they say. So where they are best wider
        than they are, so is what the spread is relative to, and what gains are beside.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            where = *self.kind.bounds(x), self.kind.link.log_slope(x), np.isnan(x)

        def scored(cells: NumberCells) -> FloatArray:
            return cells._log_density_between(*where)

        def moved(guess: Guess, weight: float, scale: float) -> NumberCells:
            move = Move(weight, scale)
            return self.moved(self.moves(guess, move), move)

        def loss(at: FloatArray, guess: Guess) -> float:
            return -float(scored(moved(guess, float(at[0]), float(at[1]))).mean())

        bounds, found = [(0.0, 1.0), _SCALES], []
        own = float(
            minimize_scalar(
                lambda s: loss(np.array([0.0, s]), guesses[0]), bounds=_SCALES, method="bounded"
            ).x
        )
        few = max(own, 1.0)
        before = scored(moved(guesses[0], 0.0, few))
        for guess in guesses:
            best = minimize(
                loss, np.array([0.5, own]), args=(guess,), method="Nelder-Mead", bounds=bounds, tol=_CLOSE
            )
            weight, scale = best.x.tolist()
            after = scored(moved(guess, weight, scale))
            if after.mean() <= before.mean():
                weight, scale, after = 0.0, few, before
            share, width, after = self._best_share(x, guess.seen, scored, after)
            found.append((Move(weight, scale / few, share, width), after - before))
        return found

    def _best_share(
        self,
        x: FloatArray,
        seen: FloatArray,
        scored: Callable[[NumberCells], FloatArray],
        score: FloatArray,
    ) -> tuple[float, float, FloatArray]:
        """Return the best share and width of places that a learner has seen, and log densities with them."""
        best = 0.0, 0.0, score
        n_places = seen.shape[1]
        for width in float(self.kind.pseudo(x).std()) * _WIDTHS if n_places else ():
            variances = np.full(n_places, max(width * width - self.kind.aux_variance, 0.0))
            places, thetas = list(seen.T[:, :, None]), self.thetas[:1] * n_places
            alone = replace(self, locations=places, variances=variances, thetas=thetas)
            ratio = np.exp(np.minimum(scored(alone) - score, _MOST_LOG))
            share = _best_weight(ratio)
            mixed = score + np.log1p(share * (ratio - 1.0))
            if mixed.mean() > best[2].mean():
                best = share, float(width), mixed
        return best

    # ---- mode

    def mode(self) -> FloatArray:
        """Return the value of highest density, or the most probable point where points hold half the mass."""
        means, sds = self._mixture
        low, high = self.kind.continuum
        a = np.clip((means - 3 * sds).min(axis=1), low, high)
        b = np.clip((means + 3 * sds).max(axis=1), low, high)
        # Besides an even grid, the means of some draws: a narrow peak may stand between grid points.
        some = np.linspace(0, sds.size - 1, min(sds.size, _GRID)).astype(np.intp)
        grid = np.vstack([np.linspace(a, b, _GRID), np.clip(means[:, some].T, low, high)])
        scores = np.stack([self._score(w) for w in grid])
        best = grid[scores.argmax(axis=0), np.arange(self.n_rows)]
        value = self._climb(best, (b - a) / (_GRID - 1), low, high)
        points = self.kind.points
        if points.size:
            mass = np.exp([self.log_density(np.full(self.n_rows, point)) for point in points])
            value = np.where(mass.sum(axis=0) >= 0.5, points[mass.argmax(axis=0)], value)
        return value

    def _score(self, w: FloatArray) -> FloatArray:
        """Log density, or log probability of a count, of the value at `w`, in the space of values."""
        x = self.kind.to_value(w)
        score = self.log_density(x)
        return np.where(np.isnan(score) | np.isin(x, self.kind.spikes[:, 0]), -np.inf, score)

    def _climb(self, w: FloatArray, step: FloatArray, low: float, high: float) -> FloatArray:
        """Halve the step until the top is found."""
        top = self._score(w)
        for _ in range(_STEPS):
            for sign in (-1.0, 1.0):
                trial = np.clip(w + sign * step, low, high)
                score = self._score(trial)
                w, top = np.where(score > top, trial, w), np.maximum(score, top)
            step = step * 0.6
        return self.kind.to_value(w)


def _best_weight(ratio: FloatArray) -> float:
    """Return the weight of a component at which a mixture is most probable, given ratios of densities.

    The logarithm of the mixture is concave in the weight, so its slope is halved until it is zero.
    """
    low, high = 0.0, _MOST_SHARE
    if np.mean(ratio - 1.0) <= 0.0:
        return 0.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        if np.mean((ratio - 1.0) / (1.0 + middle * (ratio - 1.0))) > 0.0:
            low = middle
        else:
            high = middle
    return low


def _cubic(at: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the four whole numbers around each place, and their shares in a cubic through them."""
    first = np.floor(at)
    t = at - first
    shares = [
        -t * (t - 1) * (t - 2) / 6,
        (t + 1) * (t - 1) * (t - 2) / 2,
        -(t + 1) * t * (t - 2) / 2,
        (t + 1) * t * (t - 1) / 6,
    ]
    return first.astype(np.int64)[:, None] + np.arange(-1, 3), np.column_stack(shares)


def kernel_density(kind: NumericKind, seen: FloatArray, n_cells: int) -> NumberCells:
    """Return cells with a kernel density, on the pseudo-scale, of what is observed in the column."""
    w = kind.pseudo(seen)
    middle = np.subtract(*np.quantile(w, [0.75, 0.25])) / 1.34
    width = 0.9 * (min(float(w.std()), middle) or float(w.std()) or 1.0) * w.size**-0.2
    if w.size > _COMPONENTS:
        w = np.quantile(w, (np.arange(_COMPONENTS) + 0.5) / _COMPONENTS)
    return NumberCells(
        kind,
        [np.full((n_cells, 1), center) for center in w],
        np.full(w.size, max(width * width - kind.aux_variance, 1e-6)),
        [np.empty(0)] * w.size,
    )
