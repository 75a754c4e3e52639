"""One part of the index from its shards: assign cells, drop what cannot be used, spill, fill.

Each shard is treated alike whenever it arrives, so an index that grew shard by shard equals one built at
once. Nothing is trained again, so its cells slowly stop fitting; the objectives of Eq. 3 show it (`drift`).

Query-driven spill: an image also goes into the cells where texts that want it will look first. Training texts
vote: each of the images nearest to a text gets a vote for the text's first cell. The images with the most
votes for a cell that is not their own get a second home there, for a few per cent of storage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mudg_core.encode.shard import EmbeddingShard
from mudg_core.errors import DataError
from mudg_core.index.coarse import Coarse
from mudg_core.index.exact import sums_in_order
from mudg_core.index.kmeans import TILE, squared_distances
from mudg_core.index.nearest_cell import assign
from mudg_core.index.training_data import NEIGHBORS, Pairs
from mudg_core.index.vectors import Float16, Float32, Int64, normalised, normalised_usable

NOWHERE = -1  # the cell of a row that cannot be used
SOME = 64  # every 64th image tells how well the centroids suit a shard
TOLERANCE = 0.10


@dataclass(frozen=True)
class CellsOfShard:
    """The cell of every row of a shard, and how well the centroids suit the shard."""

    rows: Int64
    cells: Int64  # NOWHERE for a row with NaN, infinity or no direction
    kmeans: float  # L_kmeans of Eq. 3 on every 64th image of the shard
    cross_modal: float  # share of these images' captions whose nearest centroid is another

    @property
    def refused(self) -> Int64:
        return np.asarray(self.rows[self.cells == NOWHERE])

    def write(self, folder: Path) -> None:
        np.save(folder / "rows.npy", self.rows)
        np.save(folder / "cells.npy", self.cells.astype(np.int32))

    @staticmethod
    def read(folder: Path) -> Placement:
        rows = np.load(folder / "rows.npy", allow_pickle=False)
        cells = np.load(folder / "cells.npy", allow_pickle=False).astype(np.int64)
        good = cells != NOWHERE
        return Placement(rows[good], cells[good])


def assign_shard(
    coarse: Coarse, shard: EmbeddingShard, progress: Callable[[float], None] = lambda share: None
) -> CellsOfShard:
    """Tile by tile, so that memory does not grow with the shard."""
    if shard.images.shape[1] != coarse.dim:
        raise DataError(
            what=f"a shard of dimension {shard.images.shape[1]} for centroids of dimension {coarse.dim}",
            fix="embed the shard with the model of this index",
        )
    ascending = (shard.rows[1:] > shard.rows[:-1]).all()
    if not ascending and len(np.unique(shard.rows)) != len(shard.rows):
        raise DataError(what="row ids occur more than once in a shard", fix="embed the shard again")
    cells = np.full(len(shard.rows), NOWHERE, dtype=np.int64)
    sampled: list[tuple[Float32, Float16, Int64]] = []
    for first in range(0, len(cells), TILE):
        progress(first / len(cells))
        part = slice(first, first + TILE)
        images, good = normalised_usable(shard.images[part])
        own = coarse.cells_of(images)
        cells[part][good] = own
        some = np.flatnonzero(good)[::SOME]
        sampled.append((images[::SOME].copy(), shard.texts[part][some], own[::SOME]))
    return CellsOfShard(shard.rows, cells, *_misfit(coarse, sampled))


def _misfit(coarse: Coarse, sampled: Sequence[tuple[Float32, Float16, Int64]]) -> tuple[float, float]:
    """Mean squared distance of images from their centroids, and the share of captions that have another one.
    All at once: a search for a handful of captions mostly waits for threads."""
    if not sampled:
        return 0.0, 0.0
    images, texts, own = (np.concatenate(side) for side in zip(*sampled, strict=True))
    captions, good = normalised_usable(texts)
    images, own = coarse.centring.images(images[good]), own[good]
    distance = float(sums_in_order(squared_distances(images, coarse.centroids[own])))
    other = assign(coarse.centring.texts(captions), coarse.centroids) != own
    return distance / max(1, len(own)), float(other.sum()) / max(1, len(own))


@dataclass(frozen=True)
class Votes:
    """What the training texts say about the images of a part: see `spill`."""

    neighbors: Int64
    first: Int64
    sure: Float32

    @classmethod
    def of(cls, pairs: Pairs, nearest: Sequence[tuple[Int64, Float32]], first: Int64, sure: Float32) -> Votes:
        """`nearest` are a text's nearest images in each shard of the part. Those count that would have been
        among its nearest in the training corpus, so that a new shard is treated as an old one."""
        least = np.asarray(pairs.cosines[:, NEIGHBORS - 1 :]).min(axis=1, keepdims=True)
        rows = [np.where(cosines >= least, rows, -1) for rows, cosines in nearest]
        return cls(np.concatenate(rows, axis=1), first, sure)


def plan_part(homes: Sequence[Placement], votes: Votes | None, share: float, removed: Int64) -> Placement:
    """Where every row of a part goes: its own cell, and a second one for the rows most asked for."""
    home = join(homes)
    if len(np.unique(home.rows)) != len(home.rows):
        raise DataError(what="two shards of one index share row ids", fix="give every shard rows of its own")
    kept = ~np.isin(home.rows, removed)
    home = Placement(home.rows[kept], home.cells[kept])
    if votes is None:
        return home
    return spill(home, votes.neighbors, votes.first, votes.sure, share)


def placed_images(
    placement: Placement,
    shards: Sequence[EmbeddingShard],
    progress: Callable[[float], None] = lambda share: None,
) -> Iterator[tuple[Int64, Int64, Float32]]:
    """What goes into a part, shard by shard, for `ivf.populate`."""
    done = 0
    for shard in shards:
        here, lines = shard.places(placement.rows)
        for first in range(0, len(here), TILE):
            part = slice(first, first + TILE)
            chosen = here[part]
            progress(done / len(placement.rows))
            done += len(chosen)
            yield placement.rows[chosen], placement.cells[chosen], normalised(shard.images[lines[part]])


@dataclass(frozen=True)
class Placement:
    """Which rows lie in which cells: `rows[i]` is in `cells[i]`. A spilled row occurs more than once."""

    rows: Int64
    cells: Int64

    def sizes(self, cells: int) -> Int64:
        return np.bincount(self.cells, minlength=cells)

    def homes(self, wanted: Int64) -> Int64:
        """Cells of each wanted row, in a last axis padded with -1; -1 and unknown rows have none."""
        order = np.argsort(self.rows, kind="stable")
        rows, cells = self.rows[order], np.append(self.cells[order], -1)
        first = np.searchsorted(rows, wanted)
        count = np.searchsorted(rows, wanted, side="right") - first
        copies = np.arange(max(1, int(count.max(initial=0))))
        places = np.minimum(first[..., None] + copies, len(rows))
        return np.where(copies < count[..., None], cells[places], -1)


def join(placements: Sequence[Placement]) -> Placement:
    """Those of several shards as one."""
    rows, cells = zip(*((placed.rows, placed.cells) for placed in placements), strict=True)
    return Placement(np.concatenate(rows), np.concatenate(cells))


def spill(home: Placement, neighbors: Int64, first: Int64, sure: Float32, share: float) -> Placement:
    """`home` and at most `share` of its rows once more, those with most votes.

    `neighbors[text]` are the rows that vote for cell `first[text]`, with weight `sure[text]`; -1 votes for
    nothing. Ties go to the lower row and cell, so that the result does not depend on the order of texts.
    """
    most = int(len(home.rows) * share)
    text, place = np.nonzero(np.isin(neighbors, home.rows))
    many = int(first.max(initial=0)) + 1
    votes, inverse = np.unique(neighbors[text, place] * many + first[text], return_inverse=True)
    weight = _exact_sums(inverse, sure[text], len(votes))
    rows, cells = votes // many, votes % many
    foreign = np.flatnonzero((home.homes(rows) != cells[:, None]).all(axis=1))
    chosen = foreign[np.argsort(-weight[foreign], kind="stable")[:most]]
    return Placement(np.concatenate([home.rows, rows[chosen]]), np.concatenate([home.cells, cells[chosen]]))


def _exact_sums(group: Int64, values: Float32, groups: int) -> Int64:
    """In whole millionths: float sums would depend on the order of texts."""
    return np.bincount(group, np.rint(values * 1e6), minlength=groups).astype(np.int64)


@dataclass(frozen=True)
class Drift:
    """Objectives on new shards over those of training; above 1 is worse."""

    kmeans: float
    cross_modal: float
    tolerance: float

    @property
    def retrain(self) -> bool:
        return max(self.kmeans, self.cross_modal) > 1 + self.tolerance

    def __str__(self) -> str:
        """The verdict with its reasons, in one sentence."""
        far = _change(self.kmeans, "farther", "nearer", "as far")
        many = _change(self.cross_modal, "more", "fewer", "as many")
        changes = (
            f"images lie {far} from their centroids (L_kmeans) and "
            f"{many} texts miss the cell of their image (L_cross-modal)"
        )
        allowed = f"the {100 * self.tolerance:g} % allowed"
        verdict = (
            f"beyond {allowed}: train again" if self.retrain else f"within {allowed}: the centroids still fit"
        )
        return f"On the new shards {changes}, {verdict}."


def drift(training: tuple[float, float], new: tuple[float, float], *, tolerance: float = TOLERANCE) -> Drift:
    """Compares (L_kmeans, L_cross-modal) of new shards with those at the end of training."""
    if not all(math.isfinite(value) and value >= 0 for value in (*training, *new)):
        raise DataError(
            what=f"objectives that are neither distances nor shares of texts: {training} in training, "
            f"{new} on new shards",
            fix="embed the new shards again, or train again",
        )
    kmeans, cross_modal = (_ratio(now, then) for now, then in zip(new, training, strict=True))
    return Drift(kmeans, cross_modal, tolerance)


def _ratio(now: float, then: float) -> float:
    """A training set of one point a cell has an objective of nothing, beside which anything is infinite."""
    if then == 0:
        return 1.0 if now == 0 else math.inf
    return now / then


def _change(ratio: float, more: str, less: str, same: str) -> str:
    if math.isinf(ratio):
        return f"infinitely {more}"
    if abs(ratio - 1) < 0.0005:
        return same
    return f"{100 * abs(ratio - 1):.1f} % {more if ratio > 1 else less}"
