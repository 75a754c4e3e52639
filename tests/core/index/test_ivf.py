"""A part of the index: exact where it should be, honest about what it lacks, and deaf to foreign files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from mudg_core.errors import DataError
from mudg_core.index import ivf
from mudg_core.index.codes import code_bytes, vector_bytes
from tests.core.index.making import Float32, Int64, read_cells, sphere

CODES = ["flat", "fp16", "sq8", "sq6", "sq4", "pq8"]
FULL = Path("/dev/full")


def cells_for(many: int, cells: int) -> Int64:
    return np.random.default_rng(9).integers(0, cells, many)


def filled(code: str = "flat", rows: int = 90, dim: int = 8, cells: int = 4) -> Any:
    images = sphere(rows, dim)
    index = ivf.blank(code, cells, sphere(300, dim, seed=1))
    return ivf.populate(index, [(np.arange(rows) + 1000, cells_for(rows, cells), images)])


def brute_force(query: Float32, images: Float32, rows: Int64, among: Int64) -> list[tuple[float, int]]:
    found = [(float(query @ images[i]), int(rows[i])) for i in among]
    return sorted(found, key=lambda hit: (-hit[0], hit[1]))


def test_reading_cells_equals_brute_force_in_them() -> None:
    images, queries, cells = sphere(300, 16), sphere(20, 16, seed=1), cells_for(300, 9)
    rows = np.random.default_rng(2).permutation(10_000)[:300]
    cuts = [slice(0, 100), slice(100, 101), slice(101, 101), slice(101, 300)]
    index = ivf.populate(
        ivf.blank("flat", 9, images[:0]), [(rows[cut], cells[cut], images[cut]) for cut in cuts]
    )
    assert index.ntotal == 300 and ivf.sizes(index).tolist() == np.bincount(cells, minlength=9).tolist()
    chosen = np.array([np.random.default_rng(q).permutation(9)[:3] for q in range(20)])
    chosen[::4, 2] = -1  # these read two cells only
    hits = read_cells(index, queries, chosen, 7)
    assert (hits.rows.dtype, hits.cosines.dtype) == (np.int64, np.float32)
    for query, read, found, cosines in zip(queries, chosen, hits.rows, hits.cosines, strict=True):
        truth = brute_force(query, images, rows, np.flatnonzero(np.isin(cells, read[read >= 0])))[:7]
        assert found.tolist() == [row for _, row in truth]
        assert cosines == pytest.approx([cosine for cosine, _ in truth], abs=1e-5)


def test_f53_too_few_results_end_in_minus_one() -> None:
    index = ivf.blank("flat", 3, sphere(1, 8)[:0])
    ivf.populate(index, [(np.array([5, 3]), np.array([0, 2]), sphere(2, 8, seed=1))])
    hits = read_cells(index, sphere(3, 8, seed=2), np.array([[0, 1, 2], [1, -1, -1], [-1, -1, -1]]), 4)
    assert set(hits.rows[0, :2].tolist()) == {3, 5} and (hits.rows[0, 2:] == -1).all()
    assert (hits.rows[1:] == -1).all()


@pytest.mark.parametrize("code", CODES)
def test_each_code_comes_back_from_disk(code: str, tmp_path: Path) -> None:
    images, every = sphere(400, 16), np.tile(np.arange(5), (50, 1))
    blank, file = ivf.blank(code, 5, images), tmp_path / "part.faiss"
    index = ivf.populate(blank, [(np.arange(400) + 1000, cells_for(400, 5), images)])
    ivf.write(index, file)
    loaded = ivf.load(file, rows=400, dim=16)
    before, after = (read_cells(i, images[:50], every, 5) for i in (index, loaded))
    assert before.rows.tolist() == after.rows.tolist()
    assert before.cosines.tobytes() == after.cosines.tobytes()
    assert ivf.sizes(loaded).tolist() == ivf.sizes(index).tolist()
    found_itself = np.mean(after.rows[:, 0] == np.arange(50) + 1000)
    assert found_itself >= {"sq4": 0.9, "pq8": 0.9}.get(code, 1.0)


@pytest.mark.parametrize("code", CODES)
def test_a_trained_blank_from_disk_is_filled_alike(code: str, tmp_path: Path) -> None:
    """Parts are made on other machines than the code was trained on."""
    ivf.write(ivf.blank(code, 4, sphere(300, 16, seed=1)), tmp_path / "blank")
    block = np.arange(70), cells_for(70, 4), sphere(70, 16)
    files = []
    for name in ("one", "two"):
        loaded = ivf.load(tmp_path / "blank", rows=0, dim=16)
        ivf.write(ivf.populate(loaded, [block]), tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]
    here = ivf.populate(ivf.blank(code, 4, sphere(300, 16, seed=1)), [block])
    every = np.tile(np.arange(4), (9, 1))
    there = ivf.load(tmp_path / "one", rows=70, dim=16)
    both = [read_cells(i, sphere(9, 16, seed=5), every, 8) for i in (here, there)]
    assert both[0].rows.tolist() == both[1].rows.tolist()


@pytest.mark.parametrize("code", [*CODES, "pq64"])
def test_a_vector_costs_what_the_plan_says(code: str, tmp_path: Path) -> None:
    dim, sample = 768, sphere(300, 768)
    index = ivf.blank(code, 2, sample)
    assert index.code_size == code_bytes(code, dim)
    sizes = []
    for rows in (100, 200):
        ivf.populate(index, [(np.arange(100), np.arange(100) % 2, sample[:100])])
        ivf.write(index, tmp_path / f"{rows}")
        sizes.append((tmp_path / f"{rows}").stat().st_size)
    assert sizes[1] - sizes[0] == 100 * vector_bytes(code, dim)
    if code == "sq4":
        assert vector_bytes(code, dim) == 392


def test_cells_do_not_enter_the_code() -> None:
    """No residuals: a row has one code and one cosine, whichever cell it lies in."""
    for code in CODES:
        index = ivf.blank(code, 3, sphere(300, 8))
        ivf.populate(index, [(np.arange(3), np.arange(3), np.repeat(sphere(1, 8, seed=2), 3, axis=0))])
        hits = read_cells(index, sphere(1, 8, seed=3), np.arange(3)[None, :], 3)
        assert len(set(hits.cosines[0].tolist())) == 1


@pytest.mark.parametrize("code", ["flat", "sq4", "pq8"])
def test_f50_truncated_index(code: str, tmp_path: Path) -> None:
    """Cut anywhere, inside the header too, where faiss' own mapped reader crashes."""
    whole = tmp_path / "whole"
    ivf.write(filled(code), whole)
    data = whole.read_bytes()
    for end in [*range(0, 200, 3), *np.linspace(200, len(data) - 9, 40).astype(int), *range(-8, 0)]:
        torn = tmp_path / f"{end}.faiss"
        torn.write_bytes(data[:end])
        with pytest.raises(DataError, match="not a readable index") as caught:
            ivf.load(torn, rows=90, dim=8)
        assert caught.value.where == str(torn)
        assert "index build" in caught.value.fix


