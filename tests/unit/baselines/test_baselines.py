"""The baselines: what they score, and every conditional of the matrix factorisation against closed form."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

import glfm
from glfm.baselines import BPMF, SIBP, GaussianBaseline
from glfm.baselines.bpmf import draw_factors, draw_prior, prior_given
from glfm.kinds import Kind

LEVELS = ("low", "middle", "high")
SCHEMA = {
    "real": "real",
    "positive": "positive",
    "count": "count",
    "ordinal": glfm.Ordinal(levels=LEVELS),
    "binary": glfm.Categorical(levels=("no", "yes")),
}


def small(n_rows: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal(n_rows)
    value = hidden[:, None] + 0.3 * rng.standard_normal((n_rows, 5))
    frame = pd.DataFrame(
        {
            "real": 10.0 * value[:, 0],
            "positive": np.maximum(value[:, 1], 0.0),
            "count": np.floor(np.exp(value[:, 2])),
            "ordinal": np.array(LEVELS)[np.digitize(value[:, 3], (-0.5, 0.5))],
            "binary": np.where(value[:, 4] > 0, "yes", "no"),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.2)


def models() -> list[GaussianBaseline]:
    short = {"n_warmup": 20, "n_draws": 10, "thin": 1, "random_state": 0}
    return [SIBP(SCHEMA, n_chains=1, progress=False, **short), BPMF(SCHEMA, n_features=2, **short)]


@pytest.fixture(scope="module", params=["SIBP", "BPMF"])
def fitted(request: pytest.FixtureRequest) -> GaussianBaseline:
    return models()[["SIBP", "BPMF"].index(request.param)].fit(small())


def test_scores_have_the_shape_and_holes_of_the_values(fitted):
    values = small()
    score = fitted.log_likelihood(values)
    assert score.index.equals(values.index)
    assert list(score) == list(values)
    np.testing.assert_array_equal(score.isna(), values.isna())
    assert list(fitted.log_likelihood(values[["count"]])) == ["count"]
    assert fitted.n_features_.shape == (10,)


@pytest.mark.parametrize(
    ("column", "values"), [("ordinal", LEVELS), ("binary", ("no", "yes")), ("count", tuple(range(150)))]
)
def test_probabilities_of_discrete_values_add_up_to_one(fitted, column, values):
    total = 0.0
    for value in values:
        total = total + np.exp(fitted.log_likelihood(pd.DataFrame({column: [value] * 60}))[column])
    np.testing.assert_allclose(total, 1.0, atol=1e-9)


@pytest.mark.parametrize("column", ["real", "positive"])
def test_densities_of_numbers_integrate_to_one(fitted, column):
    kind = fitted.schema_.kinds[column]
    zeros = column == "positive"
    grid = np.linspace(kind.smallest, 15.0, 301) if zeros else np.linspace(-150.0, 150.0, 301)
    total = np.zeros(60)
    density = np.array(
        [np.exp(fitted.log_likelihood(pd.DataFrame({column: np.full(60, x)}))[column]) for x in grid]
    )
    total += np.trapezoid(density, grid, axis=0)
    if zeros:
        total += np.exp(fitted.log_likelihood(pd.DataFrame({column: np.zeros(60)}))[column])
    np.testing.assert_allclose(total, 1.0, atol=1e-3)


def test_a_score_is_the_average_of_the_draws_normals(fitted):
    """By hand: the mixture over draws of normals in the units of the values."""
    rows = np.arange(60)
    frame = small()
    means, sds = fitted.components(0, rows)
    center, spread = np.nanmean(frame["real"]), np.nanstd(frame["real"])
    by_hand = stats.norm.pdf(frame["real"].to_numpy()[:, None], center + spread * means, spread * sds)
    np.testing.assert_allclose(fitted.log_likelihood(frame)["real"], np.log(by_hand.mean(axis=1)), rtol=1e-6)


def test_imputation_keeps_observed_cells_and_allowed_values(fitted):
    frame, full = small(), fitted.impute()
    assert not full.isna().any().any()
    pd.testing.assert_frame_equal(full.where(frame.notna()), frame, check_dtype=False)
    assert (full["positive"] >= 0).all()
    assert (full["count"] == full["count"].round()).all()
    assert set(full["ordinal"]) <= set(LEVELS)


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
def test_same_seed_same_scores(model):
    frame = small()
    once = model.fit(frame).log_likelihood(frame)
    again = clone(model).fit(frame).log_likelihood(frame)
    other = clone(model).set_params(random_state=1).fit(frame).log_likelihood(frame)
    pd.testing.assert_frame_equal(once, again)
    assert not once.equals(other)


def test_a_constant_and_an_empty_column_do_no_harm():
    frame = pd.DataFrame({"a": [1.0, 1.0, np.nan, 1.0], "b": [0.1, -0.2, 0.4, np.nan], "c": [np.nan] * 4})
    model = BPMF({"a": "real", "b": "real", "c": "real"}, n_features=2, n_warmup=5, n_draws=5, random_state=0)
    with pytest.warns(glfm.FitWarning, match="No cell is observed"):
        model.fit(frame)
    assert np.isfinite(model.impute().to_numpy()).all()


def test_bounds_of_cells():
    def bounds(kind: Kind, *x: float) -> list[list[float]]:
        return [ends.tolist() for ends in kind.rounds_from(np.array(x))]

    inf = np.inf
    assert bounds(glfm.Categorical(levels=("a", "b", "c")), 0, 1, 2) == [[-inf, 0.5, 1.5], [0.5, 1.5, inf]]
    assert bounds(glfm.Count(), 0, 3) == [[-inf, 2.5], [0.5, 3.5]]
    assert bounds(glfm.Real(), -1.5) == [[-1.5], [-1.5]]
    zeros = glfm.Positive(shift=0.0, scale=1.0, unit=1.0, smallest=0.2)
    assert bounds(zeros, 0.0, 0.1, 0.2) == [[-inf, -inf, 0.2], [0.2, 0.2, 0.2]]


@pytest.mark.parametrize("settings", [{"n_features": 0}, {"precision": 0.0}, {"n_draws": 0}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(glfm.SchemaError):
        BPMF(**settings).fit(small().drop(columns="ordinal"))


# ---- matrix factorisation


def test_a_planted_matrix_is_recovered_better_than_by_column_means():
    rng = np.random.default_rng(0)
    planted = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 12)) + 5.0
    hidden = rng.random(planted.shape) < 0.3
    model = BPMF(n_features=3, precision=None, n_warmup=50, n_draws=50, thin=1, random_state=0)
    guess = model.fit(np.where(hidden, np.nan, planted)).impute()
    means = np.nanmean(np.where(hidden, np.nan, planted), axis=0)
    error = np.sqrt(np.mean((guess - planted)[hidden] ** 2))
    naive = np.sqrt(np.mean((means - planted)[hidden] ** 2))
    assert error < 0.2 * naive


def test_the_gaussian_wishart_given_factors_is_prior_times_likelihood():
    rng = np.random.default_rng(1)
    k, factors = 3, rng.standard_normal((7, 3)) + 0.5
    mean, weight, scale, df = prior_given(factors)

    def log_density(mu, precision, mean, weight, scale, df):
        return stats.multivariate_normal.logpdf(
            mu, mean, np.linalg.inv(weight * precision)
        ) + stats.wishart.logpdf(precision, df, scale)

    def gaps(df):
        found = []
        for _ in range(20):
            mu, precision = rng.standard_normal(k), stats.wishart.rvs(6, np.eye(k), random_state=rng)
            prior = log_density(mu, precision, np.zeros(k), 2.0, np.eye(k), k)
            seen = stats.multivariate_normal.logpdf(factors, mu, np.linalg.inv(precision)).sum()
            found.append(prior + seen - log_density(mu, precision, mean, weight, scale, df))
        return np.ptp(found)

    assert gaps(df) < 1e-8
    assert gaps(df - 1.0) > 0.1  # a wrong posterior would be seen


def _posterior(x, seen, others, alpha, mean, precision):
    """Mean and covariance of one line's factor, in closed form."""
    V = others[seen]
    covariance = np.linalg.inv(precision + alpha * V.T @ V)
    return covariance @ (precision @ mean + alpha * V.T @ x[seen]), covariance


