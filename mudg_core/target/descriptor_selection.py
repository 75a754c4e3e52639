"""Adaptive label augmentation (Eq. 4): which descriptors keep the labels of a target apart.

A descriptor such as "which has sharp teeth" pulls the animals among the labels together, and queries made
with it retrieve images of any animal. Its loss counts the clusters of similar labels that it pulls together.

Many descriptors share the lowest loss, and those that rank first among them are often near-copies
("an advertisement from the 1920s", "from the 1930s"). So near-copies of what is chosen give way to others.

Every number that decides something is the same on every CPU, given the same features: these and their means
are rounded to the grid of `index.exact.on_grid`, on which float64 sums and products are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.exact import exact_cosines, exact_cosines_by_row, on_grid
from mudg_core.index.vectors import Float32, Float64, Int64
from mudg_core.target.spec import Target

Encoder = Callable[[Sequence[str]], Float32]

TEXTS_AT_ONCE = 1024
ITERATIONS = 20
SMALLEST = 3  # labels a cluster should have on average: with fewer, most are alone and Eq. 4 is blind


@dataclass(frozen=True)
class Scored:
    """A descriptor with its loss (clusters it collapses) and the summed rise of the mean cosines."""

    descriptor: str
    loss: int
    rise: float
    collapsed: tuple[int, ...]


@dataclass(frozen=True)
class Ranking:
    """The whole pool, best first, and the cluster of each label.

    `effects` has a unit vector for each descriptor: the direction in which it moves the labels on average.
    """

    scored: tuple[Scored, ...]
    effects: Float32
    assigned: Int64

    def choose(self, count: int, near_copy: float) -> list[str]:
        """The first `count` of the ranking that are no near-copies of ones chosen before.

        A near-copy's effect has a cosine above `near_copy` with that of a chosen one; at 1 there are none.
        Near-copies come last, and only where the pool has nothing else. So a descriptor is passed over for
        one of higher loss only if it is a near-copy.
        """
        kept: list[int] = []
        for place, effect in enumerate(self.effects):
            if len(kept) == count or near_copy >= 1:
                break
            if exact_cosines(effect[None], self.effects[kept]).max(initial=-1) <= near_copy:
                kept.append(place)
        rest = sorted(set(range(len(self.scored))) - set(kept))
        return [self.scored[place].descriptor for place in [*kept, *rest][:count]]


def score(target: Target, pool: Sequence[str], encode: Encoder, *, label_clusters: int, seed: int) -> Ranking:
    """Every descriptor's loss, ties broken by the summed rise and then by the order of the pool.

    Descriptors stream through the text tower a few at a time: memory is set by TEXTS_AT_ONCE. They do so in
    alphabetical order, as what goes through a tower together may change the last bits of its features.
    """
    plain = on_grid(encode(target.prompts()))
    assigned = cluster_labels(plain, label_clusters, seed)
    clusters, dim = Clusters.of(assigned), plain.shape[1]
    before = clusters.mean_cosines(plain[None])
    order = sorted(range(len(pool)), key=pool.__getitem__)
    rises, effects = [np.zeros((0, len(clusters.numbers)))], [np.zeros((0, dim), np.float32)]
    for features in _augmented(target, [pool[place] for place in order], encode):
        rises.append(on_grid(clusters.mean_cosines(features) - before))
        effects.append(_effects(features, plain))
    rise = np.concatenate(rises)
    losses, summed = (rise > 0).sum(axis=1), rise.sum(axis=1)
    ranks = np.lexsort((order, summed, losses))
    scored = tuple(
        Scored(
            pool[order[i]], int(losses[i]), float(summed[i]), tuple(clusters.numbers[rise[i] > 0].tolist())
        )
        for i in ranks
    )
    return Ranking(scored, np.concatenate(effects)[ranks], assigned)


def _augmented(target: Target, pool: Sequence[str], encode: Encoder) -> Iterator[Float64]:
    """Features of all labels with some descriptors; enough texts at once to keep the tower busy."""
    plain = [prompt.removesuffix(".") for prompt in target.prompts()]
    step = max(1, TEXTS_AT_ONCE // len(plain))
    for first in range(0, len(pool), step):
        chunk = pool[first : first + step]
        features = encode([f"{prompt}, {phrase}." for phrase in chunk for prompt in plain])
        yield on_grid(features).reshape(len(chunk), len(plain), -1)


def _effects(features: Float64, plain: Float64) -> Float32:
    """Mean change of the labels, as a unit vector; halved first, as a change can be as long as 2."""
    changes = (features.sum(axis=1) - plain.sum(axis=0)) / (2 * len(plain))
    return unit(changes).astype(np.float32)


def random_choice(pool: Sequence[str], count: int, seed: int) -> list[str]:
    """The random-descriptor baseline."""
    chosen = np.random.default_rng(seed).choice(len(pool), size=min(count, len(pool)), replace=False)
    return [pool[i] for i in chosen]


@dataclass(frozen=True)
class Clusters:
    """Labels in clusters, those alone in theirs left out: they have nothing to be kept apart from."""

    order: Int64  # labels, cluster by cluster
    starts: Int64  # where each cluster begins in `order`
    sizes: Int64
    numbers: Int64  # of the clusters among all

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
