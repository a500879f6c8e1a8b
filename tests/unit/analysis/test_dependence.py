"""Mutual information of columns: against dense sums over values, and by what it must obey."""

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy

import glfm
from glfm.analysis.dependence import MATTERS, Dependence
from glfm.analysis.mutual_information import mutual_information
from glfm.errors import SchemaError
from glfm.frames.column import Column
from glfm.kinds import KINDS, Kind
from glfm.kinds.outcomes import NumberOutcomes
from glfm.sampling.draws import Draw
from glfm.sampling.priors import Priors
from glfm.sampling.problem import LocalProblem, Problem
from glfm.testing import make_fit
from kind_examples import EXAMPLES, example_of

PATTERNS = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], dtype=bool)


def table(kinds: dict[str, Kind], counts=(5, 3, 2, 4)) -> Problem:
    """Return a table without a single observed cell: only its kinds and its size matter here."""
    return LocalProblem(kinds, np.full((sum(counts), len(kinds)), np.nan), Priors())


def drawn(problem: Problem, counts=(5, 3, 2, 4), seed: int = 0, scale: float = 1.0, index: int = 0) -> Draw:
    """Return a draw in which so many rows have each of four patterns."""
    rng = np.random.default_rng(seed)
    return Draw(
        layout=problem.layout,
        x=problem.x,
        chain=0,
        index=index,
        alpha=1.0,
        weights=scale * rng.standard_normal((3, problem.n_pseudo)),
        variances=np.array([0.3 if kind.is_number else 1.0 for kind in problem.kinds.values()]),
        thetas=tuple(kind.initial_theta() for kind in problem.kinds.values()),
        packed=np.packbits(np.repeat(PATTERNS, counts, axis=0), axis=1),
    )


def of(*draws: Draw) -> Dependence:
    """Return the dependence of columns under draws of one table."""
    problem = LocalProblem(draws[0].layout.kinds, draws[0].x, Priors())
    return Dependence(make_fit(problem, draws))


