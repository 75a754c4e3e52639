"""q(p) against brute force, and the sampling of training texts."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index.pairs import nearest_images, sample_texts
from tests.core.index.making import Float32, sphere


def brute_force(texts: Float32, images: Float32) -> tuple[list[int], list[float]]:
    rows, cosines = [], []
    for text in texts.astype(np.float64):
        best, best_cosine = -1, -np.inf
        for row, image in enumerate(images.astype(np.float64)):
            cosine = sum(a * b for a, b in zip(text, image, strict=True))
            if cosine > best_cosine:
                best, best_cosine = row, cosine
        rows.append(best)
        cosines.append(best_cosine)
    return rows, cosines


@pytest.mark.parametrize("texts", [5, 40])  # faiss goes two ways, for few and for many queries
@pytest.mark.parametrize("blocks", [1, 3, 7])
def test_equals_brute_force_however_blocked(texts: int, blocks: int) -> None:
    queries, images = sphere(texts, 8, seed=1), sphere(101, 8, seed=2)
    rows, cosines = nearest_images(queries, np.array_split(images, blocks))
    expected, expected_cosines = brute_force(queries, images)
    assert rows.tolist() == expected
    assert cosines == pytest.approx(expected_cosines, abs=1e-6)


@pytest.mark.parametrize("texts", [5, 40])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 60])
def test_equal_images_lower_row_wins(texts: int, blocks: int) -> None:
    base = sphere(12, 8, seed=3)
    images = base[np.random.default_rng(4).integers(0, 12, 60)]
    rows, _ = nearest_images(sphere(texts, 8, seed=5), np.array_split(images, blocks))
    for row in rows.tolist():
        assert row == next(i for i, image in enumerate(images) if (image == images[row]).all())


def test_f44_dimension_mismatch() -> None:
    with pytest.raises(DataError, match="texts have 8 dimensions and images 6"):
        nearest_images(sphere(3, 8), [sphere(5, 8), sphere(5, 6)])


@pytest.mark.parametrize("blocks", [[], [np.zeros((0, 8), np.float32)]])
def test_f47_empty_corpus(blocks: list[Float32]) -> None:
    with pytest.raises(DataError, match="empty"):
        nearest_images(sphere(3, 8), blocks)


def test_f47_an_empty_block_among_others_is_passed_over() -> None:
    images = sphere(10, 8, seed=2)
    empty = np.zeros((0, 8), np.float32)
    rows, _ = nearest_images(sphere(30, 8), [empty, images[:4], empty, images[4:]])
    assert rows.tolist() == brute_force(sphere(30, 8), images)[0]


@pytest.mark.parametrize("texts", [3, 40])
def test_f42_nan_text_gets_no_row_number_that_could_be_a_subscript(texts: int) -> None:
    queries = sphere(texts, 8)
    queries[1, 0] = np.nan
    with pytest.raises(DataError, match=r"texts \[1\]"):
        nearest_images(queries, [sphere(9, 8)])


@pytest.mark.parametrize("most", [1, 7, 29, 30, 1000])
def test_sample_texts(most: int) -> None:
    sizes = [10, 0, 15, 5]
    parts = sample_texts(sizes, most, seed=3)
    assert len(parts) == len(sizes)
    assert sum(len(part) for part in parts) == min(most, 30)
    for part, size in zip(parts, sizes, strict=True):
        assert all(0 <= line < size for line in part)
        assert sorted(set(part.tolist())) == part.tolist()


def test_sample_texts_same_seed_same_lines_and_every_line_has_its_chance() -> None:
    sizes = [10, 15, 5]
    again = [sample_texts(sizes, 12, seed=1) for _ in range(2)]
    assert [part.tolist() for part in again[0]] == [part.tolist() for part in again[1]]
    seen: set[tuple[int, int]] = set()
    for seed in range(60):
        chosen = sample_texts(sizes, 12, seed)
        seen |= {(shard, line) for shard, part in enumerate(chosen) for line in part.tolist()}
    assert seen == {(shard, line) for shard, size in enumerate(sizes) for line in range(size)}
