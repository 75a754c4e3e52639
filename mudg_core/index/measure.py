"""Recall of an opened index over a range of costs, and the cheapest that is good enough."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mudg_core.index.coarse import Probing
from mudg_core.index.recall import Point, curve
from mudg_core.index.search import Searcher
from mudg_core.index.vectors import Float32, Int64

MASSES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 0.995)


def costs(searcher: Searcher) -> list[tuple[int, float]]:
    """(probes, mass) worth measuring: one cell, two, four ... all; with a router also by probability."""
    cells = searcher.coarse.cells
    probes = [1 << power for power in range(cells.bit_length()) if 1 << power < cells] + [cells]
    masses = MASSES if searcher.coarse.routed else ()
    return [*((count, 1.0) for count in probes), *((cells, mass) for mass in masses)]


def curves(
    searcher: Searcher,
    queries: Float32,
    truth: Int64,
    asked: Iterable[tuple[int, float]],
    gain: float,
    rerank: int,
    own: Int64 | None = None,
) -> list[Point]:
    """A point for each cost asked for. `own` are the rows that queries were made of, where they are images of
    the index: a query that finds itself has found nothing."""

    def search(queries: Float32, neighbors: int, probes: int, mass: float, /) -> tuple[Int64, Int64]:
        more = neighbors if own is None else neighbors + 1
        found = searcher.search(queries, more, Probing(probes, mass, gain), rerank)
        rows = found.hits.rows if own is None else others(found.hits.rows, own)
        return rows[:, :neighbors], found.read

    searcher.search(queries[:1], 1, Probing(1))  # what the first search loads is not the first point's time
    return curve(search, queries, truth, asked, searcher.images)


def others(found: Int64, own: Int64) -> Int64:
    """The rows found but a query's own one; the rest move up."""
    itself = found == own[:, None]
    order = np.argsort(itself, axis=1, kind="stable")
    return np.take_along_axis(np.where(itself, -1, found), order, axis=1)
