"""Numbers hold: tables at the edges of what floats can do leave no NaN and no infinity anywhere."""

import warnings

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.errors import DataError, FitWarning
from glfm.kernels.arrays import Matrices
from glfm.kernels.matrices import drift
from glfm.kinds import KINDS

N = 60


def _normals(n=N, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def _sizes(n=N):
    size = np.exp(_normals(n, 1))
    return size / size.max()


def _with_zeros(values):
    return np.where(np.arange(values.size) < 5, 0.0, values)


def _spread_out(n=N):
    return 10.0 ** np.random.default_rng(2).uniform(-300, 300, n)


def _levels(n_levels, n):
    levels = [f"level {i}" for i in range(n_levels)]
    return pd.Categorical(np.random.default_rng(3).choice(levels, n), levels)


def _ordered(seen, n_levels):
    levels = [f"{i:02d}" for i in range(n_levels)]
    cells = np.random.default_rng(4).choice([levels[i] for i in seen], N)
    return pd.Categorical(cells, levels, ordered=True)


# Name: the column a, and its kind.
COLUMNS = {
    "exp of size 1e300": (_sizes() * 1e300, glfm.Positive(mapping="exp")),
    "square of size 1e300": (_sizes() * 1e300, glfm.Positive(mapping="square")),
    "positive from 1e-300 to 1e300": (_spread_out(), "positive"),
    "logarithms from 1e-300 to 1e300": (_spread_out(), glfm.Positive(transform="log")),
    "real from -1e300 to 1e300": (np.sign(_normals()) * _spread_out(), "real"),
    "one outlier of 1e300": (np.append(_normals(N - 1), 1e300), "real"),
    "counts up to 1e9": (np.random.default_rng(5).integers(0, 10**9, N), "count"),
    "small counts and 1e9": (np.append(np.arange(N - 1) % 3, 10**9), "count"),
    "counts about 1e9": (10**9 + np.arange(N) % 3, "count"),
    "constant -1e300": (np.full(N, -1e300), "real"),
    "digits at the end of floats": (1e15 + np.arange(N) % 2, "real"),
    "a level seen once": (np.array([*"xz" * (N // 2 - 1), "y", "q"]), "categorical"),
    "an empty level in the middle": (_ordered([0, 2, 3], 5), "ordinal"),
    "48 empty levels in the middle": (_ordered([0, 49], 50), "ordinal"),
}
for _size in (1e-320, 1e-300, 1e300):
    COLUMNS[f"real of size {_size}"] = (_normals() * _size, "real")
    COLUMNS[f"positive of size {_size}"] = (_sizes() * _size, "positive")
    COLUMNS[f"positive with zeros, of size {_size}"] = (_with_zeros(_sizes() * _size), "positive")
for _kind in KINDS:
    COLUMNS[f"constant {_kind}"] = (np.ones(N), _kind)
    COLUMNS[f"zero {_kind}"] = (np.zeros(N), _kind)


def fitted(frame, schema=None, **settings):
    given = {
        "n_chains": 2,
        "n_warmup": 20,
        "n_draws": 5,
        "thin": 1,
        "random_state": 0,
        "progress": False,
    } | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return glfm.GLFM(schema, **given).fit(frame)


def check_numbers(model, path):
    """Nothing that a fit keeps or answers is NaN or infinite."""
    for chain in model.fit_.chains:
        state = chain.state
        for part in (state.Y, state.B, state.variance, np.array(state.alpha), *state.theta, *state.step):
            assert np.isfinite(part).all()
    for draw in model.draws_:
        for part in (draw.weights, draw.variances, draw.alpha, draw.log_likelihood, *draw.thetas):
            assert np.isfinite(part).all()
    for how in ("auto", "mode", "mean", "sample"):
        check_frame(model.impute(how=how))
    predictive = model.predictive()
    for answer in (predictive.mean(), predictive.sd(), predictive.median(), *predictive.interval()):
        check_frame(answer)
    for column in ("reliability", "noise", "disagreement"):
        if column in model.uncertainty():
            assert np.isfinite(model.uncertainty()[column]).all()
    model.report(path / "report.html")


def check_frame(frame):
    assert not frame.isna().any(axis=None)
    assert np.isfinite(frame.select_dtypes("number").to_numpy(dtype=np.float64)).all()


SAMPLERS = pytest.mark.parametrize(
    "sampler", ["collapsed", pytest.param("hybrid", marks=pytest.mark.reliability)]
)


@SAMPLERS
@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name, sampler, tmp_path):
    values, kind = COLUMNS[name]
    frame = pd.DataFrame({"a": values, "b": _normals(seed=6)})
    frame.loc[::7, "a"] = None
    frame.loc[1::7, "b"] = None
    model = fitted(frame, {"a": kind}, sampler=sampler)
    check_numbers(model, tmp_path)
    scores = model.log_likelihood(frame)
    assert (np.isfinite(scores) == frame.notna()).all(axis=None)
    check_frame(model.impute(frame.head(9)))


TABLES = {
    "one row": lambda: {"a": [1.5], "b": ["x"], "c": [3]},
    "one cell": lambda: {"a": [1.5]},
    "one column": lambda: {"a": _normals()},
    "collinear": lambda: {
        name: factor * _normals() + shift
        for name, factor, shift in (("a", 1, 0), ("b", 2, 0), ("c", -1, 1), ("d", 3e8, 0), ("e", 1, 0))
    },
    "99.9 % missing": lambda: {
        name: np.where(np.random.default_rng(i).random(2000) < 0.999, np.nan, _normals(2000, i))
        for i, name in enumerate("abc")
    },
    "duplicate rows by the thousand": lambda: {
        "a": np.repeat([1.0, 2.0], 1500),
        "b": np.repeat(["u", "v"], 1500),
        "c": np.repeat([0, 7], 1500),
    },
    "1,000 levels": lambda: {"a": _levels(1000, 1100), "b": _normals(1100)},
}


@SAMPLERS
@pytest.mark.parametrize("name", TABLES)
def test_tables(name, sampler, tmp_path):
    schema = {"a": "categorical"} if "levels" in name else None
    settings = {"n_chains": 1, "n_warmup": 1, "n_draws": 2, "thin": 1} if "levels" in name else {}
    check_numbers(fitted(pd.DataFrame(TABLES[name]()), schema, sampler=sampler, **settings), tmp_path)


@pytest.mark.parametrize("size", [2e302, 1.7e308])
@pytest.mark.parametrize("kind", ["real", "positive"])
def test_sizes_beyond_are_refused(size, kind):
    with pytest.raises(DataError, match=r"Column 'a' holds .*, but no number may be larger than 1e\+302"):
        fitted(pd.DataFrame({"a": [0.0, size, 0.5 * size]}), {"a": kind})


def test_a_value_that_its_scale_sends_out_of_sight():
    with pytest.raises(DataError, match="Column 'a' holds 2, which its transform or mapping cannot take"):
        fitted(pd.DataFrame({"a": [1.0, 2.0, 3.0]}), {"a": glfm.Real(shift=0.0, scale=2e-150, unit=1.0)})
    model = fitted(pd.DataFrame({"a": [1e-300, 1e-300, np.nan]}), {"a": "real"})
    with pytest.raises(DataError, match="Column 'a' holds 1e-100"):
        model.impute(pd.DataFrame({"a": [1e-100, np.nan]}))


def test_whole_numbers_that_floats_cannot_tell_apart():
    large = 2**53 + 1
    model = fitted(pd.DataFrame({"a": pd.Series([large, 5, None, large], dtype=object), "b": [1.5, 2, 3, 4]}))
    assert model.schema_["a"].name == "positive"
    assert model.impute()["a"].tolist()[:2] == [large, 5]
    with pytest.raises(DataError, match="Column 'a' holds whole numbers of 2\\^53 and more"):
        fitted(pd.DataFrame({"a": [large, 5]}), {"a": "categorical"})


# ---- the matrices that are kept


def _matrices(weight_variance=1.0, K=6, S=4):
    Z = (np.random.default_rng(0).random((50, K)) < 0.5).astype(float)
    Y = _normals(50 * S).reshape(50, S)
    A, L = Z.T @ Z, Z.T @ Y
    Q = np.linalg.inv(A + np.eye(K) / weight_variance)
    return Matrices(A, L, Q, Q @ L, (Q @ L) @ (Q @ L).T)


@pytest.mark.parametrize("weight_variance", [0.01, 1.0, 1e4])
def test_sound_matrices_have_not_drifted(weight_variance):
    assert drift(_matrices(weight_variance), 6, weight_variance) < 1e-12


@pytest.mark.parametrize("which", [2, 3, 4])
@pytest.mark.parametrize("place", [(0, 0), (5, 3), (2, 1)])
def test_drift_is_seen_wherever_it_is(which, place):
    matrices = _matrices()
    matrices[which][place] += 1e-3
    assert 1e-5 < drift(matrices, 6, 1.0) < 1.0
    matrices[which][place] = np.nan
    assert drift(matrices, 6, 1.0) == np.inf
