"""Clusters of similar labels, and how far apart a descriptor leaves the labels of each (Eq. 4).

Every number that decides something here is the same on every CPU, given the same features. Features and means
are rounded to the grid of `exact_products`, on which float64 sums and products are exact; a square root and a
division round in one way only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.exact_products import exact_cosines, exact_cosines_by_row, on_grid

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

ITERATIONS = 20
SMALLEST = 3  # labels a cluster should have on average: with fewer, most are alone and Eq. 4 is blind


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

    def mean_cosines(self, features: Float64) -> Float64:
        """Mean pairwise cosine (diagonal included) in each cluster: the squared norm of its mean.

        `features` are (descriptor, label, dim), on the grid; the result is (descriptor, cluster).
        """
        if not len(self.numbers):
            return np.zeros((len(features), 0))
        sums = np.add.reduceat(features[:, self.order], self.starts, axis=1)
        means = sums / self.sizes[:, None]
        return exact_cosines_by_row(means, means)


def cluster_labels(features: NDArray[np.floating], most: int, seed: int) -> Int64:
    """The cluster of each label by spherical k-means: at most `most`, and so few that labels share them.

    `most` is the paper's k2, which is meant for hundreds of labels.
    """
    points = on_grid(features)
    count = max(1, min(most, len(points) // SMALLEST, len(np.unique(points, axis=0))))
    centroids = points[_start(points, count, seed)]
    for _ in range(ITERATIONS):
        assigned = _nearest(points, centroids)
        sums = np.zeros_like(centroids)
        np.add.at(sums, assigned, points)
        sizes = np.bincount(assigned, minlength=count)
        centroids = np.where(sizes[:, None] > 0, unit(sums / np.maximum(sizes, 1)[:, None]), centroids)
    return _nearest(points, centroids)


def unit(means: Float64) -> Float64:
    """Vectors of length 1 at most, made so long; one of length zero stays."""
    means = on_grid(means)
    lengths = np.sqrt(exact_cosines_by_row(means, means))
    return on_grid(means / np.where(lengths > 0, lengths, 1)[..., None])


def _nearest(points: Float64, centroids: Float64) -> Int64:
    return np.asarray(exact_cosines(points, centroids).argmax(axis=1), dtype=np.int64)


def _start(points: Float64, count: int, seed: int) -> Int64:
    """k-means++: each further label with a chance that grows with its squared distance from those before."""
    chosen, norms = np.empty(count, dtype=np.int64), exact_cosines_by_row(points, points)
    distance = np.ones(len(points))
    for turn, draw in enumerate(np.random.default_rng(seed).random(count)):
        chances = np.cumsum(distance)
        place = np.searchsorted(chances, draw * chances[-1], side="right")
        here = chosen[turn] = min(int(place), len(points) - 1)
        away = norms + norms[here] - 2 * exact_cosines(points, points[[here]])[:, 0]
        distance = np.minimum(distance, away) if turn else away
    return chosen
