"""q(p): the nearest image of every training text, exactly.

Paired k-means learns from (text, nearest image) pairs. The search is brute force on purpose: the pairs
decide every centroid, so an approximate answer here would be baked into the index for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import faiss
import numpy as np
from numpy.typing import NDArray

from mudg_core.errors import DataError

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]


def nearest_images(texts: Float32, image_blocks: Iterable[Float32]) -> tuple[Int64, Float32]:
    """Row number and cosine of each text's nearest image, over blocks of images that stream by.

    Memory is the texts plus one block. Rows are numbered across the blocks in the order they come. On equal
    cosines the lower row wins, whatever the block size, so that blocking never changes a result.
    """
    best_row = np.full(len(texts), -1, dtype=np.int64)
    best_cosine = np.full(len(texts), -np.inf, dtype=np.float32)
    first = 0
    for images in image_blocks:
        if len(images) == 0:
            continue
        if images.shape[1] != texts.shape[1]:
            raise DataError(
                what=f"texts have {texts.shape[1]} dimensions and images {images.shape[1]}",
                fix="embed both with one model",
            )
        cosines, rows = faiss.knn(texts, images, 1, metric=faiss.METRIC_INNER_PRODUCT)
        better = cosines[:, 0] > best_cosine
        best_row[better] = rows[better, 0] + first
        best_cosine[better] = cosines[better, 0]
        first += len(images)
    if first == 0:
        raise DataError(what="no image to search among: the corpus is empty", fix="embed at least one shard")
    if (lost := np.flatnonzero(best_row < 0)).size:
        raise DataError(
            what=f"texts {lost[:10].tolist()} have no nearest image: NaN embeddings",
            fix="embed the shard again",
        )
    return best_row, best_cosine


def sample_texts(shard_sizes: Sequence[int], most: int, seed: int) -> list[Int64]:
    """Which texts of each shard to train on: all, or `most` of them at random."""
    total = sum(shard_sizes)
    chosen = np.arange(total)
    if total > most:
        chosen = np.sort(np.random.default_rng(seed).choice(total, size=most, replace=False))
    ends = np.cumsum(shard_sizes)
    parts = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
    return [part - (end - size) for part, end, size in zip(parts, ends, shard_sizes, strict=True)]
