"""Rubin's rules against numbers derived term by term, their limits, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import glfm
from glfm.errors import DataError

COLUMNS = ["term", "estimate", "std.error", "df", "p.value", "conf.low", "conf.high", "fmi", "lambda", "riv"]
Q = [[1.0, -2.0], [1.4, -2.3], [0.9, -1.9], [1.3, -2.2]]
U = [[0.04, 0.2], [0.05, 0.25], [0.06, 0.22], [0.05, 0.21]]


def by_hand(q: list[float], u: list[float], complete: float, level: float) -> dict[str, float]:
    """Apply the rules to one term in plain arithmetic."""
    m = len(q)
    estimate = math.fsum(q) / m
    within = math.fsum(u) / m
    b = math.fsum((x - estimate) ** 2 for x in q) / (m - 1)
    total = within + b + b / m
    riv, share = (b + b / m) / within, (b + b / m) / total
    old = (m - 1) * (1 + 1 / riv) ** 2  # Rubin's own degrees of freedom
    if math.isinf(complete):
        df = old
    else:
        observed = (complete + 1) / (complete + 3) * complete * (1 - share)
        df = old * observed / (old + observed)
    error = math.sqrt(total)
    half = stats.t(df).ppf((1 + level) / 2) * error
    return {
        "estimate": estimate,
        "std.error": error,
        "df": df,
        "p.value": 2 * stats.t(df).sf(abs(estimate / error)),
        "conf.low": estimate - half,
        "conf.high": estimate + half,
        "fmi": (riv + 2 / (df + 3)) / (riv + 1),
        "lambda": share,
        "riv": riv,
    }


@pytest.mark.parametrize("complete", [7.0, 50.0, math.inf])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_by_hand(complete: float, level: float) -> None:
    pooled = glfm.pool(Q, U, df=complete, mass=level)
    assert list(pooled.columns) == COLUMNS
    assert list(pooled["term"]) == ["x1", "x2"]
    for j in range(2):
        expected = by_hand([row[j] for row in Q], [row[j] for row in U], complete, level)
        found = pooled.iloc[j].drop("term").astype(float).to_dict()
        assert found == pytest.approx(expected, rel=1e-12)


def test_numbers_worked_out_on_paper() -> None:
    # Q 1, 2, 3 and U 1: B = 1, T = 1 + 4/3 = 7/3, lambda 4/7, riv 4/3, df = 2 * (7/4)^2 = 49/8.
    pooled = glfm.pool([1, 2, 3], [1, 1, 1], terms=["a"]).iloc[0]
    assert pooled["term"] == "a"
    assert pooled["estimate"] == pytest.approx(2.0)
    assert pooled["std.error"] ** 2 == pytest.approx(7 / 3)
    assert pooled["lambda"] == pytest.approx(4 / 7)
    assert pooled["riv"] == pytest.approx(4 / 3)
    assert pooled["df"] == pytest.approx(49 / 8)
    assert pooled["fmi"] == pytest.approx((4 / 3 + 2 / (49 / 8 + 3)) / (7 / 3))


class TestLimits:
    def test_estimates_that_agree_leave_the_complete_analysis(self) -> None:
        pooled = glfm.pool([2.0, 2.0, 2.0], [0.25, 0.25, 0.25]).iloc[0]
        assert pooled["df"] == math.inf
        assert (pooled["lambda"], pooled["riv"], pooled["fmi"]) == (0.0, 0.0, 0.0)
        assert pooled["std.error"] == 0.5
        assert pooled["conf.high"] == pytest.approx(2 + 0.5 * stats.norm.ppf(0.975))
        assert pooled["p.value"] == pytest.approx(2 * stats.norm.sf(4))

    @pytest.mark.parametrize("complete", [5.0, 1000.0])
    def test_and_its_degrees_of_freedom(self, complete: float) -> None:
        pooled = glfm.pool([2.0, 2.0], [0.25, 0.25], df=complete).iloc[0]
        assert pooled["df"] == pytest.approx(complete * (complete + 1) / (complete + 3))
        near = glfm.pool([2.0, 2.0 + 1e-9], [0.25, 0.25], df=complete).iloc[0]
        assert near["df"] == pytest.approx(pooled["df"])

    def test_many_degrees_are_infinitely_many(self) -> None:
        many, infinite = glfm.pool(Q, U, df=1e12), glfm.pool(Q, U)
        np.testing.assert_allclose(many["df"], infinite["df"])

    def test_holes_that_are_everything(self) -> None:
        pooled = glfm.pool([1.0, 2.0, 3.0], [1e-12] * 3, df=40).iloc[0]
        assert pooled["lambda"] == pytest.approx(1.0)
        assert 0.99 < pooled["fmi"] <= 1.0
        assert pooled["df"] > 0.0

    def test_degrees_never_exceed_either(self) -> None:
        pooled = glfm.pool(Q, U, df=[3.0, 300.0])
        assert (pooled["df"] < [3.0, 300.0]).all()


class TestForms:
    expected = glfm.pool(Q, U, terms=["a", "b"])

    @pytest.mark.parametrize(
        ("q", "u"),
        [
            (np.array(Q), np.array(U)),
            ([np.array(q) for q in Q], [np.diag(u) + 0.01 - 0.01 * np.eye(2) for u in U]),
        ],
    )
    def test_arrays(self, q: object, u: object) -> None:
        pd.testing.assert_frame_equal(glfm.pool(q, u, terms=["a", "b"]), self.expected)

    def test_a_frame(self) -> None:
        q, u = pd.DataFrame(Q, columns=["a", "b"]), pd.DataFrame(U, columns=["a", "b"])
        pd.testing.assert_frame_equal(glfm.pool(q, u[["b", "a"]]), self.expected)

    def test_series_are_matched_by_name(self) -> None:
        q = [
            pd.Series(row, index=["a", "b"])[["a", "b"] if i == 0 else ["b", "a"]] for i, row in enumerate(Q)
        ]
        u = [pd.Series(row[::-1], index=["b", "a"]) for row in U]
        pd.testing.assert_frame_equal(glfm.pool(q, u), self.expected)

    def test_covariance_frames(self) -> None:
        q = [pd.Series(row, index=["a", "b"]) for row in Q]
        u = [pd.DataFrame(np.diag(row[::-1]), index=["b", "a"], columns=["b", "a"]) for row in U]
        pd.testing.assert_frame_equal(glfm.pool(q, u), self.expected)

    def test_names_of_the_variances_serve(self) -> None:
        pd.testing.assert_frame_equal(glfm.pool(Q, pd.DataFrame(U, columns=["a", "b"])), self.expected)

    def test_one_term(self) -> None:
        one = glfm.pool(pd.Series([row[0] for row in Q]), [row[0] for row in U], terms="a")
        pd.testing.assert_frame_equal(one, self.expected.iloc[:1])


def test_statsmodels() -> None:
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(0)
    results = []
    for _ in range(5):
        x = pd.DataFrame({"const": 1.0, "dose": rng.normal(size=30)})
        results.append(sm.OLS(1.0 + 2.0 * x["dose"] + rng.normal(size=30), x).fit())
    pooled = glfm.pool(results)
    again = glfm.pool([r.params for r in results], [r.cov_params() for r in results], df=28)
    pd.testing.assert_frame_equal(pooled, again)
    assert list(pooled["term"]) == ["const", "dose"]
    assert (pooled["df"] < 28).all()
    assert glfm.pool(results, df=np.inf)["df"].gt(pooled["df"]).all()


WRONG = {
    "one imputation": ([[1.0, 2.0]], [[1.0, 1.0]], {}, "pool at least two"),
    "one number": (1.0, 1.0, {}, "pool at least two"),
    "shapes": (Q, U[:3], {}, "4 x 2 estimates but 3 x 2 variances"),
    "ragged": ([[1.0], [1.0, 2.0]], U, {}, "as many for each imputation"),
    "text": (["a", "b"], [1.0, 1.0], {}, "must be numbers"),
    "nothing": ([], [], {}, "0 numbers"),
    "cubes": (np.zeros((2, 2, 2)), U, {}, "3 dimensions"),
    "negative": ([1.0, 2.0], [1.0, -1.0], {}, "variance -1 in imputation 2"),
    "zero": ([1.0, 2.0], [0.0, 1.0], {}, "variance 0 in imputation 1"),
    "hole": ([1.0, np.nan], [1.0, 1.0], {}, "estimate nan"),
    "infinite": ([1.0, 1.0], [1.0, np.inf], {}, "variance inf"),
    "mass": ([1.0, 1.0], [1.0, 1.0], {"mass": 95}, "mass lies between 0 and 1, not at 95"),
    "df": ([1.0, 1.0], [1.0, 1.0], {"df": 0}, "positive, not 0"),
    "df of others": (Q, U, {"df": [1.0, 2.0, 3.0]}, r"one per term \(2\)"),
    "terms": (Q, U, {"terms": ["a"]}, "2 terms but 1 names"),
    "other names": (pd.DataFrame(Q, columns=["a", "b"]), pd.DataFrame(U, columns=["a", "c"]), {}, "a, c"),
    "terms that come and go": (
        [pd.Series({"a": 1.0}), pd.Series({"b": 1.0})],
        [[1.0], [1.0]],
        {},
        "differ in their terms",
    ),
    "no variances": (Q, None, {}, "give their variances too"),
}


@pytest.mark.parametrize("case", WRONG)
def test_refused_in_one_sentence(case: str) -> None:
    q, u, options, words = WRONG[case]
    with pytest.raises(DataError, match=words) as refused:
        glfm.pool(q, u, **options)
    assert str(refused.value).endswith(".")