def test_f50_garbage_and_missing_index(tmp_path: Path) -> None:
    ivf.write(filled(), tmp_path / "whole")
    begun = (tmp_path / "whole").read_bytes()[:4]
    for number in range(40):
        garbage = tmp_path / f"{number}.faiss"
        garbage.write_bytes((begun if number % 2 else b"") + np.random.default_rng(number).bytes(500))
        with pytest.raises(DataError, match="not a readable index") as caught:
            ivf.load(garbage, rows=90, dim=8)
        assert str(garbage) in caught.value.where
    with pytest.raises(DataError, match="not a readable index"):
        ivf.load(tmp_path / "none.faiss", rows=90, dim=8)


def test_f50_another_kind_of_index(tmp_path: Path) -> None:
    faiss.write_index(faiss.IndexFlatIP(8), str(tmp_path / "flat.faiss"))
    with pytest.raises(DataError, match="not a readable index"):
        ivf.load(tmp_path / "flat.faiss", rows=0, dim=8)


@pytest.mark.parametrize(("rows", "dim"), [(89, 8), (90, 9)])
def test_f52_index_is_not_what_its_manifest_says(rows: int, dim: int, tmp_path: Path) -> None:
    file = tmp_path / "i.faiss"
    ivf.write(filled(), file)
    with pytest.raises(DataError, match=f"holds 90 x 8, its manifest says {rows} x {dim}") as caught:
        ivf.load(file, rows=rows, dim=dim)
    assert caught.value.where == str(file)


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("rows", [0, 90, 3000])
def test_f35_a_full_disk_leaves_no_file(rows: int, tmp_path: Path) -> None:
    """Small files too: they fit into a buffer, and faiss does not tell when that cannot be written."""
    file = tmp_path / "part.faiss"
    file.symlink_to(FULL)
    with pytest.raises(DataError, match="cannot be written") as caught:
        ivf.write(filled(rows=rows), file)
    assert not file.is_symlink() and FULL.exists()
    assert caught.value.where == str(file) and "disk space" in caught.value.fix


@pytest.mark.parametrize("lost", [1, 5000])
def test_f35_a_disk_that_fills_up_without_a_word(
    lost: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, real = tmp_path / "part.faiss", faiss.write_index

    def short(index: Any, path: str) -> None:
        real(index, path)
        with Path(path).open("r+b") as written:
            written.truncate(Path(path).stat().st_size - lost)

    monkeypatch.setattr(faiss, "write_index", short)
    with pytest.raises(DataError, match="cannot be written"):
        ivf.write(filled(rows=500), file)
    assert not file.exists()


def test_f35_no_folder_to_write_to(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        ivf.write(filled(), tmp_path / "none" / "part.faiss")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_f42_bad_rows_are_named(value: float) -> None:
    images = sphere(9, 8)
    images[2, 3], images[7, 0] = np.nan, value
    with pytest.raises(DataError, match=r"rows \[102, 107\]"):
        ivf.populate(ivf.blank("flat", 2, images[:0]), [(np.arange(9) + 100, np.zeros(9, int), images)])


def test_f44_blocks_that_do_not_fit() -> None:
    def add(rows: int, cells: int, images: Float32) -> None:
        index = ivf.blank("flat", 2, sphere(1, 8)[:0])
        ivf.populate(index, [(np.arange(rows), np.zeros(cells, np.int64), images)])

    with pytest.raises(DataError, match="index of dimension 8"):
        add(9, 9, sphere(9, 7))
    with pytest.raises(DataError, match="8 row ids and 9 cells"):
        add(8, 9, sphere(9, 8))
    with pytest.raises(DataError, match="9 row ids and 8 cells"):
        add(9, 8, sphere(9, 8))
    add(9, 9, sphere(9, 8))


@pytest.mark.parametrize("cell", [-1, 2])
def test_cells_that_the_index_does_not_have(cell: int) -> None:
    index = ivf.blank("flat", 2, sphere(1, 8)[:0])
    with pytest.raises(DataError, match="in an index of 2"):
        ivf.populate(index, [(np.arange(3), np.array([0, cell, 1]), sphere(3, 8))])
    assert index.ntotal == 0
