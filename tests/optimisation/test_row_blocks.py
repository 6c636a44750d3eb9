"""Matrices in blocks of similar rows compute the same products as dense ones."""

import numpy as np
import pytest

from torsor.optimisation.standard import RowBlocks


@pytest.mark.parametrize("kinds", [1, 7, 40])
def test_products_are_those_of_the_dense_matrix(kinds: int) -> None:
    rng = np.random.default_rng(kinds)
    patterns = rng.random((kinds, 60)) < 0.2
    patterns[0, 0] = True
    rows, columns = np.nonzero(patterns[rng.integers(kinds, size=900)])
    entries, dense = rng.normal(size=len(rows)), np.zeros((900, 60))
    dense[rows, columns] = entries
    matrix = RowBlocks((900, 60), rows, columns).filled(entries)
    weights, x, y = rng.random(900), rng.normal(size=(60, 2)), rng.normal(size=900)
    np.testing.assert_allclose(matrix.dense(), dense, atol=0)
    np.testing.assert_allclose(matrix.times(x), dense @ x, atol=1e-12)
    np.testing.assert_allclose(matrix.transposed_times(y), dense.T @ y, atol=1e-12)
    np.testing.assert_allclose(matrix.gram(weights), dense.T @ (weights[:, None] * dense), atol=1e-11)


def test_banded_rows_need_a_fraction_of_the_operations() -> None:
    """200 rows at each of 10 intervals of 40 columns out of 220: blocks follow the intervals."""
    first = np.repeat(np.arange(10) * 20, 200)
    rows, columns = np.repeat(np.arange(2000), 40), (first[:, None] + np.arange(40)).ravel()
    blocks = RowBlocks((2000, 220), rows, columns).blocks
    assert sum(len(a) * len(b) ** 2 for a, b in blocks) < 0.1 * 2000 * 220**2
    assert sorted(np.concatenate([a for a, _ in blocks]).tolist()) == list(range(2000))


def test_entries_at_the_same_place_are_added() -> None:
    matrix = RowBlocks((1, 2), np.array([0, 0]), np.array([1, 1])).filled(np.array([2.0, 3.0]))
    assert matrix.dense().tolist() == [[0.0, 5.0]]
