"""Forests as arrays: their predictions are those of scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import ExtraTreeRegressor

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
    np.testing.assert_array_equal(forest.guess(X).center[:, 0], trees.predict(X))
    moved = replace(forest, thresholds=forest.thresholds + np.float32(0.3))
    assert not np.allclose(moved.guess(X).center[:, 0], trees.predict(X))


def test_levels_of_which_some_were_never_seen(table):
    X, y = table
    levels = np.digitize(y, [-0.5, 0.5, 2.0]) + 1  # 1 to 4 of six
    trees = ExtraTreesClassifier(bootstrap=True, **SETTINGS).fit(X, levels)
    p = Forest.of(trees.estimators_, 6, trees.classes_).guess(X).center
    np.testing.assert_allclose(p[:, trees.classes_], trees.predict_proba(X), rtol=1e-13, atol=1e-15)
    assert not p[:, [0, 5]].any()


def test_a_row_does_not_depend_on_the_others(table):
    X, y = table
    forest = Forest.of(ExtraTreesRegressor(**SETTINGS).fit(X, y).estimators_)
    np.testing.assert_array_equal(forest.guess(X[5:6]).center, forest.guess(X).center[5:6])
    assert forest.guess(X[:0]).center.shape == (0, 1)


def test_leaves_keep_numbers_that_they_were_trained_on():
    rng = np.random.default_rng(0)
    inputs, y = rng.standard_normal((80, 3)).astype(np.float32), rng.standard_normal(80)
    samples = [rng.integers(80, size=80) for _ in range(4)]
    trees = [
        ExtraTreeRegressor(min_samples_leaf=4, random_state=i).fit(
            inputs, y, sample_weight=np.bincount(some, minlength=80)
        )
        for i, some in enumerate(samples)
    ]
    forest = Forest.of(trees).keeping(inputs, y, samples)
    for tree, some, at in zip(trees, samples, forest.leaves(inputs), strict=True):
        found = tree.apply(inputs)
        for leaf in np.unique(found):
            inside = np.sort(y[some[found[some] == leaf]])
            kept = forest.seen[at[found == leaf][0]]
            assert np.isin(kept, inside.astype(np.float32)).all()
            assert inside[0] <= kept[0] + 1e-6
            assert kept[-1] <= inside[-1] + 1e-6


def test_only_trees_that_are_asked_answer():
    rng = np.random.default_rng(1)
    inputs, y = rng.standard_normal((60, 2)).astype(np.float32), rng.standard_normal(60)
    every = [np.arange(60)] * 6
    trees = [ExtraTreeRegressor(min_samples_leaf=5, random_state=i).fit(inputs, y) for i in range(6)]
    forest = Forest.of(trees).keeping(inputs, y, every)
    asked = rng.random((6, 60)) < 0.5
    asked[0] = True
    guess = forest.guess(inputs, asked)
    for n in (0, 17, 59):
        own = Forest.of([tree for tree, may in zip(trees, asked[:, n], strict=True) if may])
        alone = own.keeping(inputs, y, every[: asked[:, n].sum()]).guess(inputs[[n]])
        np.testing.assert_allclose(guess.center[n], alone.center[0])
        np.testing.assert_array_equal(guess.seen[n], alone.seen[0])
    assert not np.array_equal(forest.guess(inputs).seen, guess.seen)
