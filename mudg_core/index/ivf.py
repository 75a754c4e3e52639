"""One part of the index, a faiss IVF file over some shards: populate it, write it, open it, read cells, score
its vectors exactly.

A part knows nothing of centroids: `coarse.py` says which cell an image lies in and which cells a query reads.
So all parts of an index share one coarse level, and a part can be made without the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from faiss.contrib.inspect_tools import get_invlist_sizes
from numpy.typing import NDArray

from mudg_core.errors import DataError
from mudg_core.index.codes import ID_BYTES, decoder, faiss_code
from mudg_core.index.exact import float32_error, on_grid
from mudg_core.index.vectors import Float32, Int64

REBUILD = "run `mudg index build` again"
POSITION = (1 << 32) - 1
FEW = 32
VALUES = 1 << 18  # decoded at once: copies stay in the cache
CODE_GRID = 2.0**24  # sums of products stay exact for vectors of up to eight times unit length
DECODING = 2.0**-21  # of a range: what float32 rounds away in decoding


@dataclass(frozen=True)
class Hits:
    """Results of a search: for each query its rows, best first; row -1 means that there were no more."""

    rows: Int64
    cosines: Float32


def blank(code: str, cells: int, sample: Float32) -> Any:
    """An empty index whose code is trained on a sample of images; every part starts as a copy of it."""
    index = faiss_code(code, sample.shape[1], cells)
    if not index.is_trained:
        index.train_encoder(len(sample), faiss.swig_ptr(np.ascontiguousarray(sample)), None)
        index.is_trained = True
    return index


def populate(index: Any, blocks: Iterable[tuple[Int64, Int64, Float32]]) -> Any:
    """Adds blocks of (row ids, cells, images) and returns the index."""
    for rows, cells, images in blocks:
        rows, cells = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(cells, np.int64)
        images = np.ascontiguousarray(images, np.float32)
        _check(rows, cells, images, index)
        pointers = [faiss.swig_ptr(array) for array in (images, rows, cells)]
        index.add_core(len(rows), *pointers)
    return index


def write(index: Any, path: Path) -> None:
    """Leaves no partial file behind: a full disk must not look like an index. faiss does not tell when the
    last of a file could not be written, so its end is looked at."""
    try:
        faiss.write_index(index, str(path))
        _check_end(path)
    except (RuntimeError, MemoryError) as error:
        path.unlink(missing_ok=True)
        raise DataError(
            what=f"the index cannot be written: {str(error).splitlines()[0][:200]}",
            where=str(path),
            fix="free some disk space and run again",
        ) from error


def load(path: Path, *, rows: int, dim: int) -> Any:
    """The index in a file, memory-mapped, refused unless it is what its manifest says."""
    try:
        _check_end(path)
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except (RuntimeError, MemoryError) as error:
        raise DataError(
            what=f"not a readable index: {str(error).splitlines()[0][:200]}", where=str(path), fix=REBUILD
        ) from error
    if index.ntotal != rows or index.d != dim:
        raise DataError(
            what=f"the index holds {index.ntotal} x {index.d}, its manifest says {rows} x {dim}",
            where=str(path),
            fix=REBUILD,
        )
    return index


def sizes(index: Any) -> Int64:
    """How many vectors each cell holds."""
    counts: Int64 = get_invlist_sizes(index.invlists)  # type: ignore[no-untyped-call]
    return np.asarray(counts, dtype=np.int64)


def read_places(index: Any, queries: Float32, cells: Int64, neighbors: int) -> tuple[Int64, Float32]:
    """Places and scores of the best rows of each query among its cells. A place is the number of a cell and a
    position in it, as 32 bits each; cell -1 is nothing. A spilled row may occur more than once."""
    queries, cells = np.ascontiguousarray(queries, np.float32), np.ascontiguousarray(cells, np.int64)
    index.nprobe = cells.shape[1]
    shape = len(queries), neighbors
    unused, scores, places = np.zeros(cells.shape, np.float32), np.empty(shape, "f4"), np.empty(shape, "i8")
    pointers = [faiss.swig_ptr(array) for array in (cells, unused, scores, places)]
    index.search_preassigned_c(len(queries), faiss.swig_ptr(queries), neighbors, *pointers, True)
    return places, scores


def _check_end(path: Path) -> None:
    """The file must end where its lists do. faiss maps what a header promises: a file cut short crashes the
    process, or gives vectors that nobody has written. Its older reader of mapped lists reads the header as
    any file, and says where the lists lie."""
    index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    if not isinstance(index, faiss.IndexIVF):
        raise RuntimeError(f"{type(index).__name__} has no cells")
    lists: Any = faiss.downcast_InvertedLists(index.invlists)  # type: ignore[arg-type]
    last = lists.lists.at(lists.nlist - 1)
    end = last.offset + last.capacity * (lists.code_size + ID_BYTES)
    if end != path.stat().st_size:
        raise RuntimeError(f"{path.stat().st_size} bytes instead of {end}")


def _check(rows: Int64, cells: Int64, images: Float32, index: Any) -> None:
    if images.ndim != 2 or images.shape[1] != index.d or not len(rows) == len(images) == len(cells):
        raise DataError(
            what=f"{len(rows)} row ids and {len(cells)} cells for images of shape {images.shape}, "
            f"in an index of dimension {index.d}",
            fix="embed the shard again with the model of this index",
        )
    if not np.isfinite(images.sum()):  # faster than looking at each
        bad = rows[~np.isfinite(images).all(axis=1)]
        raise DataError(
            what=f"NaN or infinite embeddings in rows {bad[:10].tolist()}", fix="embed the shard again"
        )
    if len(cells) and (cells.min() < 0 or cells.max() >= index.nlist):
        raise DataError(
            what=f"cells from {cells.min()} to {cells.max()} in an index of {index.nlist}", fix=REBUILD
        )


class Stored:
    """A part whose lists are looked at in place; they must not change meanwhile. Queries are unit vectors:
    products with longer ones are not exact."""

    def __init__(self, index: Any) -> None:
        self.index, self._lists = index, dict[int, tuple[Int64, NDArray[np.uint8]]]()
        self._decoder = decoder(index)
        self._flat = isinstance(index, faiss.IndexIVFFlat)
        grid = 0.0 if self._flat else float(np.sqrt(index.d)) / CODE_GRID
        self._error = (
            float32_error(index.d + 2) * self._decoder.longest + DECODING * self._decoder.ranges + grid
        )

    @cached_property
    def sizes(self) -> Int64:
        """How many vectors each cell holds."""
        return sizes(self.index)

    def error(self, queries: Float32) -> float:
        """How far a score of faiss can be from the exact one, and that from what float32 makes of it."""
        longest = float(np.sqrt(np.einsum("ij,ij->i", queries, queries).max(initial=1.0)))
        return longest * 1.001 * (self._error + 2.0**-24)

    def rows(self, places: Int64) -> Int64:
        """The row of each place; -1 for nobody."""
        rows = np.full(places.shape, -1, np.int64)
        flat, into = places.ravel(), rows.reshape(-1)
        for cell, at in _by_cell(flat):
            into[at] = self._list(cell)[0][flat[at] & POSITION]
        return rows

    def scores(self, queries: Float32, lines: Int64, places: Int64) -> Float32:
        """The exact score of each place with the query of the same line, rounded to float32."""
        step = max(1, VALUES // self.index.d)
        parts = [slice(first, first + step) for first in range(0, len(places), step)]
        each = [self._scores(queries[lines[part]], places[part]) for part in parts]
        return np.concatenate([np.zeros(0, np.float32), *each])

    def _scores(self, queries: Float32, places: Int64) -> Float32:
        codes = np.empty((len(places), self.index.code_size), np.uint8)
        for cell, at in _by_cell(places):
            codes[at] = self._list(cell)[1][places[at] & POSITION]
        vectors = self._decoder.decode(codes)
        grid = on_grid(vectors) if self._flat else np.rint(np.float64(vectors) * CODE_GRID) / CODE_GRID
        return np.asarray(np.einsum("ij,ij->i", on_grid(queries), grid) + 0.0, dtype=np.float32)

    def _list(self, cell: int) -> tuple[Int64, NDArray[np.uint8]]:
        """Rows and codes of a cell, without a copy."""
        if cell not in self._lists:
            lists = self.index.invlists
            size = lists.list_size(cell)
            codes = faiss.rev_swig_ptr(lists.get_codes(cell), size * self.index.code_size)
            rows = faiss.rev_swig_ptr(lists.get_ids(cell), size)
            self._lists[cell] = rows, codes.reshape(size, -1)
        return self._lists[cell]


def _by_cell(places: Int64) -> Iterator[tuple[int, Int64 | slice]]:
    """The cells that occur, each with where it does; a few places one by one, which is quicker."""
    if len(places) <= FEW:
        yield from ((p >> 32, slice(at, at + 1)) for at, p in enumerate(places.tolist()) if p >= 0)
        return
    cells = places >> 32
    order = np.argsort(cells, kind="stable")
    order = order[np.searchsorted(cells[order], 0) :]
    for at in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):
        if len(at):
            yield int(cells[at[0]]), at
