"""The faiss index: exact where it should be, honest about what it lacks, and deaf to foreign files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index import ivf, kmeans
from mudg_core.index.pairs import nearest_images
from tests.core.index.making import modality_gap, sphere

CODES = ["flat", "fp16", "sq8", "sq4"]


def test_flat_search_of_all_cells_equals_brute_force() -> None:
    images, queries = sphere(300, 16), sphere(20, 16, seed=1)
    ids = np.random.default_rng(2).permutation(10_000)[:300].astype(np.int64)
    blocks = [(ids[:100], images[:100]), (ids[100:101], images[100:101]), (ids[101:], images[101:])]
    index = ivf.populate(sphere(9, 16, seed=3), blocks, "flat")
    hits = ivf.search(index, queries, neighbors=7, probes=9)
    for query, rows, cosines in zip(queries, hits.rows, hits.cosines, strict=True):
        truth = sorted(((float(query @ image), int(i)) for i, image in zip(ids, images, strict=True)))[::-1]
        assert rows.tolist() == [i for _, i in truth[:7]]
        assert cosines == pytest.approx([cosine for cosine, _ in truth[:7]], abs=1e-5)
    assert (hits.rows.dtype, hits.cosines.dtype) == (np.int64, np.float32)


def test_one_probe_looks_only_into_the_nearest_cell() -> None:
    images, queries, centroids = sphere(200, 8), sphere(10, 8, seed=1), sphere(5, 8, seed=2)
    cell = [int(np.argmax(centroids @ image)) for image in images]
    index = ivf.populate(centroids, [(np.arange(200), images)], "flat")
    hits = ivf.search(index, queries, neighbors=200, probes=1)
    for query, rows in zip(queries, hits.rows, strict=True):
        own = int(np.argmax(centroids @ query))
        assert sorted(row for row in rows.tolist() if row >= 0) == [i for i, c in enumerate(cell) if c == own]


def test_f53_too_few_results_end_in_minus_one() -> None:
    index = ivf.populate(sphere(2, 8), [(np.array([5, 3]), sphere(2, 8, seed=1))], "flat")
    hits = ivf.search(index, sphere(3, 8, seed=2), neighbors=4, probes=100)
    assert [set(rows) for rows in hits.rows[:, :2].tolist()] == [{3, 5}] * 3
    assert (hits.rows[:, 2:] == -1).all()


@pytest.mark.parametrize("code", CODES)
def test_each_code_comes_back_from_disk(code: str, tmp_path: Path) -> None:
    images = sphere(400, 16)
    index = ivf.populate(images[:8], [(np.arange(400) + 1000, images)], code)
    ivf.write(index, tmp_path / "i.faiss")
    loaded = ivf.load(tmp_path / "i.faiss", rows=400, dim=16)
    before, after = (ivf.search(i, images[:50], 5, 8) for i in (index, loaded))
    assert before.rows.tolist() == after.rows.tolist()
    assert before.cosines.tolist() == after.cosines.tolist()
    found_itself = np.mean(after.rows[:, 0] == np.arange(50) + 1000)
    assert found_itself >= {"flat": 1.0, "fp16": 1.0, "sq8": 1.0, "sq4": 0.9}[code]


def test_smaller_codes_make_smaller_files(tmp_path: Path) -> None:
    images, sizes = sphere(1000, 64), []
    for code in CODES:
        index = ivf.populate(images[:4], [(np.arange(1000), images)], code)
        ivf.write(index, tmp_path / code)
        sizes.append((tmp_path / code).stat().st_size)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[3] - 1000 * (64 // 2 + 8) < 4096  # half a byte a dimension and an id


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9])
def test_f50_truncated_index(share: float, tmp_path: Path) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn.faiss"
    ivf.write(ivf.populate(sphere(4, 8), [(np.arange(90), sphere(90, 8))], "flat"), whole)
    torn.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
    with pytest.raises(DataError, match="not a readable index") as caught:
        ivf.load(torn, rows=90, dim=8)
    assert caught.value.where == str(torn)
    assert "index build" in caught.value.fix


def test_f50_garbage_and_missing_index(tmp_path: Path) -> None:
    for number in range(20):
        garbage = tmp_path / f"{number}.faiss"
        garbage.write_bytes(np.random.default_rng(number).bytes(500))
        with pytest.raises(DataError, match="not a readable index") as caught:
            ivf.load(garbage, rows=90, dim=8)
        assert str(garbage) in caught.value.where
    with pytest.raises(DataError):
        ivf.load(tmp_path / "none.faiss", rows=90, dim=8)


@pytest.mark.parametrize(("rows", "dim"), [(89, 8), (90, 9)])
def test_f52_index_is_not_what_its_manifest_says(rows: int, dim: int, tmp_path: Path) -> None:
    file = tmp_path / "i.faiss"
    ivf.write(ivf.populate(sphere(4, 8), [(np.arange(90), sphere(90, 8))], "flat"), file)
    with pytest.raises(DataError, match=f"holds 90 x 8, its manifest says {rows} x {dim}") as caught:
        ivf.load(file, rows=rows, dim=dim)
    assert caught.value.where == str(file)


def test_f42_bad_rows_are_named() -> None:
    images = sphere(9, 8)
    images[2, 3], images[7, 0] = np.nan, np.inf
    with pytest.raises(DataError, match=r"rows \[102, 107\]"):
        ivf.populate(sphere(2, 8), [(np.arange(9) + 100, images)], "flat")


def test_f44_blocks_that_do_not_fit() -> None:
    with pytest.raises(DataError, match="dimension 8"):
        ivf.populate(sphere(2, 8), [(np.arange(9), sphere(9, 7))], "flat")
    with pytest.raises(DataError, match="8 row ids"):
        ivf.populate(sphere(2, 8), [(np.arange(8), sphere(9, 8))], "flat")


@pytest.mark.parametrize("queries", [sphere(3, 7), sphere(3, 8)[0]])
def test_f44_queries_of_another_dimension(queries: ivf.Float32) -> None:
    index = ivf.populate(sphere(2, 8), [(np.arange(9), sphere(9, 8))], "flat")
    with pytest.raises(DataError, match="against an index of dimension 8") as caught:
        ivf.search(index, queries, 2, 1)
    assert "model" in caught.value.fix


def test_recall_at_1() -> None:
    hits = ivf.Hits(rows=np.array([[4, 1], [2, 3], [-1, -1]]), cosines=np.zeros((3, 2), np.float32))
    assert ivf.recall_at_1(hits, np.array([4, 3, 0])) == pytest.approx(1 / 3)


def test_text_queries_find_more_with_paired_centroids() -> None:
    """The paper's claim, in a small world with a modality gap: R@1 of texts at one probe."""
    images, texts = modality_gap(4000)
    training, queries = texts[:3000], texts[3000:]
    nearest, _ = nearest_images(training, [images])
    truth, _ = nearest_images(queries, [images])
    recall = {}
    for name, targets in (("paired", training), ("plain", images[nearest])):
        centroids = kmeans.cluster(images[nearest], targets, cells=32, iterations=10, seed=0).centroids
        index = ivf.populate(centroids, [(np.arange(4000), images)], "flat")
        recall[name] = ivf.recall_at_1(ivf.search(index, queries, 1, probes=1), truth)
        assert ivf.recall_at_1(ivf.search(index, queries, 1, probes=32), truth) > 0.99
    assert recall["paired"] > recall["plain"] + 0.1, recall