def points(kind: Kind, location: np.ndarray, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return values that cover a column, and the width of each (1: a probability)."""
    if not kind.is_number:
        return np.arange(float(kind.n_levels)), np.ones(kind.n_levels)
    sd = np.sqrt(variance + kind.aux_variance)
    ends = np.clip([location.min() - 7 * sd, location.max() + 7 * sd], *kind.support)
    w = np.linspace(*ends, 1501)
    if kind.is_whole:
        x = np.arange(kind.to_value(w).min(), kind.to_value(w).max() + 1.0)
        return x, np.ones(x.size)
    edges = np.linspace(*ends, 1501)
    inner = np.clip(kind.continuum, *ends)
    edges = np.unique(np.append(inner, edges[(edges > inner[0]) & (edges < inner[1])]))
    x, width = kind.to_value(0.5 * (edges[1:] + edges[:-1])), np.abs(np.diff(kind.link.forward(edges)))
    return np.append(kind.atoms, x), np.append(np.ones(kind.atoms.size), width)


def dense(draw: Draw, share: np.ndarray) -> np.ndarray:
    """Return the mutual information from densities at many values, in the space of the values."""
    problem = draw.layout
    Z = np.hstack([np.ones((4, 1)), PATTERNS])
    tables = []
    for d, (kind, part) in enumerate(zip(problem.kinds.values(), problem.slices, strict=True)):
        location, variance = Z @ draw.weights[:, part], float(draw.variances[d])
        x, width = points(kind, location, variance)
        p = [
            np.exp(kind.log_density(x, np.tile(at, (x.size, 1)), variance, draw.thetas[d])) for at in location
        ]
        tables.append(np.array(p) * width)
    out = np.zeros((len(tables), len(tables)))
    for d, e in combinations_with_replacement(range(len(tables)), 2):
        a, b = tables[d], tables[e] if d != e else np.eye(4)  # the diagonal: with the pattern itself
        joint = (a * share[:, None]).T @ b
        out[d, e] = out[e, d] = (
            xlogy(joint, joint).sum() - xlogy(share @ a, share @ a).sum() - xlogy(share @ b, share @ b).sum()
        )
    return out


def learnt(**more: Kind) -> dict[str, Kind]:
    return {name: KINDS[name]().learn(example_of(name)) for name in EXAMPLES} | more


SHARE = np.array([5.0, 3.0, 2.0, 4.0]) / 14.0


class TestInformation:
    @pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
    def test_every_pair_of_kinds_against_a_dense_sum(self, scale):
        draw = drawn(table(learnt()), scale=scale)
        found, exact = of(draw).information[0], dense(draw, SHARE)
        np.testing.assert_allclose(found, exact, atol=1e-3)
        levels = np.flatnonzero([not kind.is_number for kind in draw.layout.kinds.values()])
        np.testing.assert_allclose(found[np.ix_(levels, levels)], exact[np.ix_(levels, levels)], atol=1e-7)

    def test_scores_and_weights_that_make_the_same_locations(self):
        draw = drawn(table(learnt()))
        halved = np.vstack([draw.weights[:1], 0.5 * draw.weights[1:]])
        scored = replace(draw, weights=halved, scores=2.0 * draw.Z.astype(np.float32))
        for found, exact in (
            (of(scored).information, of(draw).information),
            (of(scored).shared, of(draw).shared),
        ):
            np.testing.assert_allclose(found, exact, atol=1e-9)
        assert (
            np.abs(of(replace(scored, scores=draw.Z * 1.0)).information - of(draw).information).max() > 0.01
        )

    def test_a_wrong_share_of_patterns_would_be_seen(self):
        draw = drawn(table(learnt()))
        found = of(draw).information[0]
        wrong = dense(draw, np.full(4, 0.25))
        assert (np.abs(found - wrong) > 3e-3).mean() > 0.5

    def test_fine_and_bounded_numbers(self):
        amounts = Column("n", np.array([90.0, 250.0, 410.0, 120.0, 400.0]), "integer")
        roots = Column("r", np.array([0.5, 4.0, 9.0, 2.0, 1.0]), "float")
        odd = Column("o", np.array([3.0, 60.0, 99.0, 100.0, 97.0]), "integer")
        mirrored = glfm.Transform(
            lambda x: np.log(101.0 - x),
            lambda y: 101.0 - np.exp(y),
            lambda x: -1.0 / (101.0 - x),
            range=(-np.inf, np.log(101.0)),
        )
        kinds = {
            "many": glfm.Count().learn(amounts),
            "root": glfm.Real(transform="sqrt").learn(roots),
            "straight": glfm.Positive(mapping="affine").learn(roots),
            "falling": glfm.Count(transform=mirrored).learn(odd),
            "level": glfm.Categorical(levels=["a", "b"]),
        }
        draw = drawn(table(kinds), seed=2)
        np.testing.assert_allclose(of(draw).information[0], dense(draw, SHARE), atol=1e-3)

    def test_monotone_maps_do_not_matter(self):
        plain = {"a": glfm.Real(shift=0.0, scale=1.0), "b": glfm.Real(shift=0.0, scale=1.0)}
        bent = {
            "a": glfm.Positive(mapping="exp", shift=3.0, scale=0.1),
            "b": glfm.Real(transform="log", shift=-1.0, scale=7.0),
        }
        one, other = (
            of(drawn(problem)).information
            for problem in (
                table({name: kind.learn(example_of("real")) for name, kind in plain.items()}),
                table(
                    {
                        name: kind.learn(Column("x", np.array([1.0, 2.0]), "float"))
                        for name, kind in bent.items()
                    }
                ),
            )
        )
        np.testing.assert_allclose(one, other, atol=1e-12)

    def test_no_other_column_tells_more_than_the_features(self):
        found = of(drawn(table(learnt()), scale=2.0)).information[0]
        assert (found <= np.minimum.outer(np.diag(found), np.diag(found)) + 1e-3).all()
        assert (found >= 0.0).all()

    def test_columns_without_a_common_feature(self):
        problem = table(learnt(), counts=(6, 4, 3, 2))  # 6 : 3 as 4 : 2, so the features are independent
        draw = drawn(problem, counts=(6, 4, 3, 2), scale=3.0)
        draw.weights[2, problem.slices[0]] = 0.0
        for part in problem.slices[1:]:
            draw.weights[1, part] = 0.0
        found = of(draw).information[0]
        assert (found[0, 1:] < 1e-12).all()
        assert (found[1:, 1:] > 1e-3).all()

    @pytest.mark.parametrize("bias", [True, False])
    def test_no_features(self, bias):
        problem = LocalProblem(learnt(), np.full((5, 5), np.nan), Priors(bias=bias))
        draw = Draw(
            problem.layout,
            0,
            0,
            1.0,
            np.ones((int(bias), problem.n_pseudo)),
            np.ones(5),
            tuple(kind.initial_theta() for kind in problem.kinds.values()),
            np.empty((5, 0), dtype=np.uint8),
            x=problem.x,
        )
        dependence = of(draw)
        assert (dependence.information < 1e-12).all()
        assert (dependence.shared == 0.0).all()

    def test_hardly_any_noise(self):
        kind = glfm.Real(aux_variance=0.0).learn(example_of("real"))
        draw = drawn(table({"a": kind, "b": kind}), scale=3.0)
        draw.variances[:] = 1e-12
        found = of(draw).information[0]
        np.testing.assert_allclose(found, -xlogy(SHARE, SHARE).sum(), atol=1e-6)

    def test_a_column_with_one_level_and_one_out_of_reach(self):
        kinds = {
            "one": glfm.Categorical(levels=["only"]),
            "far": glfm.Positive(mapping="affine").learn(Column("x", np.array([1.0, 2.0]), "float")),
            "real": KINDS["real"]().learn(example_of("real")),
        }
        draw = drawn(table(kinds))
        draw.weights[:, 0] = -1e4  # far below zero
        found = of(draw).information[0]
        assert np.isfinite(found).all()
        assert (found[0] == 0.0).all()

    def test_outcomes_are_probabilities(self, learnt: Kind):
        rng = np.random.default_rng(0)
        location = rng.standard_normal((6, learnt.n_free))
        p = learnt.outcomes(location.min(), location.max(), 0.6, 0.6).likelihood(
            location, 0.36 if learnt.is_number else 1.0, learnt.initial_theta()
        )
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)

    def test_a_count_that_is_wide_is_exact(self):
        kind = glfm.Count().learn(Column("n", np.array([0.0, 1.0, 2.0, 1.0]), "integer"))
        outcomes = kind.outcomes(-1.0, 1.0, 0.5, 0.5)
        assert isinstance(outcomes, NumberOutcomes)
        assert outcomes.lower[0] == -np.inf
        assert outcomes.lower.size > 3

    def test_of_many_rows_some_are_used(self):
        problem = table(learnt())
        rows = np.array([0, 13])
        two = mutual_information(problem, drawn(problem), of(drawn(problem)).outcomes(), rows)
        wanted = dense(drawn(problem), np.array([0.5, 0.0, 0.0, 0.5]))
        np.testing.assert_allclose(two, wanted, atol=1e-3)


class TestShared:
    def test_by_hand(self):
        kind = KINDS["real"]().learn(example_of("real"))
        problem = table(dict.fromkeys("abc", kind), counts=(25, 25, 25, 25))
        draw = drawn(problem, counts=(25, 25, 25, 25))
        draw.weights[1:] = [[1.0, 1.0, 0.0], [0.0, 0.1, 2.0]]
        location = draw.activations @ draw.weights
        spread = location.var(axis=0) + draw.variances
        matters = 0.25 * draw.weights[1:] ** 2 / spread >= MATTERS
        assert matters.tolist() == [[True, True, False], [False, False, True]]
        assert of(draw).shared[0].tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]

    def test_a_feature_that_all_rows_have_joins_nothing(self):
        kind = KINDS["real"]().learn(example_of("real"))
        problem = table(dict.fromkeys("ab", kind), counts=(0, 10, 0, 0))
        draw = drawn(problem, counts=(0, 10, 0, 0), scale=5.0)
        assert (of(draw).shared == 0.0).all()


class TestFrames:
    def test_average_and_interval_over_draws(self):
        problem = table(learnt())
        dependence = of(*[drawn(problem, seed=seed, index=seed) for seed in range(6)])
        each = dependence.information
        assert each.shape == (6, 5, 5)
        mean, (lower, upper) = dependence.frame(), dependence.interval(0.5)
        np.testing.assert_allclose(mean, each.mean(axis=0))
        np.testing.assert_allclose(lower, np.quantile(each, 0.25, axis=0))
        np.testing.assert_allclose(upper, np.quantile(each, 0.75, axis=0))
        for frame in (mean, lower, upper):
            assert list(frame.index) == list(frame.columns) == list(EXAMPLES)
            np.testing.assert_allclose(frame, frame.T)

    def test_of_many_draws_fifty_are_used(self):
        problem = table({"real": KINDS["real"]().learn(example_of("real"))})
        assert len(of(*[drawn(problem)] * 70).information) == 50

    def test_a_fit(self):
        rng = np.random.default_rng(0)
        on = rng.random(150) < 0.5
        frame = pd.DataFrame(
            {
                "a": 4.0 * on + rng.standard_normal(150),
                "b": np.where(rng.random(150) < 0.1 + 0.8 * on, "yes", "no"),
                "c": rng.standard_normal(150),
            }
        )
        model = glfm.GLFM(n_chains=2, n_warmup=60, n_draws=10, thin=1, random_state=0, progress=False).fit(
            frame
        )
        found = model.dependence()
        assert found.loc["a", "b"] > 10 * found.loc["a", "c"]
        share = model.dependence("probability")
        assert share.loc["a", "b"] > 0.9 > share.loc["a", "c"]
        lower, upper = model.dependence(mass=0.9)
        assert (lower.to_numpy() <= upper.to_numpy()).all()
        with pytest.raises(SchemaError, match='measure is "mi" or "probability", not \'r\''):
            model.dependence("r")
        with pytest.raises(SchemaError, match="itself a share"):
            model.dependence("probability", mass=0.9)
        with pytest.raises(SchemaError, match="between 0 and 1"):
            model.dependence(mass=90)
