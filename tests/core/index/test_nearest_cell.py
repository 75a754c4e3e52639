"""Cells by exact cosines, where float32 cannot tell centroids apart."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.index import nearest_cell
from mudg_core.index import vectors as unit_vectors
from mudg_core.index.exact import exact_cosines
from mudg_core.index.nearest_cell import assign
from mudg_core.index.vectors import normalised
from tests.core.index.making import Float32, sphere


def exactly(vectors: Float32, centroids: Float32) -> list[int]:
    cosines = exact_cosines(normalised(vectors), centroids)
    return [int(np.flatnonzero(line == line.max())[0]) for line in cosines]


@pytest.mark.parametrize("rows", [1, 7, 1024])
@pytest.mark.parametrize("longest", [1.0, 1.9])
def test_every_cell_is_that_of_exact_cosines(
    rows: int, longest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest_cell, "ROWS", rows)
    vectors, centroids = np.float32(longest) * sphere(300, 40), sphere(20, 40, seed=1)
    assert assign(vectors, centroids, longest).tolist() == exactly(vectors, centroids)


@pytest.mark.parametrize("few", [1, 3, 16, 99])
def test_equal_and_nearly_equal_centroids(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each centroid three times, twice of it in the same bits and once a last bit away."""
    monkeypatch.setattr(nearest_cell, "FEW", few)
    monkeypatch.setattr(nearest_cell, "PAIRS", 50)
    once = sphere(8, 515, seed=2)
    twin = np.nextafter(once, np.float32(1))
    centroids, vectors = np.concatenate([twin, once, once]), sphere(400, 515)
    cells = assign(vectors, centroids)
    assert cells.tolist() == exactly(vectors, centroids)
    assert set(cells.tolist()) <= set(range(16)), "of equal centroids the first"
    assert (cells < 8).any() and (cells >= 8).any()


def test_a_vector_of_no_direction_goes_to_the_first_cell() -> None:
    assert assign(np.zeros((3, 8), np.float32), sphere(5, 8)).tolist() == [0, 0, 0]
    assert assign(np.zeros((0, 8), np.float32), sphere(5, 8)).tolist() == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_no_number_goes_there_too_and_moves_no_other(bad: float) -> None:
    """Beside one that two centroids tie for: there are as many candidates as vectors."""
    centroids = sphere(5, 8)
    centroids[3] = centroids[2]
    vectors = np.stack([centroids[4], np.full(8, bad, np.float32), centroids[2], centroids[1]])
    with np.errstate(invalid="ignore"):
        assert assign(vectors, centroids).tolist() == [4, 0, 2, 1]


@pytest.mark.parametrize("block", [1, 20_000, 1 << 27])
def test_crowds_make_one_grid_and_blocks_of_bounded_bytes(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each vector is as near to a hundred equal centroids as to each of them, or to all alike."""
    made: list[int] = []
    real = nearest_cell.on_grid

    def counted(vectors: Float32) -> object:
        made.append(len(vectors))
        return real(vectors)

    monkeypatch.setattr(nearest_cell, "on_grid", counted)
    monkeypatch.setattr(unit_vectors, "BLOCK_BYTES", block)
    centroids = np.repeat(sphere(5, 40, seed=1), 100, axis=0)
    vectors = np.concatenate([sphere(60, 40), np.zeros((3, 40), np.float32)])
    assert assign(vectors, centroids).tolist() == exactly(vectors, centroids)
    assert made.count(500) == 1, "the grid of the centroids"
    assert max(lines for lines in made if lines != 500) <= max(1, block // (8 * 500))
