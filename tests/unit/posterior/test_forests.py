"""Forests as arrays: their predictions are those of scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestRegressor

from glfm.posterior.forests import Forest

SETTINGS = {"n_estimators": 7, "min_samples_leaf": 2, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    """Inputs of which many stand exactly on a threshold, and a bent relation."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((120, 4)), 1).astype(np.float32)
    return X, X[:, 0] ** 2 - X[:, 1] + 0.1 * rng.standard_normal(120)


@pytest.mark.parametrize("learner", [ExtraTreesRegressor, RandomForestRegressor])
def test_numbers(table, learner):
    X, y = table
    trees = learner(**SETTINGS).fit(X, y)
    forest = Forest.of(trees.estimators_)
    np.testing.assert_array_equal(forest.predict(X)[:, 0], trees.predict(X))
    moved = replace(forest, thresholds=forest.thresholds + np.float32(0.3))
    assert not np.allclose(moved.predict(X)[:, 0], trees.predict(X))


def test_levels_of_which_some_were_never_seen(table):
    X, y = table
    levels = np.digitize(y, [-0.5, 0.5, 2.0]) + 1  # 1 to 4 of six
    trees = ExtraTreesClassifier(bootstrap=True, **SETTINGS).fit(X, levels)
    p = Forest.of(trees.estimators_, 6, trees.classes_).predict(X)
    np.testing.assert_allclose(p[:, trees.classes_], trees.predict_proba(X), rtol=1e-13, atol=1e-15)
    assert not p[:, [0, 5]].any()


def test_a_row_does_not_depend_on_the_others(table):
    X, y = table
    forest = Forest.of(ExtraTreesRegressor(**SETTINGS).fit(X, y).estimators_)
    np.testing.assert_array_equal(forest.predict(X[5:6]), forest.predict(X)[5:6])
    assert forest.predict(X[:0]).shape == (0, 1)
