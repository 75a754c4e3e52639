"""The generated world: the same rows for a seed, of unit length, with a gap between the modalities."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.index.world import DIM, GAP, LOOSE, TIGHT, Looseness, World

Float32 = npt.NDArray[np.float32]
ROWS = 6000  # more than one of the chunks that rows are drawn in


@cache
def world(seed: int = 0, looseness: Looseness = TIGHT) -> World:
    return World(seed, looseness)


def whole(blocks: Iterable[Float32]) -> Float32:
    return np.concatenate(list(blocks))


def test_a_seed_decides_the_rows() -> None:
    again, other = World(0), World(1)
    assert np.array_equal(whole(world().images(ROWS)), whole(again.images(ROWS)))
    assert np.array_equal(whole(world().texts(50)), whole(again.texts(50)))
    assert not np.array_equal(whole(world().images(50)), whole(other.images(50)))


def test_rows_have_unit_length() -> None:
    for blocks in (world().images(300), world().texts(300), world(looseness=LOOSE).images(300)):
        rows = whole(blocks)
        assert rows.shape == (300, DIM) and rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("block", [1000, 4096, 4097])
def test_neither_block_nor_number_of_rows_changes_the_bytes(block: int) -> None:
    blocks = list(world().images(ROWS, block))
    assert max(map(len, blocks)) <= block
    assert whole(blocks).tobytes() == whole(world().images(ROWS + 1000))[:ROWS].tobytes()


def test_sets_of_texts_differ() -> None:
    sets = [whole(world().texts(20, name)) for name in ("training", "tuning", "report")]
    closest = max(float((a @ b.T).max()) for a, b in zip(sets, sets[1:] + sets[:1], strict=True))
    assert closest < 0.999


def test_modalities_lie_apart() -> None:
    images, texts = whole(world().images(2000)), whole(world().texts(2000))
    means = [rows.mean(axis=0) / np.linalg.norm(rows.mean(axis=0)) for rows in (images, texts)]
    assert float(means[0] @ means[1]) == pytest.approx(GAP, abs=0.1)
    nearest_image, nearest_text = (texts @ images.T).max(axis=1), (texts @ texts.T - np.eye(2000)).max(axis=1)
    assert nearest_image.max() < nearest_text.min()


def test_the_loose_world_is_looser() -> None:
    def nearest(looseness: Looseness) -> float:
        one = world(looseness=looseness)
        return float((whole(one.texts(500)) @ whole(one.images(4000)).T).max(axis=1).mean())

    assert nearest(LOOSE) < nearest(TIGHT) - 0.01
