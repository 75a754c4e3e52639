"""Paired k-means (Algorithm 1 of the paper) and its baseline, spherical k-means on images.

Both assign *images* to cells. They differ in what a cell's centroid is: the mean of the texts paired with
the cell's images (paired), or the mean of the images themselves (plain). Text queries land near text
means, so an index with paired centroids needs fewer probes; how many fewer depends on the data.

However the pairs are spread over shards and workers, and on whatever CPU, a seed gives the same bytes. Two
things make it so. Cells are decided by exact cosines (`nearest_cell.py`). And what is summed lies on a grid
of 2^-26, on which float64 sums are exact, so their order does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mudg_core.errors import DataError
from mudg_core.index.exact import exact_cosines_by_row, on_grid
from mudg_core.index.nearest_cell import assign
from mudg_core.index.vectors import Float32, Float64, Int64, normalised

TILE = 8192  # pairs assigned at once; shards begin at multiples of it, so that all but the last are full
SUMMED = 512  # targets summed at once: their copies stay in the cache
GRID = np.float32(2**26)  # exact in float64 for sums of up to 2^27 vectors
DISTANCE_GRID = 2**24
SAMPLED = 16  # every 16th pair measures the objectives: the cross-modal one costs a second assignment


@dataclass(frozen=True)
class Objectives:
    """Eq. 3 for some centroids."""

    kmeans: float  # mean squared distance of an image from the centroid of its cell
    cross_modal: float  # share of texts whose nearest centroid is not that of their image
    empty_cells: int | None  # not counted for the last centroids, which a sample measures


@dataclass(frozen=True)
class Clustering:
    """Entry i of `history` is of the centroids after i updates. Those of the last ones, which are returned,
    are added at the end: until then there are as many entries as updates."""

    centroids: Float32
    history: tuple[Objectives, ...]


@dataclass(frozen=True)
class PairShard:
    """Some of the training pairs, resident where they are worked on. Row i of both arrays is one pair."""

    images: Float32
    targets: Float32  # the paired texts (Algorithm 1), or the images again (plain k-means)
    # Images and their texts that measure L_cross-modal where targets are no texts: every 16th pair.
    sample: tuple[Float32, Float32] | None = None

    def sampled(self) -> PairShard:
        """What measures the objectives."""
        return PairShard(self.images[::SAMPLED], self.targets[::SAMPLED], self.sample)

    def __post_init__(self) -> None:
        if self.images.shape != self.targets.shape:
            raise DataError(
                what=f"pairs do not match: {self.images.shape} images, {self.targets.shape} texts",
                fix="sample texts and their nearest images together",
            )
        if not (np.isfinite(self.images).all() and np.isfinite(self.targets).all()):
            raise DataError(what="training pairs hold NaN or infinite values", fix="embed the shard again")


@dataclass(frozen=True)
class Partial:
    """What one shard adds to an iteration; adding is exact, so any order of adding gives the same bits."""

    sums: Float64
    counts: Int64
    distance: int  # in units of 1 / DISTANCE_GRID
    measured: int  # images that it is of
    mismatched: int
    compared: int  # texts that it is of

    def __add__(self, other: Partial) -> Partial:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Partial(*(mine + theirs for mine, theirs in pairs))


class Pool(Protocol):
    """Pair shards, wherever they are, that one iteration runs over."""

    def iterate(self, centroids: Float32) -> Partial: ...

    def measure(self, centroids: Float32) -> Partial:
        """The same of a sample, for the objectives alone."""
        ...


class LocalPool:
    """All shards in this process."""

    def __init__(self, shards: Sequence[PairShard]) -> None:
        self.shards = shards

    def iterate(self, centroids: Float32) -> Partial:
        return reduce(Partial.__add__, (partial(shard, centroids) for shard in self.shards))

    def measure(self, centroids: Float32) -> Partial:
        return reduce(Partial.__add__, (measure(shard, centroids) for shard in self.shards))


def cut(pairs: int, most: int) -> list[slice]:
    """At most so many shards, which begin at multiples of a tile: how many does not change a result."""
    tiles = -(-pairs // TILE)
    ends = [min(pairs, TILE * (tiles * shard // most)) for shard in range(most + 1)]
    return [slice(first, end) for first, end in pairwise(ends) if end > first]


def initial(images: NDArray[np.floating], cells: int, seed: int) -> Int64:
    """Which pairs' images the centroids start from."""
    if cells > len(images):
        raise DataError(
            what=f"index.cells is {cells}, but there are only {len(images)} training pairs",
            where="index.cells",
            fix="lower index.cells or add corpus rows",
        )
    return np.sort(np.random.default_rng(seed).choice(len(images), size=cells, replace=False))


def train(
    pool: Pool,
    start: Clustering,
    iterations: int,
    checkpoint: Callable[[Clustering], None] = lambda _: None,
) -> Clustering:
    """Goes on from `start` (random images, or a checkpoint) until `iterations` are done."""
    state = start
    for _ in range(len(start.history), iterations):
        total = pool.iterate(state.centroids)
        state = Clustering(update(state.centroids, total), (*state.history, objectives(total)))
        checkpoint(state)
    if len(state.history) > iterations:
        return state
    last = replace(objectives(pool.measure(state.centroids)), empty_cells=None)
    return Clustering(state.centroids, (*state.history, last))


