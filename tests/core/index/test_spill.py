"""Second homes, against votes counted in a dictionary."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from mudg_core.index.part import Placement, join, spill
from tests.core.index.making import Float32, Int64

Votes = tuple[Int64, Int64, Float32]


def ints(*values: int) -> Int64:
    return np.array(values, np.int64)


def votes_of(texts: int, rows: int, cells: int, seed: int = 0) -> Votes:
    """Ten neighbours each, some of them -1 or of another part."""
    random = np.random.default_rng(seed)
    neighbors = random.integers(-1, rows + 5, (texts, 10))
    sure = random.choice([0.1, 0.25, 0.3, 0.9], texts).astype(np.float32)  # equal sums occur
    return neighbors, random.integers(0, cells, texts), sure


def by_hand(home: Placement, votes: Votes, share: float) -> list[tuple[int, int]]:
    own = dict(zip(home.rows.tolist(), home.cells.tolist(), strict=True))
    weights: dict[tuple[int, int], int] = defaultdict(int)
    for neighbors, first, sure in zip(*votes, strict=True):
        for row in neighbors.tolist():
            if row in own and own[row] != first:
                weights[row, int(first)] += round(float(sure) * 1e6)
    best = sorted(weights, key=lambda vote: (-weights[vote], vote))
    return best[: int(len(home.rows) * share)]


def extra(found: Placement, home: Placement) -> list[tuple[int, int]]:
    many = len(home.rows)
    assert found.rows[:many].tolist() == home.rows.tolist()
    assert found.cells[:many].tolist() == home.cells.tolist()
    return list(zip(found.rows[many:].tolist(), found.cells[many:].tolist(), strict=True))


def placed(rows: int, cells: int, seed: int = 1) -> Placement:
    random = np.random.default_rng(seed)
    return Placement(random.permutation(rows), random.integers(0, cells, rows))


def test_homes() -> None:
    found = Placement(ints(7, 3, 9, 3, 3), ints(0, 5, 2, 1, 4))
    assert found.homes(ints(3, 7, 8, -1, 100, 0)).tolist() == [
        [5, 1, 4],
        [0, -1, -1],
        [-1, -1, -1],
        [-1, -1, -1],
        [-1, -1, -1],
        [-1, -1, -1],
    ]
    assert found.homes(np.array([[9, 3], [7, -1]])).shape == (2, 2, 3)
    assert found.homes(ints(7, 9)).tolist() == [[0], [2]], "no wider than need be"
    assert found.homes(ints(8)).tolist() == [[-1]]
    assert found.homes(ints()).shape == (0, 1)
    assert found.sizes(7).tolist() == [1, 1, 1, 0, 1, 1, 0]


def test_homes_where_nothing_is_placed() -> None:
    """A shard of which no row can be used, or all were removed."""
    assert Placement(ints(), ints()).homes(ints(4, -1)).tolist() == [[-1], [-1]]


def test_join() -> None:
    found = join([Placement(ints(5, 1), ints(0, 1)), Placement(ints(), ints()), Placement(ints(2), ints(0))])
    assert (found.rows.tolist(), found.cells.tolist()) == ([5, 1, 2], [0, 1, 0])


@pytest.mark.parametrize("share", [0.0, 0.004, 0.1, 0.5, 1.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_votes_are_counted_as_by_hand(share: float, seed: int) -> None:
    home, votes = placed(200, 7), votes_of(300, 200, 7, seed)
    found = extra(spill(home, *votes, share), home)
    assert found == by_hand(home, votes, share)
    assert len(found) <= share * 200
    assert len(found) == int(share * 200) or share > 1


def test_a_row_never_goes_twice_into_a_cell() -> None:
    home, votes = placed(100, 5), votes_of(500, 100, 5)
    found = spill(home, *votes, 50.0)
    assert len(found.rows) > 300
    both = set(zip(found.rows.tolist(), found.cells.tolist(), strict=True))
    assert len(both) == len(found.rows)


def test_ties_go_to_the_lower_row_and_cell() -> None:
    home = Placement(ints(4, 2, 0, 1), ints(0, 0, 0, 0))
    neighbors, first = np.array([[4, 1], [2, 1], [4, 2]]), ints(3, 2, 1)
    found = spill(home, neighbors, first, np.full(3, 0.5, np.float32), 1.0)
    assert extra(found, home) == [(1, 2), (1, 3), (2, 1), (2, 2)]


def test_the_order_of_texts_does_not_matter() -> None:
    home, (neighbors, first, _) = placed(200, 7), votes_of(400, 200, 7)
    sure = np.random.default_rng(8).random(400).astype(np.float32)
    whole = extra(spill(home, neighbors, first, sure, 0.3), home)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(400)
        assert extra(spill(home, neighbors[order], first[order], sure[order], 0.3), home) == whole


def test_without_votes_all_stay_at_home() -> None:
    home = placed(20, 4)
    for neighbors in (np.full((5, 10), -1), np.full((5, 10), 999), np.zeros((0, 10), np.int64)):
        texts = len(neighbors)
        found = spill(home, neighbors, np.zeros(texts, np.int64), np.ones(texts, np.float32), 0.5)
        assert extra(found, home) == []
    nobody = Placement(ints(), ints())
    assert spill(nobody, *votes_of(9, 20, 4), 0.5).rows.tolist() == []
