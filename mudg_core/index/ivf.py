"""One part of the index: a faiss IVF file over some corpus shards. Populate it, write it, open it, read
cells.

A part knows nothing of centroids: `coarse.py` says which cell an image lies in and which cells a query reads.
So all parts of an index share one coarse level, and a part can be made without the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from faiss.contrib.inspect_tools import get_invlist_sizes

from mudg_core.errors import DataError
from mudg_core.index.codes import ID_BYTES, faiss_code
from mudg_core.index.vectors import Float32, Int64

REBUILD = "run `mudg index build` again"


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
    found: Int64 = get_invlist_sizes(index.invlists)  # type: ignore[no-untyped-call]
    return np.asarray(found, dtype=np.int64)


def read_cells(index: Any, queries: Float32, cells: Int64, neighbors: int) -> Hits:
    """The best rows of each query among its cells; cell -1 is nothing. A spilled row may occur more than
    once."""
    queries = np.ascontiguousarray(queries, np.float32)
    index.nprobe = cells.shape[1]
    unused = np.zeros(cells.shape, np.float32)
    cosines, rows = index.search_preassigned(queries, neighbors, cells, unused)
    return Hits(rows=np.asarray(rows, np.int64), cosines=np.asarray(cosines, np.float32))


def read_places(index: Any, queries: Float32, cells: Int64, neighbors: int) -> tuple[Int64, Float32]:
    """The same by where the hits lie: the number of a cell and a position in it, as 32 bits each."""
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
