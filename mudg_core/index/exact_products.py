"""Cosines that are the same bits on every CPU, with any BLAS kernel, thread count and block shape.

A float32 product rounds as its kernel pleases, so nothing may hang on its last bits. Here unit vectors are
first rounded to multiples of 2^-26. A product of two such values is a multiple of 2^-52, and by Cauchy and
Schwarz no partial sum of them exceeds 1 (or a hair more): every partial sum is a float64 as it is, nothing is
rounded, and so no order of summing and no fused multiply-add can change the result. Ties are then real ties,
which row numbers break.

A float64 product costs two float32 ones. Where that matters, a float32 product finds the few candidates
within `float32_error` of being chosen, and only these are compared here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

GRID = 2.0**26


def on_grid(unit: NDArray[np.floating]) -> Float64:
    """Unit vectors as multiples of 2^-26: what is rounded away is less than float32 rounds in a product."""
    grid = np.multiply(unit, GRID, dtype=np.float64)
    np.rint(grid, out=grid)
    grid *= 1 / GRID
    return np.asarray(grid, dtype=np.float64)


def exact_cosines(left: NDArray[np.floating], right: NDArray[np.floating]) -> Float64:
    """Of every unit vector of one matrix with every one of the other; exact up to lengths of 1.4."""
    return np.asarray(on_grid(left) @ on_grid(right).T, dtype=np.float64)


def exact_cosines_by_row(left: NDArray[np.floating], right: NDArray[np.floating]) -> Float64:
    """Of each unit vector with the one in the same place; all but the last axis broadcast."""
    return np.asarray(np.einsum("...d,...d->...", on_grid(left), on_grid(right)), dtype=np.float64)


def float32_error(dim: int) -> float:
    """How far a float32 product of two unit vectors can be from `exact_cosines`, whatever the kernel.

    Each of `dim` products and sums rounds by at most 2^-24 of what is summed so far, which is at most 1;
    rounding to the grid moves a cosine by at most sqrt(dim) / 2^26.
    """
    return float((dim + 1) * 2.0**-24 * 1.01 + np.sqrt(dim) * 2.0**-26)