def cluster(images: Float32, targets: Float32, cells: int, iterations: int, seed: int) -> Clustering:
    """All of it in this process: centroids in the space of `targets`, for cells made of `images`."""
    pool = LocalPool([PairShard(images, targets)])
    return train(pool, Clustering(images[initial(images, cells, seed)], ()), iterations)


def single_on_grid(vectors: Float32) -> Float32:
    """Rounded to multiples of 2^-26, as float32: a thousandth of what half precision rounds away."""
    return np.asarray(np.rint(vectors * GRID) / GRID, dtype=np.float32)


def partial(shard: PairShard, centroids: Float32, every: int = SAMPLED) -> Partial:
    """Assign and sum, tile by tile; every so many pairs measure the objectives."""
    cells, dim = centroids.shape
    sums, counts = np.zeros((cells, dim)), np.zeros(cells, np.int64)
    distance = measured = mismatched = compared = 0
    for first in range(0, len(shard.images), TILE):
        images, targets = shard.images[first : first + TILE], shard.targets[first : first + TILE]
        assigned = assign(images, centroids)
        _add_by_cell(sums, targets, assigned)
        counts += np.bincount(assigned, minlength=cells)
        some = assigned[::every]
        distance += _squared_distance(images[::every], centroids[some])
        measured += len(some)
        if shard.sample is None:
            mismatched += int((assign(targets[::every], centroids) != some).sum())
            compared += len(some)
    for first in range(0, len(shard.sample[0]) if shard.sample else 0, TILE):
        cell, own = (assign(side[first : first + TILE], centroids) for side in shard.sample or ())
        mismatched += int((cell != own).sum())
        compared += len(own)
    return Partial(sums, counts, distance, measured, mismatched, compared)


def measure(shard: PairShard, centroids: Float32) -> Partial:
    """Of the sample alone."""
    return partial(shard.sampled(), centroids, every=1)


def _squared_distance(images: Float32, centroids: Float32) -> int:
    """Summed in whole units, so that tiles and shards add up exactly."""
    distances = squared_distances(images, centroids)
    return int(np.rint(distances * DISTANCE_GRID).astype(np.int64).sum())


def squared_distances(images: Float32, centroids: Float32) -> Float64:
    """Of each unit vector from the one in the same place: by three exact products, so the same everywhere."""
    lengths = exact_cosines_by_row(images, images) + exact_cosines_by_row(centroids, centroids)
    return np.asarray(lengths - 2 * exact_cosines_by_row(images, centroids), dtype=np.float64)


def _add_by_cell(sums: Float64, targets: Float32, assigned: Int64) -> None:
    """Adds each target to its cell's sum; only cells that occur are touched."""
    from scipy.sparse import csr_matrix  # slow to import, and a search needs this module too

    for first in range(0, len(targets), SUMMED):
        part = slice(first, first + SUMMED)
        filled, column = np.unique(assigned[part], return_inverse=True)
        shape = len(column), len(filled)
        membership = csr_matrix((np.ones(len(column)), column, np.arange(len(column) + 1)), shape)
        sums[filled] += np.asarray(membership.T @ on_grid(targets[part]))


def objectives(total: Partial) -> Objectives:
    return Objectives(
        kmeans=total.distance / DISTANCE_GRID / total.measured,
        cross_modal=total.mismatched / total.compared,
        empty_cells=int((total.counts == 0).sum()),
    )


def update(centroids: Float32, total: Partial) -> Float32:
    """Mean of each cell's targets, normalised; an empty cell takes over half of the largest one."""
    counts = total.counts[:, None]
    means = np.where(counts > 0, total.sums / np.maximum(counts, 1), centroids)
    return _split_for_empty(normalised(means.astype(np.float32)), total.counts)


def _split_for_empty(centroids: Float32, counts: Int64) -> Float32:
    """Each empty cell becomes a twin of the largest cell left, nudged apart so that both keep half.

    Each twin is nudged along another pattern of dimensions: nudges commute, so with one pattern the
    second generation would hold equal centroids, of which all but one stay empty.
    """
    counts, dim = counts.copy(), centroids.shape[1]
    for turn, empty in enumerate(np.flatnonzero(counts == 0)):
        pattern = np.arange(dim) >> turn % max(1, (dim - 1).bit_length()) & 1
        nudge = np.where(pattern == 0, 1 + 1 / 1024, 1 - 1 / 1024).astype(np.float32)
        largest = int(np.argmax(counts))
        centroids[empty] = centroids[largest] * nudge
        centroids[largest] = centroids[largest] * (2 - nudge)
        counts[empty] = counts[largest] // 2
        counts[largest] -= counts[empty]
    return normalised(centroids)


def as_facts(history: Sequence[Objectives]) -> list[dict[str, Any]]:
    return [asdict(step) for step in history]
