"""Costs worth measuring, and a point for each."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.index import ivf, measure
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.search import Searcher
from tests.core.index.making import sphere


def opened(cells: int, routed: bool, rows: int = 200) -> Searcher:
    none, centroids, images = np.zeros(8, np.float32), sphere(cells, 8, seed=1), sphere(rows, 8)
    coarse = Coarse(Centring(none, none), centroids, 5 * centroids, np.zeros(cells, np.float32), routed)
    index = ivf.blank("flat", cells, images[:0])
    return Searcher(coarse, [ivf.populate(index, [(np.arange(rows), coarse.cells_of(images), images)])])


@pytest.mark.parametrize(
    ("cells", "probes"), [(1, [1]), (2, [1, 2]), (5, [1, 2, 4, 5]), (8, [1, 2, 4, 8]), (9, [1, 2, 4, 8, 9])]
)
def test_costs(cells: int, probes: list[int]) -> None:
    assert measure.costs(opened(cells, routed=False)) == [(count, 1.0) for count in probes]
    routed = measure.costs(opened(cells, routed=True))
    assert routed == [*((count, 1.0) for count in probes), *((cells, mass) for mass in measure.MASSES)]


def test_a_point_for_each_cost() -> None:
    searcher, queries = opened(9, routed=True), sphere(40, 8, seed=2)
    truth = np.argsort(-(queries @ sphere(200, 8).T), axis=1)[:, :10]
    asked = [(1, 1.0), (9, 0.5), (9, 1.0)]
    points = measure.curves(searcher, queries, truth, asked, gain=0.7, rerank=0)
    assert [(point.probes, point.mass) for point in points] == asked
    assert points[2].recall_at_10.value == points[2].recall_at_1.value == 1.0
    assert points[2].read == 200 and points[2].share_read == 1.0
    assert points[0].recall_at_10.value < 1 and points[0].share_read < points[1].share_read < 1
