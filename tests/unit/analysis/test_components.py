"""Axes of a matrix against the sources it was made from."""

import numpy as np
import pytest

from glfm.analysis.components import Whitened, match_axes


def mixed_sources(shares, n_rows=2000, n_columns=9, noise=0.1, seed=0):
    """Return sources of two levels, and a matrix that is linear in them."""
    rng = np.random.default_rng(seed)
    sources = (rng.random((n_rows, len(shares))) < shares).astype(float)
    matrix = sources @ rng.standard_normal((len(shares), n_columns))
    return sources, matrix + noise * rng.standard_normal(matrix.shape)


class TestComponents:
    @pytest.mark.parametrize("shares", [[0.2, 0.3, 0.1], [0.5, 0.5], [0.5, 0.21, 0.05, 0.35]])
    def test_two_levels_are_found_whatever_their_shares(self, shares):
        sources, matrix = mixed_sources(shares)
        found = Whitened(matrix).components(len(shares)).sources(matrix)
        assert (np.abs(match_axes(sources, found)[1]) > 0.97).all()

    def test_principal_components_alone_do_not_find_them(self):
        sources, matrix = mixed_sources([0.2, 0.3, 0.1])
        left = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)[0][:, :3]
        assert (np.abs(match_axes(sources, left)[1]) < 0.97).any()

    def test_sources_are_uncorrelated_with_variance_one(self):
        _, matrix = mixed_sources([0.2, 0.4])
        found = Whitened(matrix).components(2).sources(matrix)
        np.testing.assert_allclose(np.cov(found.T, ddof=0), np.eye(2), atol=1e-9)

    def test_few_rows_and_many_columns(self):
        sources, matrix = mixed_sources([0.5, 0.3], n_rows=60, n_columns=200)
        whitened = Whitened(matrix)
        assert whitened.rank < 60
        found = whitened.components(2).sources(matrix)
        assert (np.abs(match_axes(sources, found)[1]) > 0.95).all()

    @pytest.mark.parametrize("n_rows", [60, 400])
    def test_leading_components_alone_give_the_same_axes(self, n_rows):
        _, matrix = mixed_sources([0.5, 0.3, 0.1], n_rows=n_rows, n_columns=200)
        every, few = Whitened(matrix), Whitened(matrix, 4)
        assert few.rank == 4 < every.rank
        for white in (every, few):
            np.testing.assert_allclose(white.sources(1), white.components(1).sources(matrix), atol=1e-9)
        found = every.components(3).sources(matrix), few.components(3).sources(matrix)
        np.testing.assert_allclose(*found, atol=1e-6)

    def test_rows_of_another_matrix_are_placed(self):
        _, matrix = mixed_sources([0.5, 0.3])
        half = Whitened(matrix[:1000], 2, matrix)
        np.testing.assert_allclose(half.sources(1), half.components(1).sources(matrix), atol=1e-9)

    def test_a_constant_matrix_has_no_component(self):
        assert Whitened(np.ones((10, 3))).rank == 0

    def test_further_axes_are_uncorrelated_with_the_first(self):
        _, matrix = mixed_sources([0.2, 0.4, 0.3, 0.1])
        whitened = Whitened(matrix)
        first, more = (whitened.components(2, at).sources(matrix) for at in (0, 2))
        np.testing.assert_allclose(first.T @ more / len(matrix), 0.0, atol=1e-9)


def test_matched_axes_have_the_sign_of_their_correlation():
    rng = np.random.default_rng(1)
    a = rng.standard_normal((500, 3))
    partner, correlation = match_axes(a, -a[:, [2, 0, 1]])
    assert partner.tolist() == [1, 2, 0]
    np.testing.assert_allclose(correlation, -1.0)
