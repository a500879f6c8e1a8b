"""The collapsed sweep against plain NumPy: what it keeps, and the probabilities by which it moves."""

import copy
import math
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from glfm.kernels.arrays import FeaturePrior, Matrices, Rows
from glfm.kernels.collapsed import sweep_rows
from glfm.kernels.feature_moves import N_PROPOSALS, add_or_drop_features, recode_features
from glfm.kernels.linalg import cholesky, invert, solve_lower, solve_upper
from glfm.kernels.matrices import drift, refresh
from glfm.kernels.random import stream
from glfm.kernels.row_sums import sum_rows
from glfm.kinds.real import Real
from glfm.sampling.collapsed import CollapsedSampler
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem
from glfm.sampling.state import State

ACCEPT, REJECT = 1e-3, 1e-6  # p-values with fixed seeds


@dataclass
class Setup:
    """All that one call of the kernel works on."""

    rng: np.ndarray
    Z: np.ndarray
    width: int
    bias: int
    Y: np.ndarray
    missing: np.ndarray
    pinned: np.ndarray
    inv_sd: np.ndarray
    alpha: float
    weight_variance: float
    max_width: int = 10**6

    def __post_init__(self) -> None:
        room, S = self.Z.shape[1], self.Y.shape[1]
        self.starts = np.concatenate([[0], np.cumsum(self.missing.sum(axis=1))]).astype(np.int64)
        self.columns = np.nonzero(self.missing)[1].astype(np.int32)
        square, wide = (room, room), (room, S)
        self.matrices = Matrices(*(np.zeros(shape) for shape in (square, wide, square, wide, square)))
        self.drift = 0.0
        self.counts = np.zeros(room, dtype=np.int64)
        self.counts[: self.width] = self.Z[:, : self.width].sum(axis=0)
        sum_rows(self.Z, self.width, self.Y, self.inv_sd, self.matrices.ZZ, self.matrices.ZY)
        refresh(self.matrices, self.width, self.weight_variance)

    @property
    def rows(self) -> Rows:
        return Rows(self.Z, self.counts, self.Y, self.inv_sd, self.starts, self.columns, self.pinned)

    @property
    def prior(self) -> FeaturePrior:
        return FeaturePrior(self.bias, len(self.Z), self.alpha, self.weight_variance, self.max_width)

    def sweep(self, start: int = 0, stop: int | None = None) -> None:
        stop = len(self.Z) if stop is None else stop
        log_of = np.log(np.maximum(np.arange(self.Z.shape[0] + 1.0), 1.0))
        row, self.width, needed = sweep_rows(
            self.rng, self.rows, self.width, self.prior, log_of, self.matrices, start, stop
        )
        self.drift = drift(self.matrices, self.width, self.weight_variance)
        assert row == stop, "the arrays were too small for this test"
        assert needed == self.width

    def recode(self) -> None:
        left = self.width - self.bias
        while left > 0:
            left, changed = recode_features(
                self.rng, self.rows, self.width, self.prior, 0, left, self.matrices
            )
            if changed:
                refresh(self.matrices, self.width, self.weight_variance)

    def add_or_drop(self) -> None:
        left = N_PROPOSALS
        while left > 0:
            before, n_free = self.width, int((~self.pinned).sum())
            self.width, left = add_or_drop_features(
                self.rng, self.rows, self.width, self.prior, n_free, left, self.matrices
            )
            if self.width != before:
                refresh(self.matrices, self.width, self.weight_variance)

    @property
    def standard(self) -> np.ndarray:
        return self.Y * self.inv_sd

    @property
    def features(self) -> np.ndarray:
        return self.Z[:, : self.width].astype(np.float64)


