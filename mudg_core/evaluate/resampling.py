"""How sure a comparison is: 95 % intervals by a bootstrap over evaluation images and seeds.

Every replicate draws the images of each domain anew, and the seeds, with replacement. All rows of a
comparison get the same draws, so that a difference between two rows is a paired one: an image that is hard
for both does not count as a difference.

Few seeds drawn with replacement vary too little, by a factor of sqrt((n - 1) / n) for n of them. Each
replicate's deviation due to seeds is stretched by the inverse of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Bool = NDArray[np.bool_]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Hits = Mapping[str, Bool]  # domain -> (seeds, images): whether an image was taken for what it is

REPLICATES = 2000
COVERAGE = (2.5, 97.5)  # percentiles
BLOCK_BYTES = 64 << 20


def replicates(rows: Sequence[Hits], seed: int, count: int = REPLICATES) -> Float64:
    """Mean accuracy over domains in percent of each row in each replicate: (rows, count).

    A row has hits of every seed, or of one that stands for all. Sums are of whole numbers, so they are the
    same on every CPU.
    """
    random = np.random.default_rng(seed)
    seeds = max(len(hits) for row in rows for hits in row.values())
    drawn_seeds = random.integers(0, seeds, (count, seeds))
    by_seed = [np.zeros((_seeds(row), count)) for row in rows]
    for domain in rows[0]:
        together = np.concatenate([row[domain] for row in rows])
        means = _resampled_means(together, count, random)
        for row, own in zip(by_seed, _split(means, rows), strict=True):
            row += 100 * own / len(rows[0])
    return np.stack([_over_seeds(row, drawn_seeds) for row in by_seed])


def interval(values: Float64) -> tuple[float, float]:
    """The middle 95 % of replicates."""
    low, high = np.percentile(values, COVERAGE)
    return float(low), float(high)


def _seeds(row: Hits) -> int:
    return len(next(iter(row.values())))


def _resampled_means(hits: Bool, count: int, random: np.random.Generator) -> Float64:
    """Share of hits in each replicate's draw of images: (lines of hits, count)."""
    images = hits.shape[1]
    counted, step = hits.astype(np.float64), max(1, BLOCK_BYTES // (16 * images))
    blocks = [
        counted @ _draws(images, min(step, count - first), random).T / images
        for first in range(0, count, step)
    ]
    return np.concatenate(blocks, axis=1)


def _draws(images: int, count: int, random: np.random.Generator) -> Float64:
    """How often each replicate draws each image."""
    drawn = random.integers(0, images, (count, images)) + np.arange(count)[:, None] * images
    return np.bincount(drawn.ravel(), minlength=count * images).reshape(count, images).astype(np.float64)


def _split(means: Float64, rows: Sequence[Hits]) -> list[Float64]:
    return np.split(means, np.cumsum([_seeds(row) for row in rows])[:-1])


def _over_seeds(by_seed: Float64, drawn_seeds: Int64) -> Float64:
    seeds, count = by_seed.shape
    means = np.asarray(by_seed.mean(axis=0))
    if seeds == 1:
        return means
    drawn = by_seed[drawn_seeds.T, np.arange(count)].mean(axis=0)
    return np.asarray(means + math.sqrt(seeds / (seeds - 1)) * (drawn - means))
