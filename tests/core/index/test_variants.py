"""Trials of variants in a world made by hand, where every rank is known."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.index import vectors
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.part import Placement
from mudg_core.index.variants import MASSES, VARIANTS, Trial, choose_variant, read_for, trial

NONE = Centring(np.zeros(4, np.float32), np.zeros(4, np.float32))
SIZES = (10, 20, 30, 40)  # rows 0-9 are in cell 0, 10-29 in cell 1, and so on
HOME = Placement(np.arange(100), np.repeat(np.arange(4), SIZES))
QUERIES = np.array([[4, 3, 2, 1], [1, 2, 3, 4]], np.float32)  # read cells 0 1 2 3, and 3 2 1 0


def level(routed: bool = False, sharp: float = 1.0) -> Coarse:
    eye = np.eye(4, dtype=np.float32)
    return Coarse(NONE, eye, sharp * eye, np.zeros(4, np.float32), routed)


def truth(*lines: list[int]) -> np.ndarray:
    return np.array([line + [-1] * (10 - len(line)) for line in lines])


def tried(name: str, at_1: float | None, at_10: float | None) -> Trial:
    return Trial(name, at_1, at_10, 1.0, ())


def test_ranks_known_by_hand() -> None:
    """Query 0 has its neighbours in its cells 0 and 1, query 1 in its third and fourth."""
    found = trial("paired", level(), HOME, QUERIES, truth([3, 12], [15, 2]), gain=0.7)
    #        cells: 1                       2                       3                      4
    read = [(10 + 40) / 2 / 100, (30 + 70) / 2 / 100, (60 + 90) / 2 / 100, 1.0]
    assert found.curve == (
        (pytest.approx(read[0]), 0.5, 0.25),
        (pytest.approx(read[1]), 0.5, 0.5),
        (pytest.approx(read[2]), 1.0, 0.75),
        (pytest.approx(read[3]), 1.0, 1.0),
    )
    assert found.read_for_recall_at_1 == pytest.approx(read[1] + 0.8 * (read[2] - read[1]))
    assert found.read_for_recall_at_10 == pytest.approx(read[2] + 0.6 * (read[3] - read[2]))
    assert (found.variant, found.stored) == ("paired", 1.0)


def test_a_second_home_is_found_where_it_comes_first_and_is_paid_for() -> None:
    spilled = Placement(np.append(HOME.rows, [15, 2]), np.append(HOME.cells, [3, 3]))
    found = trial("spilled", level(), spilled, QUERIES, truth([3], [15, 2]), gain=0.0)
    assert found.curve[0] == (pytest.approx((10 + 42) / 2 / 100), 1.0, 1.0)
    assert found.stored == 1.02
    assert found.read_for_recall_at_10 == pytest.approx(0.26)


def test_a_neighbour_without_a_home_is_never_found() -> None:
    """Removed, or refused: reading everything does not find it."""
    found = trial("kmeans", level(), HOME, QUERIES, truth([3, 500], [35, 36]), gain=0.0)
    assert found.curve[-1] == (1.0, 1.0, 0.75)
    assert found.read_for_recall_at_10 is None
    assert found.read_for_recall_at_1 is not None


def test_slots_without_a_neighbour_do_not_count() -> None:
    found = trial("kmeans", level(), HOME, QUERIES, truth([3], [75, 76, 77]), gain=0.0)
    assert found.curve[0][1:] == (1.0, 1.0)


def test_routed_stops_by_mass_and_prefers_small_cells() -> None:
    flat = trial("routed", level(routed=True, sharp=0.0), HOME, QUERIES, truth([3], [4]), gain=1.0)
    assert len(flat.curve) == len(MASSES)
    assert flat.curve[0] == (pytest.approx(0.3), 1.0, 1.0), (
        "equal cells: smallest first, two for a mass of 0.3"
    )
    assert flat.curve[-1] == (1.0, 1.0, 1.0)
    sure = trial("routed", level(routed=True, sharp=60.0), HOME, QUERIES, truth([3], [75]), gain=0.0)
    assert all(point == (pytest.approx(0.25), 1.0, 1.0) for point in sure.curve), "one cell has all the mass"
    unrouted = trial("centred", level(), HOME, QUERIES, truth([3], [4]), gain=1.0)
    assert unrouted.curve[0][1] == 0.5, "gain is for routers only"


@pytest.mark.parametrize("seed", range(5))
def test_a_curve_never_falls_and_ends_with_everything(seed: int) -> None:
    random = np.random.default_rng(seed)
    queries = random.normal(size=(30, 4)).astype(np.float32)
    found = trial("kmeans", level(), HOME, queries, random.integers(0, 100, (30, 10)), gain=0.0)
    assert list(found.curve) == sorted(found.curve)
    assert found.curve[-1] == (1.0, 1.0, 1.0)


def test_read_for_lies_between_two_points() -> None:
    points = [(0.1, 0.5, 0.2), (0.2, 0.8, 0.4), (0.4, 1.0, 0.8)]
    assert read_for(points, 1) == pytest.approx(0.3)
    assert read_for(points, 2) is None, "never reached"
    assert read_for([(0.1, 0.95, 0.0)], 1) == 0.1, "the first point is already good enough"
    assert read_for([(0.1, 0.5, 0.0), (0.2, 0.9, 0.0)], 1) == pytest.approx(0.2)
    dented = [(0.1, 0.7, 0.0), (0.2, 0.6, 0.0), (0.3, 0.95, 0.0)]
    assert read_for(dented, 1) == pytest.approx(0.2 + 0.1 * 0.2 / 0.25), "reading more never finds less"


def test_the_least_read_wins_and_of_equals_the_simplest() -> None:
    trials = [tried("kmeans", 0.3, 0.3), tried("paired", 0.1, 0.2), tried("routed", 0.2, 0.1)]
    assert choose_variant(trials).variant == "routed"
    assert choose_variant(trials[:2]).variant == "paired"
    assert choose_variant([tried("kmeans", 0.5, 0.2), tried("paired", 0.1, 0.2)]).variant == "kmeans"
    assert choose_variant([tried("kmeans", None, 0.2), tried("paired", 0.1, None)]).variant == "kmeans"
    assert choose_variant([tried("kmeans", None, None), tried("paired", 0.9, 0.9)]).variant == "paired"
    assert choose_variant([tried("kmeans", None, None), tried("paired", 0.1, None)]).variant == "kmeans"
    assert choose_variant([tried("kmeans", 0.1, 0.1), tried("paired", 0.0, 0.0)]).variant == "paired"


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_never_worse_than_plain_kmeans(seed: int) -> None:
    random = np.random.default_rng(seed)
    reads = [None if r > 0.8 else float(r) for r in random.random(len(VARIANTS))]
    chosen = choose_variant([tried(v, None, r) for v, r in zip(VARIANTS, reads, strict=True)])
    if reads[0] is not None:
        assert chosen.read_for_recall_at_10 is not None and chosen.read_for_recall_at_10 <= reads[0]


@pytest.mark.parametrize("routed", [False, True])
def test_blocks_of_queries_change_nothing(routed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    queries, rows = random.normal(size=(30, 4)).astype(np.float32), random.integers(0, 100, (30, 10))
    whole = trial("any", level(routed, 3.0), HOME, queries, rows, gain=0.7)
    monkeypatch.setattr(vectors, "BLOCK_BYTES", 3000)
    assert trial("any", level(routed, 3.0), HOME, queries, rows, gain=0.7) == whole