def random_setup(
    seed: int,
    n_rows: int = 60,
    S: int = 7,
    n_features: int = 5,
    bias: int = 0,
    holes: float = 0.0,
    n_pinned: int = 0,
    alpha: float = 2.0,
    weight_variance: float = 1.3,
    room: int = 80,
) -> Setup:
    rng = np.random.default_rng(seed)
    width = n_features + bias
    Z = np.zeros((n_rows, room), dtype=np.uint8)
    Z[:, :bias] = 1
    Z[:, bias:width] = rng.random((n_rows, n_features)) < rng.uniform(0.05, 0.7, n_features)
    for k in range(bias, width):
        Z[n_pinned + rng.integers(n_rows - n_pinned), k] = 1
    Z[:n_pinned, bias:] = 0
    Y = Z[:, :width] @ rng.normal(0.0, 1.5, (width, S)) + rng.normal(size=(n_rows, S))
    missing = rng.random((n_rows, S)) < holes
    sd = rng.uniform(0.5, 2.0, S)
    return Setup(
        rng=stream(np.random.SeedSequence(seed)),
        Z=Z,
        width=width,
        bias=bias,
        Y=Y * sd,
        missing=missing,
        pinned=np.arange(n_rows) < n_pinned,
        inv_sd=1.0 / sd,
        alpha=alpha,
        weight_variance=weight_variance,
    )


def check_against_scratch(setup: Setup, tolerance: float = 1e-10) -> None:
    """Recompute what the kernel keeps from Z and Y alone, and compare."""
    Z, Y, K = setup.features, setup.standard, setup.width
    Q = np.linalg.inv(Z.T @ Z + np.eye(K) / setup.weight_variance) if K else np.empty((0, 0))
    M = Q @ (Z.T @ Y)
    exact = Matrices(ZZ=Z.T @ Z, ZY=Z.T @ Y, inverse=Q, means=M, gram=M @ M.T)
    for name, right in exact._asdict().items():
        kept = getattr(setup.matrices, name)[: len(right), : right.shape[1]]
        scale = max(1.0, np.abs(right).max(initial=0.0))
        np.testing.assert_allclose(kept, right, rtol=0, atol=tolerance * scale, err_msg=name)
    np.testing.assert_array_equal(setup.counts[:K], setup.Z[:, :K].sum(axis=0))


def check_sane(setup: Setup, before: Setup) -> None:
    """Check what no sweep may do: touch observed cells or pinned rows, or leave empty features behind."""
    K, bias = setup.width, setup.bias
    seen = ~setup.missing
    np.testing.assert_array_equal(setup.Y[seen], before.Y[seen])
    np.testing.assert_array_equal(setup.Y[setup.pinned], before.Y[setup.pinned])
    assert set(np.unique(setup.Z)) <= {0, 1}
    assert (setup.Z[:, :bias] == 1).all()
    assert (setup.Z[setup.pinned, bias:] == 0).all()
    assert (setup.counts[bias:K] > 0).all()
    assert (setup.Z[:, K:] == 0).all()


CASES = {
    "no features": {"n_features": 0},
    "no features, bias": {"n_features": 0, "bias": 1},
    "plain": {},
    "bias": {"bias": 1},
    "few holes": {"holes": 0.15},
    "many holes": {"holes": 0.7, "bias": 1},
    "all holes": {"holes": 1.1, "alpha": 4.0},
    "pinned": {"n_pinned": 20, "bias": 1, "holes": 0.2},
    "all pinned but one": {"n_pinned": 59, "n_features": 1},
    "fifteen features": {"n_features": 15, "bias": 1, "holes": 0.3, "S": 20},
    "births and deaths": {"alpha": 30.0, "n_features": 10, "S": 2, "holes": 0.2},
    "one column": {"S": 1},
    "no columns": {"S": 0},
    "weak prior": {"weight_variance": 100.0},
    "strong prior": {"weight_variance": 0.01},
    "three rows": {"n_rows": 3, "n_features": 2, "holes": 0.3},
    "one row": {"n_rows": 1, "n_features": 2},
}


@pytest.mark.parametrize("case", CASES)
def test_matrices_equal_those_from_scratch(case: str) -> None:
    for seed in range(3):
        setup = random_setup(seed, **CASES[case])
        before = copy.deepcopy(setup)
        widths = set()
        for _ in range(4):
            setup.sweep()
            widths.add(setup.width)
            check_against_scratch(setup)
            check_sane(setup, before)
        assert case != "births and deaths" or len(widths) > 1


