"""Sizes of fine codes, and the vectors that they stand for."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import pytest

from mudg_core.errors import SettingsError
from mudg_core.index import ivf
from mudg_core.index.codes import code_bytes, vector_bytes
from mudg_core.index.ivf import Stored
from tests.core.index.making import Float32, Int64, read_cells, sphere

FACTORY = {
    "flat": "Flat",
    "fp16": "SQfp16",
    "sq8": "SQ8",
    "sq6": "SQ6",
    "sq4": "SQ4",
    "pq1": "PQ1",
    "pq8": "PQ8",
    "pq64": "PQ64",
}
CODES = ("flat", "fp16", "sq8", "sq8u", "sq6", "sq4", "pq4")
DIM, CELLS = 20, 3


@pytest.mark.parametrize("dim", [7, 96, 128, 513, 768])
@pytest.mark.parametrize("code", FACTORY)
def test_faiss_agrees(code: str, dim: int) -> None:
    if code.startswith("pq") and dim % int(code[2:]):
        with pytest.raises(SettingsError, match="equal parts"):
            code_bytes(code, dim)
        return
    alone: Any = faiss.index_factory(dim, FACTORY[code], faiss.METRIC_INNER_PRODUCT)
    in_lists: Any = faiss.index_factory(dim, f"IVF4,{FACTORY[code]}", faiss.METRIC_INNER_PRODUCT)
    assert code_bytes(code, dim) == alone.sa_code_size() == in_lists.code_size


@pytest.mark.parametrize(
    ("code", "size"),
    [("flat", 3072), ("fp16", 1536), ("sq8", 768), ("sq6", 576), ("sq4", 384), ("pq64", 64)],
)
def test_a_vector_of_vit_l_14(code: str, size: int) -> None:
    assert (code_bytes(code, 768), vector_bytes(code, 768)) == (size, size + 8)


@pytest.mark.parametrize("code", ["", "sq5", "SQ4", "pq", "pq0", "pq08", "pq-8", "pq64x4fs", "pq8\n", "pq８"])
def test_unknown_codes_are_refused(code: str) -> None:
    with pytest.raises(SettingsError, match="unknown fine code") as caught:
        vector_bytes(code, 768)
    assert caught.value.exit_code == 2 and "pq64" in caught.value.fix


def filled(code: str) -> tuple[Any, Float32]:
    images = sphere(400, DIM)
    index = ivf.blank(code, CELLS, images)
    return ivf.populate(index, [(np.arange(400) + 7, np.arange(400) % CELLS, images)]), images


def every_place() -> tuple[Int64, Int64]:
    """Places in the order of rows, and the rows."""
    number = np.arange(400)
    return (number % CELLS << 32) | (number // CELLS), number + 7


@pytest.mark.parametrize("code", CODES)
def test_decoded_as_faiss_does(code: str) -> None:
    index, _ = filled(code)
    stored = Stored(index)
    places, rows = every_place()
    assert stored.rows(places[:, None])[:, 0].tolist() == rows.tolist()
    lists = [stored._list(place >> 32)[1][place & 0xFFFFFFFF] for place in places.tolist()]
    theirs = np.empty((400, DIM), np.float32)
    for place, into in zip(places.tolist(), theirs, strict=True):
        index.reconstruct_from_offset(place >> 32, place & 0xFFFFFFFF, faiss.swig_ptr(into))
    assert stored._decoder.decode(np.stack(lists)) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("code", CODES)
def test_scores_of_faiss_are_within_the_error(code: str) -> None:
    index, _ = filled(code)
    stored, queries = Stored(index), sphere(30, DIM, seed=1)
    cells = np.tile(np.arange(CELLS), (30, 1))
    places, scores = ivf.read_places(index, queries, cells, 400)
    lines = np.repeat(np.arange(30), 400)
    exact = stored.scores(queries, lines, places.ravel()).reshape(30, 400)
    assert np.abs(exact - scores).max() <= stored.error(queries)
    rows = read_cells(index, queries, cells, 400).rows
    assert (np.sort(stored.rows(places), axis=1) == np.sort(rows, axis=1)).all()


def test_places_of_nobody() -> None:
    stored = Stored(filled("flat")[0])
    assert stored.rows(np.array([[-1, 0], [-1, -1]])).tolist() == [[-1, 7], [-1, -1]]


@pytest.mark.parametrize("code", ["sq8", "sq8u", "sq6", "sq4"])
def test_no_decoded_vector_is_longer_than_is_said(code: str) -> None:
    """Training has seen the first ten dimensions at one value each, and never two of the others together."""
    half = DIM // 2
    seen = np.tile(np.eye(half, DIM, k=half, dtype=np.float32) * np.float32(0.3), (40, 1))
    seen[:, :half] = np.sqrt(0.91 / half)
    other = np.repeat(np.arange(2), half).astype(np.float32)[None] / np.sqrt(np.float32(half))
    images = np.concatenate([other, -other, sphere(50, DIM), seen])
    rows = np.arange(len(images))
    stored = Stored(ivf.populate(ivf.blank(code, CELLS, seen), [(rows, rows % CELLS, images)]))
    decoded = np.concatenate([stored._decoder.decode(stored._list(cell)[1]) for cell in range(CELLS)])
    longest = np.linalg.norm(decoded, axis=1).max()
    assert longest <= stored._decoder.longest < 1.5
    assert longest > 1.34 or code == "sq8u", "otherwise this test tests nothing"
