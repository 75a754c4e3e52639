"""Pseudo-labels: which class a retrieved image belongs to.

By rank and not by cosine, because some labels ("hubs") have text features near to everything and would win
every comparison of cosines; a rank compares an image only with the other images of the same query. Labels by
both are counted on the same hits (`measure_hubness`), so that the report can show what ranks are for.

`pseudo_label` compares only the queries that retrieved an image. It errs where the index missed something: a
query that should have retrieved the image did not, or ranks it too well because better images are missing. In
`label_exactly` the queries search among the candidates again, exhaustively, which also measures that.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import TypeAdapter

from mudg_core.dataset.candidates import Features
from mudg_core.index.neighbors import Neighbors, nearest
from mudg_core.index.vectors import Float32, Int64

UInt64 = NDArray[np.uint64]

COLUMNS = ["row", "label", "query", "rank", "cosine"]
HITS_AT_ONCE = 1 << 20
IMAGES_AT_ONCE = 1 << 15
DEEPER = 4  # times, where a list was too short
HUBNESS = "hubness.json"
HUB = 1.5  # times the even share of images, from which on a label is called a hub
SHOWN = 20  # of the images that most queries retrieved


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


@dataclass(frozen=True)
class ExactLabels:
    """Labels as `pseudo_label` gives them, and how deep every query's list of images had to be."""

    labelled: pa.Table
    depth: int


def label_exactly(hits: pa.Table, queries: Float32, features: Features, neighbors: int) -> ExactLabels:
    """The label of the query that ranks an image best among all candidates; ties as in `pseudo_label`.

    An image among the best `depth` of some query has its best rank there, and whoever ranks it as well has it
    in the list too. So short lists settle nearly all images, and only for the others they grow. Memory is
    bounded by HITS_AT_ONCE and IMAGES_AT_ONCE.
    """
    numbers, first = np.unique(hits.column("query").to_numpy(), return_index=True)
    rows = np.unique(hits.column("row").to_numpy())
    search = _Search(queries[numbers], numbers, hits.column("label").to_numpy()[first], rows, features)
    depth = min(neighbors, len(rows))
    labelled = search.best(rows, depth)
    while depth < len(rows) and len(left := np.setdiff1d(rows, labelled.column("row").to_numpy())):
        depth = min(DEEPER * depth, len(rows))
        labelled = pa.concat_tables([labelled, search.best(left, depth)])
    return ExactLabels(labelled.sort_by("row"), depth)


def relabelled(one: pa.Table, other: pa.Table) -> int:
    """How many images have another label in the second table than in the first; both have the same rows."""
    labels = (table.sort_by("row").column("label").to_numpy() for table in (one, other))
    return int(np.not_equal(*labels).sum())


@dataclass(frozen=True)
class _Search:
    """The queries that have any hits, among the candidates, in the order of their rows."""

    queries: Float32
    numbers: Int64
    labels: Int64
    rows: Int64
    features: Features

    def best(self, wanted: Int64, depth: int) -> pa.Table:
        """Labels of those of the wanted rows that are among the best `depth` of any query."""
        best = pa.table({name: np.zeros(0, np.float32 if name == "cosine" else np.int64) for name in COLUMNS})
        step = max(1, HITS_AT_ONCE // max(1, depth))
        for first in range(0, len(self.numbers), step):
            lines = self._lines(slice(first, first + step), wanted, depth)
            best = pseudo_label(pa.concat_tables([best, lines]), "rank", depth, 0)
        return best

    def _lines(self, part: slice, wanted: Int64, depth: int) -> pa.Table:
        """One line for each rank that some queries give to a wanted row."""
        near = self._nearest(self.queries[part], depth)
        query, place = np.nonzero(np.isin(near.rows, wanted))
        return pa.table(
            {
                "row": near.rows[query, place],
                "label": self.labels[part][query],
                "query": self.numbers[part][query],
                "rank": place.astype(np.int64) + 1,
                "cosine": near.cosines[query, place],
            }
        )

    def _nearest(self, queries: Float32, depth: int) -> Neighbors:
        """The best candidates of some queries, over blocks of candidates."""
        blocks = [self.rows[i : i + IMAGES_AT_ONCE] for i in range(0, len(self.rows), IMAGES_AT_ONCE)]
        parts = (nearest(queries, self.features(rows), rows, depth) for rows in blocks)
        return reduce(Neighbors.merge, parts)


@dataclass(frozen=True)
class Retrieved:
    """An image and how many queries, and how many labels, retrieved it."""

    row: int
    queries: int
    labels: int


@dataclass(frozen=True)
class Hubness:
    """Images for each label by both rules, and which images everybody finds."""

    by_rank: tuple[int, ...]
    by_cosine: tuple[int, ...]
    skew_by_rank: float
    skew_by_cosine: float
    cosine_hubs: tuple[int, ...]  # labels that are hubs by cosine and not by rank
    occurrence_skew: float  # of the number of queries that retrieved an image
    most_retrieved: tuple[Retrieved, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Hubness:
        return TypeAdapter(cls).validate_json(text)


def measure_hubness(hits: pa.Table, labels: int, shown: int = SHOWN) -> Hubness:
    """Of the hits that decide labels; `labels` is how many there are, with images or without."""
    rank, cosine = (_counts(hits, method, labels) for method in ("rank", "cosine"))
    rows, occurrence = np.unique(hits.column("row").to_numpy(), return_counts=True)
    return Hubness(
        by_rank=tuple(rank.tolist()),
        by_cosine=tuple(cosine.tolist()),
        skew_by_rank=skewness(rank),
        skew_by_cosine=skewness(cosine),
        cosine_hubs=tuple(np.flatnonzero(hubs(cosine) & ~hubs(rank)).tolist()),
        occurrence_skew=skewness(occurrence),
        most_retrieved=tuple(_retrieved(hits, rows[np.argsort(-occurrence, kind="stable")[:shown]])),
    )


def hubs(counts: Int64) -> NDArray[np.bool_]:
    """Which labels have far more images than if all had as many."""
    return np.asarray(counts * len(counts) > HUB * counts.sum(), dtype=np.bool_)


def skewness(values: NDArray[np.integer]) -> float:
    """The third standardised moment: 0 for even counts, the higher the more a few stand out."""
    centred = values - np.mean(values) if len(values) else np.zeros(1)
    spread = float(np.mean(centred**2))
    return float(np.mean(centred**3)) / spread**1.5 if spread > 0 else 0.0


def _counts(hits: pa.Table, method: str, labels: int) -> Int64:
    labelled = pseudo_label(hits, method, 0, 0).column("label").to_numpy()
    return np.bincount(labelled, minlength=labels)


def _retrieved(hits: pa.Table, rows: Int64) -> list[Retrieved]:
    some = hits.filter(pa.array(np.isin(hits.column("row").to_numpy(), rows)))
    row, label = some.column("row").to_numpy(), some.column("label").to_numpy()
    return [
        Retrieved(one, int((row == one).sum()), len(np.unique(label[row == one]))) for one in rows.tolist()
    ]
