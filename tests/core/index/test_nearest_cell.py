"""Cells by exact cosines, where float32 cannot tell centroids apart."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.index import nearest_cell
from mudg_core.index.exact_products import exact_cosines
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
