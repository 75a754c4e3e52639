"""Cosines that no kernel, order or block can change."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mudg_core.index.exact_products import exact_cosines, exact_cosines_by_row, float32_error, on_grid
from mudg_core.index.vectors import normalised


def sphere(count: int, dim: int, seed: int) -> np.ndarray:
    return normalised(np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32))


@pytest.mark.parametrize("dim", [1, 2, 7, 64, 513, 1024])
def test_as_rational_numbers(dim: int) -> None:
    """Not nearly: equal. Also for vectors that are the same, whose partial sums are the largest."""
    left = sphere(3, dim, 1)
    right = np.concatenate([left, -left, sphere(2, dim, 2)])
    cosines = exact_cosines(left, right)
    for i, one in enumerate(on_grid(left)):
        for j, other in enumerate(on_grid(right)):
            assert Fraction(cosines[i, j]) == sum(
                (Fraction(a) * Fraction(b) for a, b in zip(one.tolist(), other.tolist(), strict=True)),
                Fraction(0),
            )


def test_any_order_block_and_shape_gives_the_same_bits() -> None:
    left, right = sphere(40, 513, 3), sphere(300, 513, 4)
    whole = exact_cosines(left, right)
    order = np.random.default_rng(5).permutation(513)
    assert (exact_cosines(left[:, order], right[:, order]) == whole).all()
    assert (
        np.concatenate([exact_cosines(left, part) for part in np.split(right, [1, 8, 200])], 1) == whole
    ).all()
    assert (exact_cosines_by_row(left[:, None], right[None]) == whole).all()


@pytest.mark.parametrize("dim", [2, 64, 768])
def test_float32_products_are_within_the_bound(dim: int) -> None:
    left, right = sphere(200, dim, 6), sphere(500, dim, 7)
    assert np.abs(exact_cosines(left, right) - left @ right.T).max() <= float32_error(dim)
