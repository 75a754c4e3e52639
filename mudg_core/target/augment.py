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


def score(
    target: Target, pool: Sequence[str], encode: Encoder, *, label_clusters: int, seed: int
) -> tuple[list[Scored], Int64]:
    """Every descriptor's loss, best first, and the cluster of each label.

    Descriptors stream through the text tower a few at a time: memory is set by TEXTS_AT_ONCE.
    """
    plain = encode(target.prompts())
    clusters = cluster_labels(plain, label_clusters, seed)
    groups = [np.flatnonzero(clusters == number) for number in range(clusters.max() + 1)]
    before = _mean_cosines(plain, groups)
    scored = []
    for descriptor, features in _augmented(target, pool, encode):
        rises = _mean_cosines(features, groups) - before
        collapsed = np.flatnonzero(rises > 0)
        scored.append(Scored(descriptor, len(collapsed), float(rises.sum()), tuple(collapsed.tolist())))
    order = sorted(range(len(pool)), key=lambda i: (scored[i].loss, scored[i].rise, i))
    return [scored[i] for i in order], clusters


def _augmented(target: Target, pool: Sequence[str], encode: Encoder) -> Iterator[tuple[str, Float32]]:
    """Each descriptor with the features of all labels; enough texts at once to keep the tower busy."""
    labels = len(target.classes)
    step = max(1, TEXTS_AT_ONCE // labels)
    for first in range(0, len(pool), step):
        chunk = pool[first : first + step]
        features = encode([target.prompt(label, phrase) for phrase in chunk for label in range(labels)])
        yield from zip(chunk, features.reshape(len(chunk), labels, -1), strict=True)


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


def _mean_cosines(features: Float32, groups: Sequence[Int64]) -> NDArray[np.float64]:
    """Mean pairwise cosine (diagonal included) within each group: the squared norm of the group's mean.

    A group of one label has nothing to keep apart and counts as unchanged.
    """
    cosines = np.zeros(len(groups))
    for number, group in enumerate(groups):
        if len(group) > 1:
            mean = features[group].mean(axis=0, dtype=np.float64)
            cosines[number] = mean @ mean
    return cosines


def random_choice(pool: Sequence[str], count: int, seed: int) -> list[str]:
    """The random-descriptor baseline."""
    chosen = np.random.default_rng(seed).choice(len(pool), size=min(count, len(pool)), replace=False)
    return [pool[i] for i in chosen]
