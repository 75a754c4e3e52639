"""k-means on the images of one label: small problems, a thousand times over.

So what counts is the work for one: products of whole matrices, and in each iteration only for the centroids
that have changed, which soon are few. Copies of an image are one point of more weight, so that they share a
cluster. Points and centroids lie on the grid of `index.exact_products`: sums and products are exact, and so
clusters are the same with any BLAS kernel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.exact_products import on_grid
from mudg_core.index.vectors import normalised

Bool = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

ITERATIONS = 50  # at most: images rarely move for so long


def clusters(features: Float32, count: int, random: np.random.Generator) -> Int64:
    """The cluster of each image: `count` of them, or one for each different image if those are fewer.

    No cluster is empty; they are numbered by their first members.
    """
    points, point = _distinct(features)
    if len(points) <= count:
        return point
    weights = np.bincount(point).astype(np.float64)
    return _by_first(_kmeans(on_grid(normalised(points)), weights, count, random)[point])


def _distinct(features: Float32) -> tuple[Float32, Int64]:
    """Different features in the order of their first copies, and which of them each image has."""
    whole = np.ascontiguousarray(features).view(np.dtype((np.void, features.shape[1] * features.itemsize)))
    _, first, copy = np.unique(whole.ravel(), return_index=True, return_inverse=True)
    return features[np.sort(first)], _by_first(copy.ravel())


def _by_first(numbers: Int64) -> Int64:
    """Renumbered from 0 in the order in which numbers first occur."""
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[inverse], dtype=np.int64)


def _kmeans(points: Float64, weights: Float64, count: int, random: np.random.Generator) -> Int64:
    """Lloyd's iterations from a k-means++ start, until nothing moves."""
    centroids = points[_start(points, weights, count, random)]
    scores = np.empty((len(points), count))
    own, stale = np.full(len(points), -1), np.ones(count, dtype=np.bool_)
    for _ in range(ITERATIONS):
        scores[:, stale] = _scores(points, centroids[stale])
        nearest = _none_empty(scores)
        moved = nearest != own
        if not moved.any():
            break
        stale[:] = False
        stale[nearest[moved]] = stale[own[moved]] = True
        own = nearest
        centroids[stale] = _means(points, weights, own, stale)
    return own


def _start(points: Float64, weights: Float64, count: int, random: np.random.Generator) -> Int64:
    """k-means++: each further point with a chance that grows with its squared distance from those before.

    Where the grid cannot tell what is left from what was chosen, a point may come twice; `_none_empty` gives
    the second of it another place.
    """
    draws, chosen = random.random(count), np.empty(count, dtype=np.int64)
    distance = np.full(len(points), 2.0)
    for turn, draw in enumerate(draws):
        chances = np.cumsum(weights * distance)
        place = np.searchsorted(chances, draw * chances[-1], side="right")
        chosen[turn] = min(int(place), len(points) - 1)
        away = 2 - 2 * (points @ points[chosen[turn]])
        distance = np.minimum(distance, np.maximum(away, 0))
        distance[chosen[turn]] = 0
    return chosen


def _scores(points: Float64, centroids: Float64) -> Float64:
    """The higher, the nearer."""
    halves = np.einsum("ij,ij->i", centroids, centroids) / 2
    return np.asarray(points @ centroids.T - halves, dtype=np.float64)


def _none_empty(scores: Float64) -> Int64:
    """The nearest centroid of each point; one without points gets the point that lies worst where it is."""
    nearest = np.asarray(scores.argmax(axis=1), dtype=np.int64)
    counts = np.bincount(nearest, minlength=scores.shape[1])
    for empty in np.flatnonzero(counts == 0):
        best = scores[np.arange(len(scores)), nearest]
        worst = int(np.argmin(np.where(counts[nearest] > 1, best, np.inf)))
        counts[nearest[worst]] -= 1
        nearest[worst], counts[empty] = empty, 1
    return nearest


def _means(points: Float64, weights: Float64, own: Int64, wanted: Bool) -> Float64:
    """Centroids of the wanted clusters, on the grid again."""
    members = np.flatnonzero(wanted[own])
    members = members[np.argsort(own[members], kind="stable")]
    counts = np.bincount(own, minlength=len(wanted))[wanted]
    starts = np.cumsum(counts) - counts
    heavy = weights[members][:, None]
    sums = np.add.reduceat(points[members] * heavy, starts, axis=0)
    return on_grid(sums / np.add.reduceat(heavy, starts))
