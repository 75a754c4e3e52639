"""Adaptive label augmentation (Eq. 4): which descriptors keep the labels of a target apart.

A descriptor such as "which has sharp teeth" pulls the animals among the labels together, and queries made
with it retrieve images of any animal. Its loss counts the clusters of similar labels that it pulls together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.kmeans import assign
from mudg_core.index.vectors import normalised
from mudg_core.target.spec import Target

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Encoder = Callable[[Sequence[str]], Float32]

TEXTS_AT_ONCE = 1024


@dataclass(frozen=True)
class Scored:
    """A descriptor with its loss (clusters it collapses) and the summed rise of their mean cosines."""

    descriptor: str
    loss: int
    rise: float
    collapsed: tuple[int, ...]


@dataclass(frozen=True)
class Clusters:
    """Labels in clusters, those alone in theirs left out: they have nothing to be kept apart from."""

    order: Int64  # labels, cluster by cluster
    starts: Int64  # where each cluster begins in `order`
    sizes: Int64
    numbers: Int64  # what each is called among all clusters

    @classmethod
    def of(cls, assigned: Int64) -> Clusters:
        counts = np.bincount(assigned)
        numbers = np.flatnonzero(counts > 1)
        order = np.argsort(assigned, kind="stable")
        order = order[counts[assigned[order]] > 1]
        sizes = counts[numbers]
        return cls(order, np.cumsum(sizes) - sizes, sizes, numbers)

    def mean_cosines(self, features: Float32) -> Float64:
        """Mean pairwise cosine (diagonal included) in each cluster: the squared norm of its mean.

        `features` are (descriptor, label, dim); the result is (descriptor, cluster). Sums run label by
        label whatever the number of descriptors, so equal features give equal bits.
        """
        if not len(self.numbers):
            return np.zeros((len(features), 0))
        sums = np.add.reduceat(features[:, self.order], self.starts, axis=1, dtype=np.float64)
        means: Float64 = sums / self.sizes[:, None]
        return np.asarray(np.einsum("ijk,ijk->ij", means, means), dtype=np.float64)


def score(
    target: Target, pool: Sequence[str], encode: Encoder, *, label_clusters: int, seed: int
) -> tuple[list[Scored], Int64]:
    """Every descriptor's loss, best first, and the cluster of each label.

    Descriptors stream through the text tower a few at a time: memory is set by TEXTS_AT_ONCE.
    """
    plain = encode(target.prompts())
    assigned = cluster_labels(plain, label_clusters, seed)
    clusters = Clusters.of(assigned)
    before = clusters.mean_cosines(plain[None])
    parts = [clusters.mean_cosines(features) - before for features in _augmented(target, pool, encode)]
    rises = np.concatenate([np.zeros((0, len(clusters.numbers))), *parts])
    losses, summed = (rises > 0).sum(axis=1), rises.sum(axis=1)
    return [
        Scored(pool[i], int(losses[i]), float(summed[i]), tuple(clusters.numbers[rises[i] > 0].tolist()))
        for i in np.lexsort((summed, losses))
    ], assigned


def _augmented(target: Target, pool: Sequence[str], encode: Encoder) -> Iterator[Float32]:
    """Features of all labels with some descriptors; enough texts at once to keep the tower busy."""
    plain = [prompt.removesuffix(".") for prompt in target.prompts()]
    step = max(1, TEXTS_AT_ONCE // len(plain))
    for first in range(0, len(pool), step):
        chunk = pool[first : first + step]
        features = encode([f"{prompt}, {phrase}." for phrase in chunk for prompt in plain])
        yield features.reshape(len(chunk), len(plain), -1)


def cluster_labels(features: Float32, count: int, seed: int, iterations: int = 20) -> Int64:
    """Spherical k-means of label features from a k-means++ start; never more clusters than labels."""
    from sklearn.cluster import kmeans_plusplus  # here: it takes seconds to load

    count = min(count, len(np.unique(features, axis=0)))
    centroids, _ = kmeans_plusplus(features, count, random_state=seed)
    for _ in range(iterations):
        assigned = assign(features, normalised(centroids))
        sums = np.zeros_like(centroids)
        np.add.at(sums, assigned, features)
        empty = np.bincount(assigned, minlength=count) == 0
        centroids = np.where(empty[:, None], centroids, sums)
    return assign(features, normalised(centroids))


def random_choice(pool: Sequence[str], count: int, seed: int) -> list[str]:
    """The random-descriptor baseline."""
    chosen = np.random.default_rng(seed).choice(len(pool), size=min(count, len(pool)), replace=False)
    return [pool[i] for i in chosen]
