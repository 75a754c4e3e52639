"""One part of the index from its shards: assign cells, drop what cannot be used, spill, fill.

Each shard is treated alike whenever it arrives, so an index that grew shard by shard equals one built at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mudg_core.encode.shard import EmbeddingShard
from mudg_core.errors import DataError
from mudg_core.index.coarse import Coarse
from mudg_core.index.exact_powers import sums_in_order
from mudg_core.index.kmeans import TILE, squared_distances
from mudg_core.index.nearest_cell import assign
from mudg_core.index.pairs import NEIGHBORS, Pairs
from mudg_core.index.spill import Placement, join, spill
from mudg_core.index.vectors import Float16, Float32, Int64, normalised, normalised_usable

NOWHERE = -1  # the cell of a row that cannot be used
SOME = 64  # every 64th image tells how well the centroids suit a shard


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
    def of(cls, pairs: Pairs, found: Sequence[tuple[Int64, Float32]], first: Int64, sure: Float32) -> Votes:
        """`found` are a text's nearest images in each shard of the part. Those count that would have been
        among its nearest in the training corpus, so that a new shard is treated as an old one."""
        least = np.asarray(pairs.cosines[:, NEIGHBORS - 1 :]).min(axis=1, keepdims=True)
        rows = [np.where(cosines >= least, rows, -1) for rows, cosines in found]
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


def blocks(
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
