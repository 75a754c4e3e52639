"""Which centroid is nearest to a vector, decided by exact cosines.

A float32 product compares every vector with every centroid. Whatever kernel computes it, it is within
`float32_error` of the exact cosine, so the nearest centroid is among those that score within twice that of
the best. Nearly always that is one. Where it is more, exact products decide, and of equal ones the lower cell
wins. So a cell depends on its vector and the centroids alone: not on the CPU, threads, tiles or shards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mudg_core.index.exact import exact_cosines_by_row, float32_error, on_grid
from mudg_core.index.vectors import Bool, Float32, Float64, Int64, blocks, normalised

ROWS = 1024  # vectors scored at once, or fewer where there are many centroids
SCORE_BYTES = 5  # that a float32 score takes,
EXACT_BYTES = 8  # and an exact one
FEW = 16  # centroids that are compared one by one; with more, a vector is compared with all of them
PAIRS = 4096  # compared at once
ROUNDING = 2.0**-22  # of a vector to unit length, and of lengths just above one


@dataclass(frozen=True)
class _Level:
    centroids: Float32
    margin: np.float32

    @cached_property
    def grid(self) -> Float64:
        """For exact products with all of them, which hardly any vector needs."""
        return on_grid(self.centroids)


def assign(vectors: Float32, centroids: Float32, longest: float = 1.0) -> Int64:
    """The cell of each vector, by cosine. Centroids are unit vectors; vectors may be up to `longest` long.
    Those without a direction (zeros, NaN, Inf) go to the first cell.

    Vectors are not normalised first: their length does not change which centroid is nearest, only how far
    float32 can be wrong.
    """
    margin = np.float32(2.001 * longest * (float32_error(centroids.shape[1]) + ROUNDING))
    level, most = _Level(centroids, margin), blocks(ROWS, SCORE_BYTES * len(centroids))[0].stop
    shape = min(most, len(vectors)), len(centroids)
    scores, near, cells = np.empty(shape, "f4"), np.empty(shape, np.bool_), np.empty(len(vectors), np.int64)
    for first in range(0, len(vectors), most):
        block = vectors[first : first + most]
        cells[first : first + most] = _assign_block(block, level, scores[: len(block)], near[: len(block)])
    return cells


def _assign_block(vectors: Float32, level: _Level, scores: Float32, near: Bool) -> Int64:
    """`scores` and `near` are buffers."""
    np.matmul(vectors, level.centroids.T, out=scores)
    best = scores.max(axis=1)
    np.greater_equal(scores, (best - level.margin)[:, None], out=near)
    _only_first(near, np.flatnonzero(~np.isfinite(best)))
    crowded = _crowded(near)
    rows, cells = np.divmod(np.flatnonzero(near), near.shape[1])
    nearest, counts = np.empty(len(vectors), np.int64), np.bincount(rows, minlength=len(vectors))
    nearest[rows] = cells
    some = (counts[rows] > 1) & (counts[rows] <= FEW)
    _compare_few(nearest, vectors, level.centroids, rows[some], cells[some])
    _compare_all(nearest, vectors, level, np.concatenate([crowded, np.flatnonzero(counts > FEW)]))
    return nearest


def _crowded(near: Bool) -> Int64:
    """If so many centroids are near that a list of them would be long: the vectors that have more than a few,
    which are taken out."""
    if np.count_nonzero(near) <= FEW * len(near):
        return np.zeros(0, np.int64)
    crowded = np.flatnonzero(near.sum(axis=1) > FEW)
    _only_first(near, crowded)
    return crowded


def _only_first(near: Bool, lines: Int64) -> None:
    near[lines], near[lines, :1] = False, True


def _compare_all(nearest: Int64, vectors: Float32, level: _Level, lines: Int64) -> None:
    for part in blocks(len(lines), EXACT_BYTES * len(level.centroids)) if len(lines) else ():
        unit = on_grid(normalised(vectors[lines[part]]))
        nearest[lines[part]] = (unit @ level.grid.T).argmax(axis=1)


def _compare_few(nearest: Int64, vectors: Float32, centroids: Float32, rows: Int64, cells: Int64) -> None:
    """Writes the best of each row's cells. They are written worst first, so that the best one stays."""
    parts = [slice(first, first + PAIRS) for first in range(0, len(rows), PAIRS)]
    exact = [exact_cosines_by_row(normalised(vectors[rows[p]]), centroids[cells[p]]) for p in parts]
    order = np.lexsort((-cells, np.concatenate([np.zeros(0), *exact])))
    nearest[rows[order]] = cells[order]
