"""q(p): the nearest images of every text, one shard of images at a time.

Paired k-means learns from (text, nearest image) pairs. The search is brute force on purpose: the pairs
decide every centroid, so an approximate answer here would be baked into the index for good. At the scale of
the paper it is the largest cost of an index; `nearest_through` is for there: a tenth of the texts, searched
exactly, train centroids that find most of the other nearest images for a tenth of the work.

A cosine here is that of `exact.py`, rounded to float32: it depends on its two vectors alone. Images are
ordered by it and then by row. So shards may be searched in any order, in any blocks, on any CPU, and their
neighbours merge into the same bits.

Float32 products save most of the work. One is within `float32_error` of the exact cosine, whatever kernel
made it. So an image that belongs to the `keep` nearest scores at most twice that below the `keep`-th best
float32 score: the margin here. A few places more than `keep` hold all images within it, nearly always, and
only these are compared exactly. Where they do not (many copies of one image, say), the text is compared with
all images exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mudg_core.encode.shard import EmbeddingShard
from mudg_core.errors import DataError, SettingsError
from mudg_core.index.exact import exact_cosines_by_row, float32_error
from mudg_core.index.vectors import BLOCK_BYTES, Bool, Float16, Float32, Int64, blocks, normalised, usable

if TYPE_CHECKING:
    from mudg_core.index.coarse import Coarse
    from mudg_core.index.topk import Each

Vectors = NDArray[np.floating]
Progress = Callable[[float], None]

CHECKED = 8192  # texts looked at together
SPARE = 5  # places nominated beside those that are kept
FEW = 64  # images for each that is kept: with fewer, exact products of all cost less than looking twice
VALUES = 1 << 18  # of images compared again at once: their copies stay in the cache
ROUNDING = 2.0**-25  # of an exact cosine to float32
ADDED = 8192  # images added to an index at once


@dataclass(frozen=True)
class Neighbors:
    """For each text its nearest images, best first; equal cosines by row, lower first."""

    rows: Int64  # (texts, keep), -1 where there were no more
    cosines: Float32  # (texts, keep), -inf there

    def merge(self, other: Neighbors) -> Neighbors:
        """The best of both, which come from shards that share no row. Order and grouping do not matter."""
        if self.rows.shape != other.rows.shape:
            raise DataError(
                what=f"neighbours of shape {self.rows.shape} and {other.rows.shape} cannot be merged",
                fix="search every shard with the same texts and the same number to keep",
            )
        rows = np.concatenate([self.rows, other.rows], axis=1)
        cosines = np.concatenate([self.cosines, other.cosines], axis=1)
        best = np.lexsort((rows, -cosines), axis=1)[:, : self.rows.shape[1]]
        return Neighbors(np.take_along_axis(rows, best, 1), np.take_along_axis(cosines, best, 1))


def nearest(
    texts: Float16 | Float32,
    images: Float16 | Float32,
    rows: Int64,
    keep: int,
    *,
    device: str = "cpu",
    block_bytes: int = BLOCK_BYTES,
    progress: Progress = lambda share: None,
) -> Neighbors:
    """The `keep` nearest images of each text among one shard of images, numbered by `rows`.

    Neither need be unit vectors. Images may be a memory map: a block at a time is read. Rows that have no
    direction (NaN, Inf, norm zero) are never returned. Besides the result, memory is a block of images with
    its scores (`block_bytes`, but at least one tile) and less than as much again.

    Products are float32 or float64, never TF32 or float16. On "cuda" the same code runs on the card's
    tensors; our tests exercise it on "cpu" only.
    """
    from mudg_core.index.topk import best_places, side_by_side  # imports torch, which cached runs do without

    _check(texts, images, rows, keep)
    shard = _Shard(images, rows, _by_row(rows))
    with side_by_side(device) as each:

        def best(texts: Vectors, keep: int, *, exact: bool) -> tuple[Int64, Float32]:
            return best_places(texts, shard, keep, device, block_bytes, each, progress, exact=exact)

        if len(shard) <= FEW * keep:
            return shard.neighbors(*best(texts, keep, exact=True))
        places, scores = best(texts, keep + SPARE, exact=False)
        nominated, unsure = _nominated(scores, keep, texts.shape[1])
        places, cosines = _compared(texts, shard, np.where(nominated, places, -1), keep, each)
        if unsure.any():
            places[unsure], cosines[unsure] = best(texts[unsure], keep, exact=True)
    return shard.neighbors(places, cosines)


def _by_row(rows: Int64) -> Int64 | None:
    """The order that makes rows ascend, so that of equal cosines the first is the one to keep."""
    if (rows[1:] > rows[:-1]).all():
        return None
    order = np.argsort(rows)
    again = np.flatnonzero(rows[order][1:] == rows[order][:-1])
    if again.size:
        raise DataError(
            what=f"rows {rows[order][again[:10]].tolist()} occur more than once in the shard",
            fix="embed the shard again",
        )
    return order


def _check(texts: Float16 | Float32, images: Float16 | Float32, rows: Int64, keep: int) -> None:
    if keep < 1:
        raise SettingsError(what=f"cannot keep {keep} nearest images of each text", fix="keep at least one")
    _check_vectors("texts", texts)
    _check_vectors("images", images)
    if texts.shape[1] != images.shape[1]:
        raise DataError(
            what=f"texts have {texts.shape[1]} dimensions and images {images.shape[1]}",
            fix="embed both with one model",
        )
    if len(images) == 0:
        raise DataError(what="no image to search among: the corpus is empty", fix="embed at least one shard")
    if len(texts) == 0:
        raise DataError(what="no text to search for: the corpus is empty", fix="embed at least one shard")
    if rows.shape != (len(images),) or (rows < 0).any():
        raise DataError(
            what=f"row numbers of shape {rows.shape} for {len(images)} images, or some below zero",
            fix="number every image, from zero up",
        )
    if (lost := _unusable(texts)).size:
        raise DataError(
            what=f"texts {lost[:10].tolist()} have no nearest image: NaN, infinite or zero embeddings",
            fix="embed the shard again",
        )


def _check_vectors(name: str, vectors: Float16 | Float32) -> None:
    """Half and single precision only: the rest would cost a silent conversion, or is no embedding."""
    if vectors.ndim != 2 or vectors.dtype not in (np.float16, np.float32):
        raise DataError(
            what=f"{name} are {vectors.dtype} of shape {vectors.shape}, not float16 or float32 in rows",
            fix="store embeddings as float16 or float32, one row for each",
        )


def _unusable(texts: Float16 | Float32) -> Int64:
    parts = range(0, len(texts), CHECKED)
    return np.flatnonzero(~np.concatenate([usable(texts[part : part + CHECKED]) for part in parts]))


@dataclass(frozen=True)
class _Shard:
    """Images in the order of their rows, so that of equal cosines the first is the one to keep."""

    images: Vectors
    rows: Int64
    order: Int64 | None

    def __len__(self) -> int:
        return len(self.images)

    def read(self, block: slice) -> Vectors:
        return self.images[block] if self.order is None else self.images[self.order[block]]

    def unit(self, places: Int64) -> Float32:
        return normalised(self.images[places if self.order is None else self.order[places]])

    def neighbors(self, places: Int64, cosines: Float32) -> Neighbors:
        rows = self.rows if self.order is None else self.rows[self.order]
        return Neighbors(np.where(places < 0, np.int64(-1), rows[places]), cosines)


def _nominated(scores: Float32, keep: int, dim: int) -> tuple[Bool, Bool]:
    """Which places hold an image that may be among the nearest, and which texts may have more of them."""
    least = scores[:, keep - 1, None].astype(np.float64) - 2 * (float32_error(dim) + ROUNDING)
    nominated = (scores >= least) & (scores > -np.inf)
    return nominated, nominated[:, -1]


def _compared(texts: Vectors, shard: _Shard, places: Int64, keep: int, each: Each) -> tuple[Int64, Float32]:
    """The best of the nominated, by exact cosine and then by place; a place of -1 is nobody."""
    step = max(1, VALUES // (places.shape[1] * texts.shape[1]))
    parts = [slice(first, first + step) for first in range(0, len(texts), step)]
    each_part = each(lambda part: _cosines(texts[parts[part]], shard, places[parts[part]]), range(len(parts)))
    cosines = np.concatenate(list(each_part))
    order = np.lexsort((places, -cosines), axis=1)[:, :keep]
    return np.take_along_axis(places, order, 1), np.take_along_axis(cosines, order, 1)


def _cosines(texts: Vectors, shard: _Shard, places: Int64) -> Float32:
    """Those nominated come first in a line, so that only a few columns hold any."""
    cosines = np.full(places.shape, -np.inf, np.float32)
    used = int((places >= 0).any(axis=0).sum())
    lines = places[:, :used]
    images = shard.unit(lines.ravel()).reshape(*lines.shape, -1)
    exact = exact_cosines_by_row(normalised(texts)[:, None], images)
    cosines[:, :used] = np.where(lines >= 0, exact + 0.0, -np.inf)
    return cosines


def nearest_through(
    guide: Coarse, texts: Float32, shard: EmbeddingShard, keep: int, share: float
) -> Neighbors:
    """The nearest images of a shard that lie in the cells a text reads first, a `share` of all cells."""
    from mudg_core.index.ivf import blank, populate  # imports faiss, which cached runs do without
    from mudg_core.index.part import NOWHERE, assign_shard
    from mudg_core.index.routing import Probing
    from mudg_core.index.search import Searcher

    cells = assign_shard(guide, shard).cells
    good = np.flatnonzero(cells != NOWHERE)
    index = blank("flat", guide.cells, np.zeros((0, guide.dim), np.float32))
    added = (good[first : first + ADDED] for first in range(0, len(good), ADDED))
    populate(index, ((shard.rows[at], cells[at], normalised(shard.images[at])) for at in added))
    probing = Probing(max(1, round(guide.cells * share)))
    searcher = Searcher(guide, [index])
    cut = blocks(len(texts), 16 * (probing.probes + guide.dim))
    hits = [searcher.search(texts[part], keep, probing, exact=True).hits for part in cut]
    return Neighbors(np.concatenate([h.rows for h in hits]), np.concatenate([h.cosines for h in hits]))
