"""Exact nearest images: against brute force, and the same bits however the work is cut."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from mudg_core.errors import DataError, SettingsError
from mudg_core.index.neighbors import Int64, Neighbors, nearest
from mudg_core.index.topk import TILE, side_by_side
from tests.core.index.making import Float32, sphere

SMALLEST = 1  # block_bytes: a block is one tile


def brute_force(texts: Float32, images: Any, rows: Int64, keep: int) -> tuple[list[list[int]], Any]:
    """Every cosine in float64, every text sorted whole."""
    images = images.astype(np.float64)
    cosines = texts.astype(np.float64) @ (images / np.linalg.norm(images, axis=1, keepdims=True)).T
    order = np.array([np.lexsort((rows, -of_text))[:keep] for of_text in cosines])
    return rows[order].tolist(), np.take_along_axis(cosines, order, 1)


def bits(found: Neighbors) -> tuple[bytes, bytes]:
    return found.rows.tobytes(), found.cosines.tobytes()


def scattered(count: int, seed: int) -> Int64:
    """Row numbers with gaps, in no order."""
    return np.random.default_rng(seed).permutation(10 * count)[:count].astype(np.int64)


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("keep", [1, 5, 40])
@pytest.mark.parametrize(("texts", "images"), [(1, 50), (30, 1000), (1030, 3 * TILE + 5)])
def test_equals_brute_force(texts: int, images: int, keep: int, kind: type[np.floating]) -> None:
    queries, vectors = sphere(texts, 24, seed=1), (7 * sphere(images, 24, seed=2)).astype(kind)
    rows = scattered(images, seed=3)
    found = nearest(queries, vectors, rows, keep, block_bytes=SMALLEST)
    expected, cosines = brute_force(queries, vectors, rows, keep)
    assert found.cosines == pytest.approx(cosines, abs=1e-6)
    swapped = found.rows != np.array(expected)  # float32 may order two that differ by less than it can tell
    place = np.full(rows.max() + 1, -1)
    place[rows] = np.arange(images)
    unit_images = vectors.astype(np.float64) / np.linalg.norm(
        vectors.astype(np.float64), axis=1, keepdims=True
    )
    exact = np.einsum("td,tkd->tk", queries.astype(np.float64), unit_images[place[found.rows]])
    assert exact == pytest.approx(np.array(cosines), abs=1e-6) and swapped.mean() < 0.01
    assert (found.rows.dtype, found.cosines.dtype) == (np.int64, np.float32)


@pytest.mark.parametrize("order", ["ascending", "descending", "scattered"])
def test_equal_cosines_lower_row_wins(order: str) -> None:
    """Twelve images, each hundreds of times: the best of them fills all places, lowest rows first."""
    kinds = np.random.default_rng(4).integers(0, 12, 2 * TILE + 100)
    images = sphere(12, 8, seed=3)[kinds]
    rows = {"ascending": np.arange(len(kinds)) * 2, "descending": np.arange(len(kinds))[::-1]}.get(
        order, scattered(len(kinds), seed=5)
    )
    queries = sphere(40, 8, seed=6)
    found = nearest(queries, images, rows, 20, block_bytes=SMALLEST)
    for text, of_text in zip(queries, found.rows, strict=True):
        best = np.argmax(sphere(12, 8, seed=3).astype(np.float64) @ text)
        assert of_text.tolist() == np.sort(rows[kinds == best])[:20].tolist()
    assert (found.cosines == found.cosines[:, :1]).all()


def test_zero_has_no_sign() -> None:
    """-0.0 and 0.0 are equal cosines, so the row decides."""
    images = np.array([[-0.0, -1.0], [0.0, 1.0], [-0.0, 1.0]], dtype=np.float32)
    found = nearest(np.array([[1.0, 0.0]], np.float32), images, np.array([2, 1, 0]), 3)
    assert found.rows.tolist() == [[0, 1, 2]]
    assert found.cosines.tobytes() == np.zeros(3, np.float32).tobytes()


@pytest.mark.parametrize("dim", [2, 7, 513, 768])
def test_same_bits_for_any_blocks_shards_order_and_threads(dim: int) -> None:
    texts, images, rows = sphere(TILE + 70, dim, seed=1), sphere(3000, dim, seed=2), np.arange(3000)
    whole = bits(nearest(texts, images, rows, 7))
    assert bits(nearest(texts, images, rows, 7, block_bytes=SMALLEST)) == whole
    shuffled = np.random.default_rng(3).permutation(3000)
    with threads(2):
        assert bits(nearest(texts, images, rows, 7)) == whole
        assert bits(nearest(texts, images[shuffled], rows[shuffled], 7)) == whole
    for cuts in ([1, 2, 1025], [700, 2999]):
        shards = [nearest(texts, images[part], part, 7) for part in np.split(shuffled, cuts)]
        assert bits(reduce(Neighbors.merge, shards)) == whole
    alone = [nearest(texts[part], images, rows, 7) for part in np.split(np.arange(len(texts)), [1, 5])]
    assert b"".join(part.cosines.tobytes() for part in alone) == whole[1]


def test_images_that_get_better_and_better() -> None:
    """The worst case for skipping: every image beats all before it."""
    angles = np.linspace(1.5, 0.0, 3 * TILE)
    images = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    texts = np.tile(np.array([[1.0, 0.0]], np.float32), (300, 1))
    found = nearest(texts, images, np.arange(len(images)), 3, block_bytes=SMALLEST)
    cosines = images / np.linalg.norm(images, axis=1, keepdims=True) @ texts[0]
    assert found.rows.tolist() == [np.lexsort((np.arange(len(images)), -cosines))[:3].tolist()] * 300


def made_up(random: np.random.Generator, first_row: int) -> Neighbors:
    """Few distinct cosines, so that ties abound, and places that stay empty."""
    rows = np.full((50, 4), -1, dtype=np.int64)
    cosines = np.full((50, 4), -np.inf, dtype=np.float32)
    for text in range(50):
        count = random.integers(0, 5)
        values = random.integers(-2, 3, count).astype(np.float32) / 4
        ids = first_row + random.choice(30, count, replace=False)
        order = np.lexsort((ids, -values))
        rows[text, :count], cosines[text, :count] = ids[order], values[order]
    return Neighbors(rows, cosines)


@pytest.mark.parametrize("seed", range(20))
def test_merge_is_associative_and_commutative(seed: int) -> None:
    random = np.random.default_rng(seed)
    one, two, three = (made_up(random, first) for first in random.permutation([0, 100, 200]))
    merged = one.merge(two).merge(three)
    assert bits(one.merge(two.merge(three))) == bits(three.merge(two).merge(one)) == bits(merged)
    for text in range(50):
        pairs = [
            (-cosine, row)
            for part in (one, two, three)
            for cosine, row in zip(part.cosines[text].tolist(), part.rows[text].tolist(), strict=True)
        ]
        assert merged.rows[text].tolist() == [row for _, row in sorted(pairs)[:4]]
        assert merged.cosines[text].tolist() == [-cosine for cosine, _ in sorted(pairs)[:4]]


def test_neighbours_of_other_texts_do_not_merge() -> None:
    one = nearest(sphere(3, 8), sphere(9, 8), np.arange(9), 2)
    for texts, keep in ((4, 2), (3, 1)):
        with pytest.raises(DataError, match="cannot be merged"):
            one.merge(nearest(sphere(texts, 8), sphere(9, 8), np.arange(9), keep))


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_f42_f43_bad_images_are_never_returned(kind: type[np.floating]) -> None:
    images = sphere(TILE + 20, 8, seed=2).astype(kind)
    bad = np.array([0, 3, 4, TILE, TILE + 19])
    images[bad[:3], 1] = np.nan, np.inf, -np.inf
    images[bad[3:]] = 0
    good = np.setdiff1d(np.arange(len(images)), bad)
    found = nearest(sphere(9, 8), images, np.arange(len(images)), len(images))
    assert np.sort(found.rows[:, : len(good)]).tolist() == [good.tolist()] * 9
    assert (found.rows[:, len(good) :] == -1).all()
    only = nearest(sphere(9, 8), images[good], good, len(images))
    assert bits(only) == bits(found)


def test_f42_no_usable_image_at_all() -> None:
    found = nearest(sphere(3, 8), np.zeros((5, 8), np.float32), np.arange(5), 2)
    assert (found.rows == -1).all() and (found.cosines == -np.inf).all()


def test_f53_more_asked_for_than_there_are() -> None:
    found = nearest(sphere(3, 8), sphere(2, 8, seed=1), np.array([9, 4]), 5)
    assert [set(of_text) for of_text in found.rows[:, :2].tolist()] == [{4, 9}] * 3
    assert (found.rows[:, 2:] == -1).all() and (found.cosines[:, 2:] == -np.inf).all()


def test_half_precision_memory_map(tmp_path: Path) -> None:
    images = sphere(2000, 16, seed=2).astype(np.float16)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r", allow_pickle=False)
    found = nearest(sphere(30, 16), mapped, np.arange(2000), 3, block_bytes=SMALLEST)
    assert bits(found) == bits(nearest(sphere(30, 16), images.astype(np.float32), np.arange(2000), 3))


def test_inputs_and_precision_are_left_as_they_were() -> None:
    texts, images, rows = sphere(9, 8), 2 * sphere(20, 8, seed=1), scattered(20, seed=2)
    before = texts.tobytes(), images.tobytes(), rows.tobytes()
    torch.set_float32_matmul_precision("medium")
    try:
        nearest(texts, images, rows, 2)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    assert (texts.tobytes(), images.tobytes(), rows.tobytes()) == before


def test_products_stay_on_one_thread_until_the_last_search_ends() -> None:
    """Searches overlap on a worker with threads: the first to end must not let go of the limit."""
    with threadpool_limits(limits=2, user_api="blas"):
        with side_by_side("cpu"):
            with side_by_side("cpu"):
                pass
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def memory(field: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) << 10


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="no peak that can be reset")
@pytest.mark.parametrize("alike", [False, True])
def test_memory_is_bounded_by_the_block(alike: bool) -> None:
    """Also where all images are one, and every score is as good as the best."""
    count = 48 * TILE
    images = np.ones((count, 256), np.float16) if alike else sphere(count, 256).astype(np.float16)
    texts, rows, block_bytes = sphere(2 * TILE, 256, seed=1), np.arange(len(images)), 32 << 20
    nearest(texts[:9], images[:9], rows[:9], 3)  # what is loaded at the first call is no block
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    nearest(texts, images, rows, 3, block_bytes=block_bytes)
    everything = 4 * len(images) * (256 + len(texts))
    assert memory("VmHWM") - before < 4 * block_bytes < everything


@pytest.mark.parametrize("kind", ["float64", "int64", "uint8", "bool"])
def test_f45_other_types_are_refused(kind: str) -> None:
    vectors = sphere(5, 8)
    with pytest.raises(DataError, match=f"images are {kind}.*not float16 or float32"):
        nearest(vectors, vectors.astype(kind), np.arange(5), 1)
    with pytest.raises(DataError, match=f"texts are {kind}"):
        nearest(vectors.astype(kind), vectors, np.arange(5), 1)


def test_f45_half_precision_texts_are_taken() -> None:
    texts = sphere(5, 8).astype(np.float16)
    one, two = (nearest(t, sphere(9, 8), np.arange(9), 2) for t in (texts, texts.astype(np.float32)))
    assert bits(one) == bits(two)


def test_f44_dimension_mismatch() -> None:
    with pytest.raises(DataError, match="texts have 8 dimensions and images 6"):
        nearest(sphere(3, 8), sphere(5, 6), np.arange(5), 1)
    with pytest.raises(DataError, match=r"shape \(8,\)"):
        nearest(sphere(3, 8)[0], sphere(5, 8), np.arange(5), 1)


def test_f47_nothing_to_search() -> None:
    nothing = np.zeros((0, 8), np.float32)
    with pytest.raises(DataError, match="no image to search among: the corpus is empty"):
        nearest(sphere(3, 8), nothing, np.arange(0), 1)
    with pytest.raises(DataError, match="no text"):
        nearest(nothing, sphere(3, 8), np.arange(3), 1)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_f42_bad_texts_are_named(value: float) -> None:
    texts = sphere(TILE + 9, 8)
    texts[[1, TILE + 2], 0] = value
    with pytest.raises(DataError, match=rf"texts \[1, {TILE + 2}\] have no nearest image: NaN"):
        nearest(texts, sphere(9, 8), np.arange(9), 1)


def test_f49_duplicate_rows() -> None:
    with pytest.raises(DataError, match=r"rows \[4\] occur more than once"):
        nearest(sphere(3, 8), sphere(4, 8), np.array([4, 7, 1, 4]), 1)


@pytest.mark.parametrize("rows", [np.arange(3), np.arange(8).reshape(4, 2), np.array([-1, 0, 1, 2])])
def test_row_numbers_that_do_not_fit(rows: Int64) -> None:
    with pytest.raises(DataError, match="row numbers"):
        nearest(sphere(3, 8), sphere(4, 8), rows, 1)


@pytest.mark.parametrize("keep", [0, -1])
def test_keep_nothing(keep: int) -> None:
    with pytest.raises(SettingsError, match="cannot keep"):
        nearest(sphere(3, 8), sphere(4, 8), np.arange(4), keep)
