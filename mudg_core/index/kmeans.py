"""Paired k-means (Algorithm 1 of the paper) and its baseline, spherical k-means on images.

Both assign *images* to cells. They differ in what a cell's centroid is: the mean of the texts paired with
the cell's images (paired), or the mean of the images themselves (plain). Text queries land near text
means, so an index with paired centroids finds their images with far fewer probes.
"""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import numpy as np
from numpy.typing import NDArray

from mudg_core.errors import DataError

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Objectives:
    """Eq. 3 at one iteration: mean squared distance from the centroid of its cell."""

    kmeans: float  # of the image
    cross_modal: float  # of the paired text
    empty_cells: int


@dataclass(frozen=True)
class Clustering:
    centroids: Float32
    history: tuple[Objectives, ...]


def cluster(images: Float32, targets: Float32, cells: int, iterations: int, seed: int) -> Clustering:
    """Centroids in the space of `targets`, for cells made of `images`.

    Row i of both arrays is one pair: `targets` are the paired texts (Algorithm 1), or the images again (plain
    k-means). Starts from random rows of the images. An empty cell takes over half of the largest one.
    """
    _check(images, targets, cells)
    random = np.random.default_rng(seed)
    centroids = images[np.sort(random.choice(len(images), size=cells, replace=False))]
    history = []
    for _ in range(iterations):
        assigned = assign(images, centroids)
        history.append(_objectives(images, targets, centroids, assigned))
        centroids = _update(targets, centroids, assigned)
    return Clustering(centroids, tuple(history))


def assign(vectors: Float32, centroids: Float32) -> Int64:
    """The cell of each vector: its nearest centroid by cosine."""
    _, cells = faiss.knn(vectors, centroids, 1, metric=faiss.METRIC_INNER_PRODUCT)
    return np.asarray(cells[:, 0], dtype=np.int64)


def normalised(vectors: NDArray[np.floating]) -> Float32:
    """Unit vectors; a zero vector stays zero."""
    vectors = np.asarray(vectors, dtype=np.float32)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, np.float32(1e-12)), dtype=np.float32)


def _update(targets: Float32, centroids: Float32, assigned: Int64) -> Float32:
    """Mean of each cell's targets, normalised. Sums run in row order, so a seed gives the same bits."""
    cells, dim = centroids.shape
    order = np.argsort(assigned, kind="stable")
    counts = np.bincount(assigned, minlength=cells)
    filled = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])[filled]
    sums = np.zeros((cells, dim), dtype=np.float64)
    sums[filled] = np.add.reduceat(targets[order].astype(np.float64), starts, axis=0)
    centroids = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centroids)
    return _split_for_empty(normalised(centroids.astype(np.float32)), counts)


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


def _objectives(images: Float32, targets: Float32, centroids: Float32, assigned: Int64) -> Objectives:
    own = centroids[assigned]
    return Objectives(
        kmeans=float(np.mean(np.sum((images - own) ** 2, axis=1, dtype=np.float64))),
        cross_modal=float(np.mean(np.sum((targets - own) ** 2, axis=1, dtype=np.float64))),
        empty_cells=int(len(centroids) - len(np.unique(assigned))),
    )


def _check(images: Float32, targets: Float32, cells: int) -> None:
    if images.shape != targets.shape:
        raise DataError(
            what=f"pairs do not match: {images.shape} images, {targets.shape} texts",
            fix="sample texts and their nearest images together",
        )
    if cells > len(images):
        raise DataError(
            what=f"{cells} cells asked for, but only {len(images)} training pairs",
            fix="lower index.cells or add corpus rows",
        )
    if not (np.isfinite(images).all() and np.isfinite(targets).all()):
        raise DataError(what="training pairs hold NaN or infinite values", fix="embed the shard again")
