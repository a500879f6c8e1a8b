"""Linear learners as arrays: their predictions are those of scikit-learn, inside the range of training."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from glfm.posterior import linear
from glfm.posterior.linear import Linear


@pytest.fixture(scope="module")
def table():
    """Inputs of different sizes, one of them constant."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((150, 4)) * [1.0, 100.0, 0.01, 0.0] + [0.0, 7.0, 0.0, 3.0]).astype(np.float32)
    return X, X[:, 0] - 0.02 * X[:, 1] + 0.3 * rng.standard_normal(150)


def test_numbers(table):
    X, y = table
    other = make_pipeline(StandardScaler(), RidgeCV(linear._PENALTIES)).fit(X.astype(float), y)
    learner = Linear.of_number(X, y)
    np.testing.assert_allclose(learner.guess(X)[:, 0], other.predict(X), atol=1e-5)
    moved = replace(learner, weights=1.1 * learner.weights)
    assert not np.allclose(moved.guess(X)[:, 0], other.predict(X), atol=1e-5)


@pytest.mark.parametrize("cuts", [[0.5], [-1.0, 0.5]])
def test_levels_of_which_some_were_never_seen(table, cuts):
    X, y = table
    levels = np.digitize(y, cuts) + 1.0  # of five
    classifier = LogisticRegression(max_iter=linear._STEPS)
    other = make_pipeline(StandardScaler(), classifier).fit(X.astype(float), levels)
    p = Linear.of_levels(X, levels, 5).guess(X)
    seen = other.classes_.astype(int)
    np.testing.assert_allclose(p[:, seen], other.predict_proba(X), rtol=1e-6, atol=1e-9)
    assert not np.delete(p, seen, axis=1).any()


def test_one_level_alone_is_certain(table):
    X, _ = table
    p = Linear.of_levels(X, np.full(len(X), 2.0), 4).guess(X)
    np.testing.assert_array_equal(p, np.eye(4)[np.full(len(X), 2)])


def test_beyond_the_range_of_training_nothing_changes(table):
    X, y = table
    learner = Linear.of_number(X, y)
    far = np.vstack([X.max(axis=0), np.full(4, 1e30)]).astype(np.float32)
    near = learner.guess(far)
    assert near[0] == near[1]
    assert learner.guess(X.max(axis=0, keepdims=True) - 1e-2)[0] != near[0]


def test_a_row_does_not_depend_on_the_others(table):
    X, y = table
    for learner in (Linear.of_number(X, y), Linear.of_levels(X, np.digitize(y, [0.0, 1.0]) * 1.0, 3)):
        np.testing.assert_array_equal(learner.guess(X[5:6]), learner.guess(X)[5:6])
        assert learner.guess(X[:0]).shape == (0, learner.offsets.size)
