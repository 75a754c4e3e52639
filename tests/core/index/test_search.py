"""Searching parts: each row once, none crowded out, and the same from many parts as from one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mudg_core.index import ivf, search, vectors
from mudg_core.index.coarse import Centring, Coarse
from mudg_core.index.exact import exact_cosines
from mudg_core.index.ivf import Hits
from mudg_core.index.part import Placement
from mudg_core.index.routing import Probing
from mudg_core.index.search import Searcher, merge, read_part, reranked
from mudg_core.index.vectors import normalised
from tests.core.index.making import Float32, Int64, sphere

CELLS, DIM = 6, 16


def level(routed: bool = False) -> Coarse:
    none = np.zeros(DIM, np.float32)
    found = Coarse.unrouted(Centring(none, none), sphere(CELLS, DIM, seed=7))
    return Coarse(found.centring, found.centroids, 4 * found.weights, found.bias, routed)


def part_of(images: Float32, placed: Placement, rows: Int64, code: str = "flat") -> Any:
    """`images[i]` is row `rows[i]`."""
    lines = np.searchsorted(rows, placed.rows)
    index = ivf.blank(code, CELLS, sphere(400, DIM, seed=8))
    return ivf.populate(index, [(placed.rows, placed.cells, images[lines])])


def at_home(images: Float32, rows: Int64) -> Placement:
    return Placement(rows, level().cells_of(images))


def everywhere(images: Float32, rows: Int64, copied: int) -> Placement:
    """The first `copied` rows lie in all cells, the others at home."""
    home = at_home(images, rows)
    cells = np.arange(CELLS)
    return Placement(
        np.concatenate([np.repeat(rows[:copied], CELLS), home.rows[copied:]]),
        np.concatenate([np.tile(cells, copied), home.cells[copied:]]),
    )


def brute_force(queries: Float32, images: Float32, rows: Int64, keep: int) -> list[list[int]]:
    cosines = queries.astype(np.float64) @ images.T.astype(np.float64)
    return [rows[np.argsort(-line, kind="stable")[:keep]].tolist() for line in cosines]


def hits(*lines: list[tuple[int, float]]) -> Hits:
    rows = np.array([[row for row, _ in line] for line in lines])
    return Hits(rows, np.array([[cosine for _, cosine in line] for line in lines], np.float32))


def test_reading_all_cells_is_brute_force() -> None:
    images, queries, rows = sphere(400, DIM), sphere(30, DIM, seed=1), np.arange(400) * 3 + 50
    searcher = Searcher(level(), [part_of(images, at_home(images, rows), rows)])
    found = searcher.search(queries, 12, Probing(CELLS))
    assert found.hits.rows.tolist() == brute_force(queries, images, rows, 12)
    assert (found.read == 400).all() and searcher.images == 400


@pytest.mark.parametrize("copied", [20, 200, 400])
def test_copies_crowd_nothing_out(copied: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If all images are in all cells, 1.4 times as many hits hold a quarter of what was wanted."""
    images, queries, rows = sphere(400, DIM), sphere(30, DIM, seed=1), np.arange(400)
    part = part_of(images, everywhere(images, rows, copied), rows)
    asked: list[int] = []
    real = ivf.read_places

    def counted(part: Any, queries: Float32, cells: Int64, neighbors: int) -> Hits:
        asked.append(neighbors)
        return real(part, queries, cells, neighbors)

    monkeypatch.setattr(search, "read_places", counted)
    found = Searcher(level(), [part], spilled=True).search(queries, 20, Probing(CELLS))
    assert found.hits.rows.tolist() == brute_force(queries, images, rows, 20)
    assert (found.read == 400 + copied * (CELLS - 1)).all()
    assert asked[0] == 33 and asked == [33 * 2**i for i in range(len(asked))]
    assert len(asked) > 1, "otherwise this test tests nothing"


