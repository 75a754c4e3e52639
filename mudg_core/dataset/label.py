"""Pseudo-labels: which class a retrieved image belongs to.

By rank and not by cosine, because some labels ("hubs") have text features near to everything and would win
every comparison of cosines; a rank compares an image only with the other images of the same query.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
Float32 = NDArray[np.float32]

COLUMNS = ["row", "label", "query", "rank", "cosine"]


def pseudo_label(hits: pa.Table, method: str, neighbors: int, seed: int) -> pa.Table:
    """One line an image: row, label, and the query, rank and cosine that explain the label best.

    `rank` (paper): the label of the query that ranks the image best; ties by higher cosine, then lower label.
    `borda` (author-code): the label with the highest sum of (neighbors - position), positions from 0; ties at
    random.
    `cosine`: the label of the query that is nearest.
    """
    row, label, query, rank, cosine = (hits.column(name).to_numpy() for name in COLUMNS)
    if method == "rank":
        keys = [rank, -cosine, label]
    elif method == "cosine":
        keys = [-cosine, rank, label]
    elif method == "borda":
        points = _points_of_own_label(row, label, neighbors - (rank - 1))
        keys = [-points, *_coins(row, label, rank, seed), rank, -cosine]
    else:
        raise ValueError(f"unknown labelling method {method!r}")
    order = np.lexsort((query, *reversed(keys), row))
    return hits.take(pa.array(order[_starts(row[order])])).select(COLUMNS)


def _points_of_own_label(row: Int64, label: Int64, points: Int64) -> Int64:
    """For each hit, the points that its label collects for its row."""
    order = np.lexsort((label, row))
    starts = _starts(row[order]) | _starts(label[order])
    own = np.empty(len(row), dtype=np.int64)
    own[order] = np.cumsum(starts) - 1
    return np.bincount(own, weights=points, minlength=1).astype(np.int64)[own]


def _coins(row: Int64, label: Int64, rank: Int64, seed: int) -> tuple[UInt64, UInt64]:
    """What decides a tie: the seed, the image, and what the label found.

    Not the label's number, so that listing classes in another order changes nothing; that one only decides
    between labels that found the same images at the same ranks, which nothing else can tell apart.
    """
    salt = _mixed(np.array([seed], dtype=np.uint64))
    found = np.zeros(int(label.max(initial=0)) + 1, dtype=np.uint64)
    np.add.at(found, label, _mixed(_mixed(row.astype(np.uint64)) + rank.astype(np.uint64)))
    coin = _mixed(found[label] + _mixed(row.astype(np.uint64) ^ salt))
    return coin, _mixed(label.astype(np.uint64) ^ salt)


def _mixed(numbers: UInt64) -> UInt64:
    """Each number as 64 bits that look random (the finaliser of SplitMix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _starts(values: Int64) -> NDArray[np.bool_]:
    """Where a run of equal values begins."""
    starts = np.ones(len(values), dtype=np.bool_)
    starts[1:] = values[1:] != values[:-1]
    return starts