def test_matrices_stay_exact_over_thousands_of_rows() -> None:
    # 60 rows are fewer than the kernel's period of recomputation, so that nothing is ever recomputed.
    setup = random_setup(7, holes=0.3, bias=1, alpha=5.0, S=10)
    for _ in range(150):
        setup.sweep()
    check_against_scratch(setup)


@pytest.mark.parametrize("weight_variance", [0.1, 1.0, 100.0])
def test_matrices_drift_slowly_over_a_hundred_thousand_rows(weight_variance: float) -> None:
    """A chain recomputes them after 512 rows at the latest; here they go without for 102,000."""
    setup = random_setup(9, holes=0.3, bias=1, S=6, weight_variance=weight_variance)
    worst, changed = 0.0, 0
    for _ in range(1700):
        before = setup.Z.copy()
        setup.sweep()
        changed += int((before != setup.Z).any(axis=1).sum())
        worst = max(worst, setup.drift)
    assert changed > 20_000
    assert not worst > 1e-9
    check_against_scratch(setup, tolerance=1e-8)


def test_matrices_stay_exact_across_recomputations() -> None:
    setup = random_setup(8, n_rows=1500, holes=0.3, bias=1, S=10)
    for _ in range(3):
        for start in (0, 512, 1024):
            refresh(setup.matrices, setup.width, setup.weight_variance)
            setup.sweep(start, min(start + 512, 1500))
    check_against_scratch(setup)


def test_feature_bound_is_kept() -> None:
    setup = random_setup(3, bias=1, alpha=60.0, n_features=5, S=3)
    setup.max_width = 7
    seen = set()
    for _ in range(20):
        setup.sweep()
        seen.add(setup.width)
        check_against_scratch(setup)
    assert max(seen) == 7


# ---- probabilities of one row's moves


def leave_one_out(setup: Setup, row: int):
    """Return what the other rows say, by direct formulas, and the row's own part."""
    Z, Y = np.delete(setup.features, row, axis=0), np.delete(setup.standard, row, axis=0)
    counts = Z.sum(axis=0).astype(int)
    shared = np.flatnonzero(counts > 0)
    P = Z[:, shared].T @ Z[:, shared] + np.eye(shared.size) / setup.weight_variance
    Q = np.linalg.inv(P)
    M = Q @ Z[:, shared].T @ Y
    own = int(setup.features[row].sum() - setup.features[row][shared].sum())
    return shared, counts[shared], Q, M, own


def log_likelihood(setup: Setup, row: int, Q, M, z, own: int) -> float:
    seen = ~setup.missing[row]
    v = 1.0 + z @ Q @ z + own * setup.weight_variance
    residual = (setup.standard[row] - z @ M)[seen]
    return -0.5 * seen.sum() * math.log(v) - 0.5 * residual @ residual / v


def exact_moves(setup: Setup, row: int, most: int = 12, drop_own: bool = False) -> dict[tuple, float]:
    """Return the probability of every (shared features, number of own features) after one update of a row.

    `drop_own` is the mistake of forgetting the row's own features while the shared ones are flipped.
    """
    shared, counts, Q, M, own = leave_one_out(setup, row)
    n_rows = setup.Z.shape[0]
    z0 = setup.features[row][shared]
    paths = {tuple(z0.astype(int)): 1.0}
    for k, (feature, m) in enumerate(zip(shared, counts, strict=True)):
        if feature < setup.bias:
            continue
        moved: dict[tuple, float] = {}
        for path, weight in paths.items():
            log_p = np.empty(2)
            for bit in (0, 1):
                z = np.array(path, dtype=float)
                z[k] = bit
                log_prior = math.log(m if bit else n_rows - m)
                log_p[bit] = log_prior + log_likelihood(setup, row, Q, M, z, 0 if drop_own else own)
            p = np.exp(log_p - np.logaddexp(*log_p))
            for bit in (0, 1):
                key = (*path[:k], bit, *path[k + 1 :])
                moved[key] = moved.get(key, 0.0) + weight * p[bit]
        paths = moved
    moves = {}
    for path, weight in paths.items():
        j = np.arange(most + 1)
        log_p = stats.poisson(setup.alpha / n_rows).logpmf(j)
        log_p = log_p + [log_likelihood(setup, row, Q, M, np.array(path, float), int(i)) for i in j]
        p = np.exp(log_p - np.logaddexp.reduce(log_p))
        moves.update({(path, int(i)): weight * p[i] for i in j})
    return moves