@pytest.mark.statistical
@pytest.mark.parametrize(("k", "n_others"), [(2, 4), (4, 3), (2, 1500)], ids=["factor", "cell", "many"])
def test_factors_given_the_rest_have_their_moments(k, n_others):
    """Whitened draws have mean 0 and variance 1; drawn for another precision of the noise they have not."""
    rng = np.random.default_rng(2)
    others = rng.standard_normal((n_others, k)) * min(1.0, 2.0 / np.sqrt(n_others))
    mean, precision, alpha = rng.standard_normal(k), np.eye(k) + 0.5, 2.0
    n = 4000
    x, seen = rng.standard_normal(n_others), rng.random(n_others) < 0.7
    seen[0] = True
    center, covariance = _posterior(x, seen, others, alpha, mean, precision)
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))

    def worst(noise):
        copies, holes = np.tile(np.where(seen, x, 0.0), (n, 1)), np.tile(seen, (n, 1))
        u = (draw_factors(rng, copies, holes, others, noise, mean, precision) - center) @ whiten.T
        moments = np.sqrt(n) * u.mean(axis=0)
        spread = np.sqrt(n) * (u.T @ u / n - np.eye(k)) / np.where(np.eye(k) > 0, np.sqrt(2.0), 1.0)
        return max(np.abs(moments).max(), np.abs(spread).max())

    assert worst(alpha) < 4.0
    assert worst(2.0 * alpha) > 6.0


@pytest.mark.statistical
def test_means_and_precisions_of_factors_have_their_moments():
    rng = np.random.default_rng(3)
    factors = rng.standard_normal((6, 2)) + 1.0
    mean, _, scale, df = prior_given(factors)
    draws = [draw_prior(rng, factors) for _ in range(4000)]
    means, precisions = np.array([mu for mu, _ in draws]), np.array([P for _, P in draws])

    def z(sample, expected):
        return np.abs((sample.mean(axis=0) - expected) / (sample.std(axis=0) / np.sqrt(len(sample)))).max()

    assert z(means, mean) < 4.0
    assert z(precisions, df * scale) < 4.0
    assert z(precisions, (df - 1.0) * scale) > 6.0
