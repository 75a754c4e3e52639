"""Variants of the coarse level, and which of them suits the data at hand.

How much each step gives depends on the data: on loose pairs paired centroids gain little over plain k-means,
and with few texts a cell a router gains little. So a build tries them on tuning queries and takes the one
that reads the fewest vectors for the same recall. Plain k-means is always among them, so the choice is never
worse on those queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.coarse import Coarse
from mudg_core.index.part import Placement
from mudg_core.index.routing import probabilities, size_penalty
from mudg_core.index.vectors import Float32, Int64, blocks

CENTROIDS = ("kmeans", "paired", "centred")  # each has centroids of its own
VARIANTS = (*CENTROIDS, "routed", "spilled")  # simplest first; the last two build on `centred`
RECALL = 0.9
WALK_BYTES = 96  # that a cell takes for each query while they are put in order
MASSES = np.round(1 - np.geomspace(0.7, 1e-4, 48), 6)  # rounded: powers differ in the last bit between CPUs


@dataclass(frozen=True)
class Trial:
    """Share of the images that a query reads on average for a recall of 0.9; None if it is never reached."""

    variant: str
    read_for_recall_at_1: float | None
    read_for_recall_at_10: float | None
    stored: float  # vectors stored for each image
    curve: tuple[tuple[float, float, float], ...]  # (share read, recall@1, recall@10)


def trial(
    variant: str, coarse: Coarse, placement: Placement, queries: Float32, truth: Int64, gain: float
) -> Trial:
    """Which cells would be read is all that counts here: no vector is compared."""
    sizes, homes = placement.sizes(coarse.cells), placement.homes(truth)
    cut = blocks(len(queries), WALK_BYTES * coarse.cells)
    each = [_walk(coarse, sizes, homes[block], queries[block], gain) for block in cut]
    rank, (stops, read) = np.concatenate([w[0] for w in each]), np.concatenate([w[1] for w in each], axis=2)
    images = len(np.unique(placement.rows))
    points = [_point(*at, rank, truth, images) for at in zip(stops, read, strict=True)]
    return Trial(
        variant,
        read_for(points, 1),
        read_for(points, 2),
        len(placement.rows) / images,
        tuple(points),
    )


def choose_variant(trials: Sequence[Trial]) -> Trial:
    """The one that reads least for recall@10, which ten times as many answers decide as recall@1."""
    reached = [trial for trial in trials if trial.read_for_recall_at_10 is not None]
    return min(reached, key=lambda trial: trial.read_for_recall_at_10 or 0.0) if reached else trials[0]


def read_for(points: Sequence[tuple[float, float, float]], which: int) -> float | None:
    """Share read at the wanted recall, between the two points around it."""
    read, recall = np.array([p[0] for p in points]), np.maximum.accumulate([p[which] for p in points])
    if recall[-1] < RECALL:
        return None
    after = int(np.searchsorted(recall, RECALL))
    if after == 0:
        return float(read[0])
    step = (RECALL - recall[after - 1]) / (recall[after] - recall[after - 1])
    return float(read[after - 1] + step * (read[after] - read[after - 1]))


def _walk(coarse: Coarse, sizes: Int64, homes: Int64, queries: Float32, gain: float) -> tuple[Int64, Int64]:
    """At which probe true neighbours are found; and for each stop the cells and the vectors that are read."""
    scores = coarse.scores(queries)
    worth = scores - size_penalty(sizes, gain) if coarse.routed else scores
    order = np.argsort(-worth, axis=1, kind="stable")
    stops = _mass_stops(scores, order) if coarse.routed else _probe_stops(len(queries), coarse.cells)
    read = np.cumsum(sizes[order], axis=1)
    each = [np.take_along_axis(read, stop[:, None] - 1, axis=1)[:, 0] for stop in stops]
    return _first_home(order, homes), np.array([stops, each])


def _first_home(order: Int64, homes: Int64) -> Int64:
    """At which probe each true neighbour is found; a row without a home never is."""
    cells = order.shape[1]
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(cells)[None, :], axis=1)
    probe = np.take_along_axis(place, np.maximum(homes, 0).reshape(len(homes), -1), axis=1)
    return np.asarray(np.where(homes >= 0, probe.reshape(homes.shape), cells).min(axis=2))


def _probe_stops(queries: int, cells: int) -> list[Int64]:
    counts = np.unique(np.geomspace(1, cells, 96).round(6).round().astype(np.int64))
    return [np.full(queries, count) for count in counts]


def _mass_stops(scores: NDArray[np.floating], order: Int64) -> list[Int64]:
    taken = np.take_along_axis(probabilities(scores), order, axis=1)
    before = np.cumsum(taken, axis=1) - taken
    return [(before < mass).sum(axis=1) for mass in MASSES]


def _point(stop: Int64, read: Int64, rank: Int64, truth: Int64, images: int) -> tuple[float, float, float]:
    reached, there = rank < stop[:, None], truth >= 0
    return float(read.mean() / images), float(reached[:, 0].mean()), float(reached[there].mean())