def repeat_row(setup: Setup, row: int, n: int):
    """Update the last row `n` times from the same state; return the moves and standardised holes."""
    shared, _, Q, M, _ = leave_one_out(setup, row)
    keys = {setup.Z[:row, k].tobytes(): i for i, k in enumerate(shared)}
    assert len(keys) == shared.size, "features are told apart by the other rows"
    arrays = (setup.Z, setup.Y, setup.counts, *setup.matrices)
    saved = [array.copy() for array in arrays]
    width = setup.width
    moves: dict[tuple, int] = {}
    holes = []
    for _ in range(n):
        for array, before in zip(arrays, saved, strict=True):
            array[...] = before
        setup.width = width
        setup.sweep(start=row)
        z = np.zeros(shared.size, dtype=int)
        own = 0
        for k in range(setup.width):
            place = keys.get(setup.Z[:row, k].tobytes())
            if place is None:
                own += int(setup.Z[row, k])
            else:
                z[place] = setup.Z[row, k]
        moves[tuple(z), own] = moves.get((tuple(z), own), 0) + 1
        sd = math.sqrt(1.0 + z @ Q @ z + own * setup.weight_variance)
        holes.append(((setup.standard[row] - z @ M) / sd)[setup.missing[row]])
    check_against_scratch(setup)
    for array, before in zip(arrays, saved, strict=True):
        array[...] = before
    setup.width = width
    return moves, np.array(holes)


def p_value(seen: dict[tuple, int], exact: dict[tuple, float]) -> float:
    """Return the chi-square p-value, moves with few expected cases put together."""
    n = sum(seen.values())
    assert sum(exact.values()) == pytest.approx(1.0)
    likely = [move for move in exact if n * exact[move] > 8.0]
    observed = [seen.get(move, 0) for move in likely]
    expected = [n * exact[move] for move in likely]
    if n - sum(expected) > 1.0:
        observed.append(n - sum(observed))
        expected.append(n - sum(expected))
    return float(stats.chisquare(observed, np.array(expected) * n / sum(expected)).pvalue)


ROW = 11
# Holes of the updated row out of six columns: the Gram matrix is corrected for few and summed anew for many.
ROW_CASES = {
    "no holes": {"holes": [], "bias": 0},
    "two holes": {"holes": [1, 4], "bias": 0},
    "half": {"holes": [0, 2, 5], "bias": 1},
    "four holes": {"holes": [0, 1, 2, 4], "bias": 0},
    "all holes": {"holes": [0, 1, 2, 3, 4, 5], "bias": 1},
}


def row_setup(holes: list[int], bias: int) -> Setup:
    """Return twelve rows with three shared features, of which the last row has two and one of its own."""
    setup = random_setup(5, n_rows=ROW + 1, S=6, n_features=4, bias=bias, alpha=6.0, room=24)
    rng = np.random.default_rng(0)
    features = setup.Z[:, bias : setup.width]
    features[:] = rng.random(features.shape) < 0.5
    features[:ROW, 3] = 0
    features[ROW] = [1, 0, 1, 1]
    features[:3, :3] = np.eye(3)
    setup.Y[:] = 0.5 * rng.normal(size=setup.Y.shape) / setup.inv_sd
    setup.missing[:] = False
    setup.missing[ROW, holes] = True
    setup.__post_init__()
    return setup


@pytest.mark.parametrize("case", ROW_CASES)
def test_moves_of_a_row_have_their_exact_probabilities(case: str) -> None:
    setup = row_setup(**ROW_CASES[case])
    seen, holes = repeat_row(setup, ROW, 12_000)
    assert p_value(seen, exact_moves(setup, ROW)) > ACCEPT
    if holes.size:
        assert stats.kstest(holes.ravel(), stats.norm.cdf).pvalue > ACCEPT
        assert stats.kstest(holes.ravel(), stats.norm(0.04, 1.04).cdf).pvalue < REJECT
    if case != "all holes":  # where nothing is observed, forgetting features does no harm
        assert p_value(seen, exact_moves(setup, ROW, drop_own=True)) < REJECT


