"""Rank labels to the letter of the paper: ranks counted among all candidates, by every query.

The fast form compares only the queries that retrieved an image. It errs where the index missed something: a
query that should have retrieved the image did not, or ranks it too well because better images are missing.
Here the queries search among the candidates again, exhaustively, which also measures that difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mudg_core.dataset.label import COLUMNS, pseudo_label
from mudg_core.index.neighbors import Neighbors, nearest

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
Features = Callable[[Int64], Float32]  # of corpus rows

HITS_AT_ONCE = 1 << 20
IMAGES_AT_ONCE = 1 << 15
DEEPER = 4


@dataclass(frozen=True)
class ExactLabels:
    """Labels as `pseudo_label` gives them, and how deep every query's list of images had to be."""

    labelled: pa.Table
    depth: int


@dataclass(frozen=True)
class _Asked:
    """The queries that found anything, and the candidates, in the order of their rows."""

    queries: Float32
    numbers: Int64
    labels: Int64
    rows: Int64
    features: Features


def label_exactly(hits: pa.Table, queries: Float32, features: Features, neighbors: int) -> ExactLabels:
    """The label of the query that ranks an image best among all candidates; ties as in `pseudo_label`.

    An image among the best `depth` of some query has its best rank there, and whoever ranks it as well has it
    in the list too. So short lists settle nearly all images, and only for the others they grow. Memory is
    bounded by HITS_AT_ONCE and IMAGES_AT_ONCE.
    """
    numbers, first = np.unique(hits.column("query").to_numpy(), return_index=True)
    rows = np.unique(hits.column("row").to_numpy())
    asked = _Asked(queries[numbers], numbers, hits.column("label").to_numpy()[first], rows, features)
    depth = min(neighbors, len(rows))
    labelled = _best(asked, rows, depth)
    while depth < len(rows) and len(left := np.setdiff1d(rows, labelled.column("row").to_numpy())):
        depth = min(DEEPER * depth, len(rows))
        labelled = pa.concat_tables([labelled, _best(asked, left, depth)])
    return ExactLabels(labelled.sort_by("row"), depth)


def relabelled(one: pa.Table, other: pa.Table) -> int:
    """How many images have another label in the second table than in the first; both have the same rows."""
    labels = (table.sort_by("row").column("label").to_numpy() for table in (one, other))
    return int(np.not_equal(*labels).sum())


def _best(asked: _Asked, wanted: Int64, depth: int) -> pa.Table:
    """Labels of those of the wanted rows that are among the best `depth` of any query."""
    best = pa.table({name: np.zeros(0, np.float32 if name == "cosine" else np.int64) for name in COLUMNS})
    step = max(1, HITS_AT_ONCE // max(1, depth))
    for first in range(0, len(asked.numbers), step):
        part = slice(first, first + step)
        lines = _lines(asked, part, _nearest(asked, part, depth), wanted)
        best = pseudo_label(pa.concat_tables([best, lines]), "rank", depth, 0)
    return best


def _nearest(asked: _Asked, part: slice, depth: int) -> Neighbors:
    """The best candidates of some queries, over blocks of candidates."""
    texts = asked.queries[part]
    found: Neighbors | None = None
    for rows in _blocks(asked.rows):
        near = nearest(texts, asked.features(rows), rows, depth)
        found = near if found is None else found.merge(near)
    assert found is not None
    return found


def _blocks(rows: Int64) -> Iterator[Int64]:
    return (rows[first : first + IMAGES_AT_ONCE] for first in range(0, len(rows), IMAGES_AT_ONCE))


def _lines(asked: _Asked, part: slice, near: Neighbors, wanted: Int64) -> pa.Table:
    """One line for each rank that a query gives to a wanted row."""
    query, place = np.nonzero(np.isin(near.rows, wanted))
    values = {
        "row": near.rows[query, place],
        "label": asked.labels[part][query],
        "query": asked.numbers[part][query],
        "rank": place.astype(np.int64) + 1,
        "cosine": near.cosines[query, place],
    }
    return pa.table(values)
