"""q(p): the nearest images of every text, exactly, one shard of images at a time.

Paired k-means learns from (text, nearest image) pairs. The search is brute force on purpose: the pairs
decide every centroid, so an approximate answer here would be baked into the index for good.

A cosine here is that of `exact_products.py`, rounded to float32: it depends on its two vectors alone.
Images are ordered by it and then by row. So shards may be searched in any order, in any blocks, on any CPU,
and their neighbours merge into the same bits. Float32 products save most of the work: they nominate the few
images that can be among the nearest, and only these are compared exactly (`nominate.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.errors import DataError, SettingsError
from mudg_core.index.vectors import usable

Float16 = NDArray[np.float16]
Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]

BLOCK_BYTES = 128 << 20
CHECKED = 8192  # texts looked at together


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
    progress: Callable[[float], None] = lambda share: None,
) -> Neighbors:
    """The `keep` nearest images of each text among one shard of images, numbered by `rows`.

    Neither need be unit vectors. Images may be a memory map: a block at a time is read. Rows that have no
    direction (NaN, Inf, norm zero) are never returned. Besides the result, memory is a block of images with
    its scores (`block_bytes`, but at least one tile) and less than as much again.

    Products are float32 or float64, never TF32 or float16. On "cuda" the same code runs on the card's
    tensors; our tests exercise it on "cpu" only.
    """
    from mudg_core.index.nominate import Shard, search  # torch: here, since a run that finds everything made
    # imports this module for `Neighbors` alone

    _check(texts, images, rows, keep)
    order = _by_row(rows)
    shard = Shard(images, order)
    places, cosines = search(texts, shard, keep, device, block_bytes, progress)
    in_order = rows if order is None else rows[order]
    return Neighbors(np.where(places < 0, np.int64(-1), in_order[places]), cosines)


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
        raise SettingsError(what=f"{keep} nearest images of each text asked for", fix="ask for at least one")
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
