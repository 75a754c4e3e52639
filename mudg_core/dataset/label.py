"""Pseudo-labels: which class a retrieved image belongs to.

By rank and not by cosine, because some labels ("hubs") have text features near to everything and would win
every comparison of cosines; a rank compares an image only with the other images of the same query.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Float32 = NDArray[np.float32]


def pseudo_label(hits: pa.Table, method: str, neighbors: int, seed: int) -> pa.Table:
    """One line an image: row, label, and the query, rank and cosine that explain the label best.

    `rank` (paper): the label of the query that ranks the image best; ties by higher cosine, then lower label.
    `borda` (author-code): the label with the highest sum of (neighbors - rank); ties at random.
    `cosine`: the label of the query that is nearest.
    """
    row, label, rank = (hits.column(name).to_numpy() for name in ("row", "label", "rank"))
    cosine = hits.column("cosine").to_numpy()
    if method == "rank":
        order = np.lexsort((label, -cosine, rank, row))
    elif method == "cosine":
        order = np.lexsort((label, rank, -cosine, row))
    elif method == "borda":
        points = _points_of_own_label(row, label, neighbors - rank)
        coin = np.random.default_rng(seed).permutation(int(label.max(initial=0)) + 1)[label]
        order = np.lexsort((-cosine, rank, coin, -points, row))
    else:
        raise ValueError(f"unknown labelling method {method!r}")
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.diff(row[order]) != 0
    return hits.take(pa.array(order[first])).select(["row", "label", "query", "rank", "cosine"])


def _points_of_own_label(row: Int64, label: Int64, points: Int64) -> Int64:
    """For each hit, the points that its label collects for its row."""
    pairs = np.stack([row, label], axis=1)
    _, group = np.unique(pairs, axis=0, return_inverse=True)
    return np.bincount(group.ravel(), weights=points).astype(np.int64)[group.ravel()]