@pytest.mark.parametrize("block", [1, 300_000, 1 << 27])
@pytest.mark.parametrize("many", [1, 3])
def test_equal_images_cost_no_more_memory_than_a_block(
    block: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most images are copies of one, which each query likes: all of them tie with the last hit wanted."""
    images, rows = sphere(1000, DIM), np.arange(1000)
    images[50:] = images[7]
    queries = normalised(images[7] + 0.1 * sphere(20, DIM, seed=1))
    read: list[tuple[int, int]] = []
    real, columns = ivf.read_places, []

    def counted(part: Any, queries: Float32, cells: Int64, neighbors: int) -> Hits:
        read.append((len(queries), neighbors))
        return real(part, queries, cells, neighbors)

    def joined(each: Any) -> Any:
        columns.extend(found.rows.size for found in each)
        return search_joined(each)

    search_joined = search._joined
    monkeypatch.setattr(search, "read_places", counted)
    monkeypatch.setattr(search, "_joined", joined)
    monkeypatch.setattr(vectors, "BLOCK_BYTES", block)
    parts = [part_of(images[own], at_home(images[own], own), own) for own in np.array_split(rows, many)]
    found = Searcher(level(), parts).search(queries, 30, Probing(CELLS), exact=True)
    assert found.hits.rows.tolist() == brute_force(queries, images, rows, 30)
    assert max(asked for _, asked in read) <= 1001, "never more than there is to read, and one"
    assert max(columns) <= max(1001, block // search.HIT_BYTES)
    if block > 1 << 20:
        first = [lines for lines, asked in read if asked == 34]
        assert first == [20] * many, "in one block what fits into one"


def test_queries_of_any_length_are_searched_for_as_unit_vectors() -> None:
    images, queries, rows = sphere(300, DIM), sphere(20, DIM, seed=1), np.arange(300)
    searcher = Searcher(level(), [part_of(images, at_home(images, rows), rows)], images.__getitem__)
    for again in (0, 30):
        unit = searcher.search(queries, 10, Probing(2), again, exact=True)
        scaled = searcher.search(queries * np.float32(16), 10, Probing(2), again, exact=True)
        assert scaled.hits.rows.tolist() == unit.hits.rows.tolist()
        assert scaled.hits.cosines == pytest.approx(unit.hits.cosines, abs=1e-6)


def test_exact_cosines_even_if_there_is_nothing_to_rerank_with() -> None:
    images, queries, rows = sphere(300, DIM), sphere(20, DIM, seed=1), np.arange(300)
    searcher = Searcher(level(), [part_of(images, at_home(images, rows), rows)])
    found = searcher.search(queries, 10, Probing(CELLS), rerank=30, exact=True).hits
    exact = exact_cosines(queries, images).astype(np.float32)
    assert (found.cosines == np.take_along_axis(exact, found.rows, axis=1)).all()


def test_more_wanted_than_there_is_ends() -> None:
    images, queries, rows = sphere(9, DIM), sphere(3, DIM, seed=1), np.arange(9) + 100
    part = part_of(images, everywhere(images, rows, 9), rows)
    cells = np.tile(np.arange(CELLS), (3, 1))
    found = read_part(part, queries, cells, 50, spilled=True)
    assert found.rows[:, :9].tolist() == brute_force(queries, images, rows, 9)
    assert (found.rows[:, 9:] == -1).all() and found.rows.shape == (3, 50)
    nothing = read_part(part, queries, np.full((3, 2), -1), 4, spilled=True)
    assert (nothing.rows == -1).all()


@pytest.mark.parametrize("copied", [0, 150])
@pytest.mark.parametrize("probing", [Probing(2), Probing(CELLS), Probing(5, 0.7, 0.7)])
def test_many_parts_equal_one(copied: int, probing: Probing) -> None:
    images, queries, rows = sphere(300, DIM), sphere(25, DIM, seed=1), np.arange(300)
    placed = everywhere(images, rows, copied)
    whole = Searcher(level(routed=True), [part_of(images, placed, rows)], spilled=copied > 0)
    parts = []
    for first, last in ((0, 40), (40, 41), (41, 300)):
        here = (placed.rows >= first) & (placed.rows < last)
        parts.append(part_of(images, Placement(placed.rows[here], placed.cells[here]), rows))
    one = whole.search(queries, 10, probing)
    many = Searcher(level(routed=True), parts, spilled=copied > 0).search(queries, 10, probing)
    assert many.hits.rows.tolist() == one.hits.rows.tolist()
    assert many.hits.cosines == pytest.approx(one.hits.cosines, abs=1e-6)
    assert many.read.tolist() == one.read.tolist()


def test_vectors_read_are_those_of_the_cells_chosen() -> None:
    images, queries, rows = sphere(300, DIM), sphere(25, DIM, seed=1), np.arange(300)
    searcher = Searcher(level(routed=True), [part_of(images, at_home(images, rows), rows)])
    probing = Probing(4, mass=0.6)
    cells, sizes = searcher.choose(queries, probing), searcher.sizes
    expected = [sum(int(sizes[c]) for c in line if c >= 0) for line in cells.tolist()]
    assert searcher.search(queries, 3, probing).read.tolist() == expected
    assert (cells < 0).any() and len(set(expected)) > 1


def test_merge_takes_the_best_each_row_once_and_of_equals_the_lower() -> None:
    one = hits([(9, 0.5), (4, 0.5), (2, 0.1), (-1, -9.0)])
    two = hits([(3, 0.7), (9, 0.5), (8, 0.1), (-1, -9.0)])
    for parts in ([one, two], [two, one]):
        found = merge(parts, 6)
        assert found.rows.tolist() == [[3, 4, 9, 2, 8, -1]]
        assert found.cosines.tolist() == [[*np.float32([0.7, 0.5, 0.5, 0.1, 0.1]).tolist(), -np.inf]]
        assert merge(parts, 2).rows.tolist() == [[3, 4]]


def test_f53_minus_one_never_beats_a_hit() -> None:
    """faiss pads with the lowest float; whatever a pad's cosine is, it is no hit."""
    found = merge([hits([(-1, 0.9), (-1, 0.8)]), hits([(5, -0.9), (-1, 0.7)])], 4)
    assert found.rows.tolist() == [[5, -1, -1, -1]]
    assert np.isneginf(found.cosines[0, 1:]).all()


@pytest.mark.parametrize("block", [1, 1 << 26])
def test_reranking_gives_the_exact_order(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "RERANK_BYTES", block)
    images, queries, rows = sphere(300, DIM), sphere(20, DIM, seed=1), np.arange(300)
    half = (3 * images).astype(np.float16)  # not of unit length, as some published pools are
    exact = half.astype(np.float32) / np.linalg.norm(half.astype(np.float32), axis=1, keepdims=True)
    part = part_of(images, at_home(images, rows), rows, "sq4")
    searcher = Searcher(level(), [part], fetch=lambda wanted: half[wanted])
    coarse = searcher.search(queries, 10, Probing(CELLS))
    fine = searcher.search(queries, 10, Probing(CELLS), rerank=100)
    truth = brute_force(queries, exact, rows, 10)
    assert fine.hits.rows.tolist() == truth != coarse.hits.rows.tolist()
    expected = np.take_along_axis(queries @ exact.T, np.array(truth), axis=1)
    assert fine.hits.cosines == pytest.approx(expected, abs=1e-5)
    assert fine.read.tolist() == coarse.read.tolist()


def test_without_exact_features_rerank_only_looks_further() -> None:
    images, queries, rows = sphere(100, DIM), sphere(5, DIM, seed=1), np.arange(100)
    searcher = Searcher(level(), [part_of(images, at_home(images, rows), rows)])
    found = searcher.search(queries, 7, Probing(CELLS), rerank=50)
    assert found.hits.rows.tolist() == brute_force(queries, images, rows, 7)


def test_f53_reranking_fetches_no_row_that_was_not_found() -> None:
    """Row 0 may be in no shard: its image could not be decoded, say."""
    images, queries = sphere(4, DIM), sphere(2, DIM, seed=1)
    fetched: list[int] = []

    def fetch(rows: Int64) -> Float32:
        fetched.extend(rows.tolist())
        return images[rows - 10]

    found = reranked(queries, hits([(11, 0.0), (10, 0.0), (-1, -9.0)], [(-1, -9.0)] * 3), fetch)
    assert sorted(fetched) == [10, 11]
    assert sorted(found.rows[0, :2].tolist()) == [10, 11] and found.rows[0, 2] == -1
    assert found.rows[1].tolist() == [-1, -1, -1] and np.isneginf(found.cosines[1]).all()
    nobody = reranked(queries[:0], Hits(np.zeros((0, 3), np.int64), np.zeros((0, 3), np.float32)), fetch)
    assert nobody.rows.shape == (0, 3)


def test_no_query_finds_nothing() -> None:
    images, rows = sphere(50, DIM), np.arange(50)
    searcher = Searcher(level(), [part_of(images, at_home(images, rows), rows)], images.__getitem__)
    for again in (0, 20):
        found = searcher.search(images[:0], 7, Probing(2), again, exact=True)
        assert found.hits.rows.shape == found.hits.cosines.shape == (0, 7) and found.read.shape == (0,)


def test_reranking_is_no_less_precise_after_training(monkeypatch: pytest.MonkeyPatch) -> None:
    images, queries, used = sphere(4, DIM), sphere(2, DIM, seed=1), []
    real = torch.bmm

    def bmm(*tensors: torch.Tensor) -> torch.Tensor:
        used.append(torch.get_float32_matmul_precision())
        return real(*tensors)

    monkeypatch.setattr(torch, "bmm", bmm)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        reranked(queries, hits([(1, 0.0), (0, 0.0)], [(2, 0.0), (3, 0.0)]), images.__getitem__)
        assert used == ["highest"] and torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
