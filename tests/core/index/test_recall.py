"""How recall is estimated, measured and weighed against what is read."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from mudg_core.errors import DataError
from mudg_core.index import ivf, recall
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.recall import (
    Estimate,
    Point,
    cheapest,
    curve,
    mean_of,
    recall_at,
    share,
    wilson,
)
from mudg_core.index.search import Searcher
from tests.core.index.making import sphere

Int64 = NDArray[np.int64]


def rows(*queries: list[int]) -> Int64:
    return np.array(queries, dtype=np.int64)


def point(read: float, at_1: float, at_10: float = 0.0, probes: int = 1) -> Point:
    return Point(probes, 1.0, Estimate(at_1, 0, 1), Estimate(at_10, 0, 1), read, read / 1000)


@pytest.mark.parametrize(
    ("hits", "queries", "low", "high"),
    [  # by hand: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), with z² = 3.84146
        (90, 100, 0.82563, 0.94477),
        (5, 10, 0.23659, 0.76341),
        (20, 20, 0.83887, 1.0),  # n / (n + z²)
        (0, 10, 0.0, 0.27753),  # z² / (n + z²)
    ],
)
def test_wilson_interval(hits: int, queries: int, low: float, high: float) -> None:
    found = wilson(hits / queries, queries)
    assert found.value == hits / queries
    assert found.low == pytest.approx(low, abs=1e-5)
    assert found.high == pytest.approx(high, abs=1e-5)


def test_interval_of_a_mean_of_shares() -> None:
    found = mean_of(np.array([0.2, 0.4, 0.6, 0.8]))  # deviation 0.258199, over √4, times 1.959964: 0.253030
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.24697, 0.75303), abs=1e-5)
    assert mean_of(np.array([1.0, 1.0, 0.1])).high == 1.0, "clipped"


def test_equal_shares_do_not_pretend_to_be_certain() -> None:
    assert mean_of(np.ones(20)) == wilson(1.0, 20)
    assert mean_of(np.array([0.5])).low < 0.1, "one query says next to nothing"


def test_recall_at_one_is_a_proportion() -> None:
    found = recall_at(rows([3, 1], [9, 4], [5, 6], [7, 8]), rows([3], [4], [5], [7]), 1)
    assert found == wilson(0.75, 4)


def test_recall_at_k_looks_at_the_first_k_of_both() -> None:
    found = recall_at(rows([1, 2, 3, 4], [8, 9, 5, 6]), rows([2, 1, 4], [5, 6, 9]), 2)
    assert found.value == 0.5  # both of the first; none of the second, whose 5 and 6 come third and fourth


def test_missing_hits_and_missing_truth_never_match() -> None:
    assert recall_at(rows([-1, -1]), rows([4, -1]), 2).value == 0.0
    assert recall_at(rows([4, -1]), rows([4, -1]), 2).value == 1.0, "the empty slot does not count"
    found = recall_at(rows([4, -1], [-1, -1], [1, 2]), rows([4, 5], [-1, -1], [2, 1]), 2)
    assert found.value == 0.75, "a query without neighbours is not asked"
    assert found == mean_of(np.array([0.5, 1.0]))


def test_a_row_found_twice_counts_once() -> None:
    assert recall_at(rows([4, 4]), rows([4, 5]), 2).value == 0.5


def test_fewer_hits_than_k_are_misses() -> None:
    assert recall_at(rows([4]), rows([4, 5]), 2).value == 0.5


@pytest.mark.parametrize(
    ("found", "truth", "k"),
    [
        (rows([1]), rows([1], [2]), 1),
        (rows([1, 2]), rows([1]), 2),
        (rows([1]), rows([1]), 0),
        (rows([1]), rows([-1]), 1),
        (np.empty((0, 1), np.int64), np.empty((0, 1), np.int64), 1),
    ],
)
def test_what_cannot_be_measured_is_refused(found: Int64, truth: Int64, k: int) -> None:
    with pytest.raises(DataError) as caught:
        recall_at(found, truth, k)
    assert caught.value.fix


def test_a_curve_has_a_point_for_each_setting() -> None:
    truth = np.arange(20, dtype=np.int64).reshape(2, 10)
    asked = []

    def search(
        queries: NDArray[np.float32], neighbors: int, probes: int, mass: float, /
    ) -> tuple[Int64, Int64]:
        asked.append((len(queries), neighbors, probes, mass))
        found = np.where(np.arange(10) < probes, truth, -1)
        return found, np.array([probes * 10, probes * 30])

    ticking = iter([0.0, 0.5, 1.0, 1.0])
    queries = np.zeros((2, 4), np.float32)
    few, all_ = curve(search, queries, truth, [(5, 0.9), (10, 1.0)], 1000, lambda: next(ticking))
    assert asked == [(2, 10, 5, 0.9), (2, 10, 10, 1.0)]
    assert (few.probes, few.mass, few.read, few.share_read, few.qps) == (5, 0.9, 100.0, 0.1, 4.0)
    assert (few.recall_at_1.value, few.recall_at_10.value) == (1.0, 0.5)
    assert all_.recall(10).value == 1.0
    assert all_.qps is None, "a clock too coarse to see the search"
    with pytest.raises(DataError, match="empty"):
        curve(search, queries, truth, [(1, 1.0)], 0)


def test_points_go_through_json_without_their_clock() -> None:
    made = Point(16, 0.9, wilson(0.9, 100), wilson(0.8, 100), 247.5, 0.0247, qps=1514.0)
    body = json.loads(json.dumps(made.to_json()))
    assert "qps" not in body
    assert Point.from_json(body).to_json() == body
    assert Point.from_json(made.to_json(timed=True)).qps == 1514.0
    assert body["recall_at_1"] == {"value": 0.9, "low": 0.825634, "high": 0.944771}
    assert "16 probes, mass 0.9" in made.cost() and "2.5 % of the gallery" in made.cost()


def test_cheapest_is_the_least_read_that_passes() -> None:
    points = [point(100, 0.95), point(50, 0.90, 0.5), point(20, 0.89), point(50, 0.92, 0.4, probes=2)]
    assert cheapest(points, 0.90, 1) == points[3], "of equal cost, the better"
    assert cheapest(points, 0.5, 10) == points[1]
    assert cheapest(points, 0.96, 1) is None
    assert cheapest([], 0.1, 1) is None


@pytest.mark.parametrize(
    ("of_gallery", "words"),
    [(0.0247, "2.5 %"), (0.000031, "0.0031 %"), (0.02, "2 %"), (0.1, "10 %"), (1.0, "100 %"), (0.0, "0 %")],
)
def test_small_shares_keep_their_digits(of_gallery: float, words: str) -> None:
    assert share(of_gallery) == f"{words} of the gallery"


def opened(cells: int, routed: bool, rows: int = 200) -> Searcher:
    none, centroids, images = np.zeros(8, np.float32), sphere(cells, 8, seed=1), sphere(rows, 8)
    coarse = Coarse(Centring(none, none), centroids, 5 * centroids, np.zeros(cells, np.float32), routed)
    index = ivf.blank("flat", cells, images[:0])
    return Searcher(coarse, [ivf.populate(index, [(np.arange(rows), coarse.cells_of(images), images)])])


@pytest.mark.parametrize(
    ("cells", "probes"), [(1, [1]), (2, [1, 2]), (5, [1, 2, 4, 5]), (8, [1, 2, 4, 8]), (9, [1, 2, 4, 8, 9])]
)
def test_costs(cells: int, probes: list[int]) -> None:
    assert recall.costs(opened(cells, routed=False)) == [(count, 1.0) for count in probes]
    routed = recall.costs(opened(cells, routed=True))
    assert routed == [*((count, 1.0) for count in probes), *((cells, mass) for mass in recall.MASSES)]


def test_a_point_for_each_cost() -> None:
    searcher, queries = opened(9, routed=True), sphere(40, 8, seed=2)
    truth = np.argsort(-(queries @ sphere(200, 8).T), axis=1)[:, :10]
    asked = [(1, 1.0), (9, 0.5), (9, 1.0)]
    points = recall.curves(searcher, queries, truth, asked, gain=0.7, rerank=0)
    assert [(point.probes, point.mass) for point in points] == asked
    assert points[2].recall_at_10.value == points[2].recall_at_1.value == 1.0
    assert points[2].read == 200 and points[2].share_read == 1.0
    assert points[0].recall_at_10.value < 1 and points[0].share_read < points[1].share_read < 1