def test_likelihood_that_sees_the_holes_is_noticed() -> None:
    """Negative control: the drawn values of missing cells must not argue for the row's features."""
    setup = row_setup(**ROW_CASES["two holes"])
    seen, _ = repeat_row(setup, ROW, 12_000)
    setup.missing[:] = False
    assert p_value(seen, exact_moves(setup, ROW)) < REJECT


# ---- room for more features


def grown_and_roomy(
    n_rows: int, alpha: float, seed: int
) -> tuple[State, State, CollapsedSampler, CollapsedSampler]:
    """Return a state with hardly any room and the same with plenty."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 4))
    x[rng.random(x.shape) < 0.2] = np.nan
    kinds = {f"c{d}": Real(shift=0.0, scale=1.0, unit=1.0, mapping="affine") for d in range(4)}
    problem = LocalProblem(kinds, x, Priors(alpha=alpha))
    states, samplers = [], []
    for room in (0, 400):
        state = State.start(problem, np.random.SeedSequence(seed))
        roomy = np.zeros((n_rows, state.width + room), dtype=np.uint8)
        roomy[:, : state.width] = state.Z[:, : state.width]
        state.Z = roomy
        states.append(state)
        samplers.append(CollapsedSampler(problem))
    return states[0], states[1], samplers[0], samplers[1]


@pytest.mark.parametrize(
    ("n_rows", "alpha"),
    [
        (40, 40.0),
        (150, 10.0),
        (1200, 3.0),
    ],
)
def test_growing_replays_the_row_bit_for_bit(n_rows: int, alpha: float) -> None:
    tight, roomy, one, other = grown_and_roomy(n_rows, alpha, seed=4)
    room = tight.Z.shape[1]
    for _ in range(3):
        one.sweep(tight)
        other.sweep(roomy)
    assert tight.Z.shape[1] > room, "the arrays never had to grow"
    assert roomy.Z.shape[1] == room + 400, "the other arrays had to grow too"
    assert tight.width == roomy.width
    np.testing.assert_array_equal(tight.Z[:, : tight.width], roomy.Z[:, : roomy.width])
    np.testing.assert_array_equal(tight.rng, roomy.rng)
    np.testing.assert_array_equal(tight.Y, roomy.Y)
    np.testing.assert_array_equal(tight.B, roomy.B)
    np.testing.assert_array_equal(tight.variance, roomy.variance)


# ---- small matrices


@pytest.mark.parametrize("size", [0, 1, 2, 7, 40])
def test_cholesky_inverse_and_solutions(size: int) -> None:
    rng = np.random.default_rng(size)
    Z = rng.random((50, size)) < 0.3
    P = Z.T.astype(float) @ Z + np.eye(size)
    root = P.copy()
    cholesky(root)
    lower = np.tril(root)
    np.testing.assert_allclose(lower @ lower.T, P, atol=1e-11)
    room = np.full((size + 3, size + 3), 7.0)
    invert(root, room)
    np.testing.assert_allclose(room[:size, :size], np.linalg.inv(P), atol=1e-12)
    assert (room[size:] == 7.0).all()
    b = rng.standard_normal(size)
    x = b.copy()
    solve_lower(root, x)
    np.testing.assert_allclose(lower @ x, b, atol=1e-12)
    x = b.copy()
    solve_upper(root, x)
    np.testing.assert_allclose(lower.T @ x, b, atol=1e-12)


# ---- moves of whole features


def recoded_posterior(setup: Setup, Z: np.ndarray) -> float:
    """Return the log posterior of features given Y by direct formulas, bias in the first column."""
    n_rows, S = setup.Y.shape
    cov = np.eye(n_rows) + setup.weight_variance * Z @ Z.T
    _, log_det = np.linalg.slogdet(cov)
    fit = -0.5 * (S * log_det + np.sum(setup.standard * np.linalg.solve(cov, setup.standard)))
    m = Z[:, setup.bias :].sum(axis=0)
    return float(fit + np.sum(gammaln(m) + gammaln(n_rows - m + 1.0)))


def test_recoding_visits_the_codes_with_their_posterior() -> None:
    """Two features and a bias: "k or j but not both" has a small orbit, which can be listed."""
    setup = random_setup(3, n_rows=8, S=1, n_features=2, bias=1)
    table: dict[bytes, float] = {}
    sweeps = 40_000
    states = []
    for _ in range(sweeps):
        setup.recode()
        key = setup.Z[:, : setup.width].tobytes()
        table.setdefault(key, recoded_posterior(setup, setup.features))
        states.append(key)
    assert len(table) > 3
    keys = list(table)
    p = np.exp(np.array([table[key] for key in keys]) - max(table.values()))
    p /= p.sum()
    index = {key: i for i, key in enumerate(keys)}
    hits = np.eye(len(keys))[[index[key] for key in states]].reshape(100, -1, len(keys)).mean(axis=1)
    error = hits.std(axis=0, ddof=1) / 10.0
    common = p > 0.01
    assert np.abs((hits.mean(axis=0) - p) / error)[common].max() < 4.0
    flat = np.full(p.size, 1.0 / p.size)  # a move that took every proposal would visit all alike
    assert np.abs((hits.mean(axis=0) - flat) / error)[common].max() > 6.0
    K, matrices = setup.width, setup.matrices
    np.testing.assert_allclose(matrices.ZZ[:K, :K], setup.features.T @ setup.features)
    np.testing.assert_allclose(matrices.ZY[:K], setup.features.T @ setup.standard, atol=1e-10)


def test_adding_and_dropping_visits_the_features_with_their_posterior() -> None:
    """Four rows, one of them pinned, and at most two features: all codes can be listed, up to order."""
    setup = random_setup(5, n_rows=4, S=1, n_features=1, bias=1)
    setup.pinned[:] = [False, True, False, False]
    setup.Z[:, setup.bias : setup.width] = [[1], [0], [0], [0]]
    setup.max_width = setup.bias + 2
    setup.__post_init__()
    columns = [np.array(bits) for bits in product([0, 1], [0], [0, 1], [0, 1])][1:]
    codes = [combo for K in range(3) for combo in combinations_with_replacement(range(len(columns)), K)]
    names = {tuple(sorted(columns[i].tobytes() for i in combo)): at for at, combo in enumerate(codes)}

    def posterior(alpha: float) -> np.ndarray:
        logs = []
        for combo in codes:
            Z = np.column_stack([np.ones(4), *(columns[i] for i in combo)])
            twice = 2 if len(combo) == 2 and combo[0] == combo[1] else 1
            logs.append(recoded_posterior(setup, Z) + len(combo) * np.log(alpha / 24.0) - np.log(twice))
        p = np.exp(np.array(logs) - max(logs))
        return p / p.sum()

    states = []
    for _ in range(40_000):
        setup.add_or_drop()
        Z = setup.Z[:, setup.bias : setup.width].astype(np.int64)
        states.append(names[tuple(sorted(column.tobytes() for column in Z.T))])
    hits = np.eye(len(codes))[states].reshape(100, -1, len(codes)).mean(axis=1)
    error = hits.std(axis=0, ddof=1) / 10.0
    p = posterior(setup.alpha)
    common = p > 0.01
    assert common.sum() > 8
    assert np.abs((hits.mean(axis=0) - p) / error)[common].max() < 4.0
    wrong = posterior(1.2 * setup.alpha)
    assert np.abs((hits.mean(axis=0) - wrong) / error)[common].max() > 6.0
    K, matrices = setup.width, setup.matrices
    np.testing.assert_allclose(matrices.ZZ[:K, :K], setup.features.T @ setup.features)
    np.testing.assert_allclose(matrices.ZY[:K], setup.features.T @ setup.standard, atol=1e-10)
    P = setup.features.T @ setup.features + np.eye(K) / setup.weight_variance
    np.testing.assert_allclose(matrices.inverse[:K, :K], np.linalg.inv(P), atol=1e-10)
