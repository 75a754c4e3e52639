"""Which centroid is nearest to a vector, decided by exact cosines.

A float32 product compares every vector with every centroid. Whatever kernel computes it, it is within
`float32_error` of the exact cosine, so the nearest centroid is among those that score within twice that of
the best. Nearly always that is one. Where it is more, exact products decide, and of equal ones the lower cell
wins. So a cell depends on its vector and the centroids alone: not on the CPU, threads, tiles or shards.
"""

from __future__ import annotations

import numpy as np

from mudg_core.index.exact_products import exact_cosines, exact_cosines_by_row, float32_error
from mudg_core.index.vectors import Bool, Float32, Int64, normalised

ROWS = 1024  # vectors scored at once
FEW = 16  # centroids that are compared one by one; with more, a vector is compared with all of them
PAIRS = 4096  # compared at once
ROUNDING = 2.0**-22  # of a vector to unit length, and of lengths just above one


def assign(vectors: Float32, centroids: Float32, longest: float = 1.0) -> Int64:
    """The cell of each vector, by cosine. Centroids are unit vectors; vectors may be up to `longest` long.

    Vectors are not normalised first: their length does not change which centroid is nearest, only how far
    float32 can be wrong.
    """
    margin = np.float32(2.001 * longest * (float32_error(centroids.shape[1]) + ROUNDING))
    shape = min(ROWS, len(vectors)), len(centroids)
    scores, near, cells = np.empty(shape, "f4"), np.empty(shape, np.bool_), np.empty(len(vectors), np.int64)
    for first in range(0, len(vectors), ROWS):
        block = vectors[first : first + ROWS]
        cells[first : first + ROWS] = _assign_block(
            block, centroids, margin, scores[: len(block)], near[: len(block)]
        )
    return cells


def _assign_block(
    vectors: Float32, centroids: Float32, margin: np.float32, scores: Float32, near: Bool
) -> Int64:
    """`scores` and `near` are buffers."""
    np.matmul(vectors, centroids.T, out=scores)
    np.greater_equal(scores, (scores.max(axis=1) - margin)[:, None], out=near)
    rows, cells = np.divmod(np.flatnonzero(near), len(centroids))
    if len(rows) == len(vectors):
        return cells
    counts = np.bincount(rows, minlength=len(vectors))
    found = np.empty(len(vectors), np.int64)
    found[rows] = cells
    some = (counts[rows] > 1) & (counts[rows] <= FEW)
    _compare_few(found, vectors, centroids, rows[some], cells[some])
    for first in range(0, len(crowded := np.flatnonzero(counts > FEW)), PAIRS):
        part = crowded[first : first + PAIRS]
        found[part] = exact_cosines(normalised(vectors[part]), centroids).argmax(axis=1)
    return found


def _compare_few(found: Int64, vectors: Float32, centroids: Float32, rows: Int64, cells: Int64) -> None:
    """Writes the best of each row's cells. They are written worst first, so that the best one stays."""
    parts = [slice(first, first + PAIRS) for first in range(0, len(rows), PAIRS)]
    exact = [exact_cosines_by_row(normalised(vectors[rows[p]]), centroids[cells[p]]) for p in parts]
    order = np.lexsort((-cells, np.concatenate([np.zeros(0), *exact])))
    found[rows[order]] = cells[order]
