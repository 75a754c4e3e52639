"""A faiss IVF index over given centroids: populate it, write it, search it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from mudg_core.errors import DataError

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]

QUANTISERS = {
    "fp16": faiss.ScalarQuantizer.QT_fp16,
    "sq8": faiss.ScalarQuantizer.QT_8bit,
    "sq4": faiss.ScalarQuantizer.QT_4bit,
}


@dataclass(frozen=True)
class Hits:
    """Results of a search: for each query its rows, best first; id -1 means that there were no more."""

    rows: Int64
    cosines: Float32


def populate(centroids: Float32, blocks: Iterable[tuple[Int64, Float32]], code: str) -> Any:
    """An index whose cells are the Voronoi cells of `centroids`, holding every (row ids, images) block."""
    cells, dim = centroids.shape
    quantiser: Any = faiss.IndexFlatIP(dim)
    quantiser.add(centroids)
    if code == "flat":
        index: Any = faiss.IndexIVFFlat(quantiser, dim, cells, faiss.METRIC_INNER_PRODUCT)
    else:
        index = faiss.IndexIVFScalarQuantizer(
            quantiser, dim, cells, QUANTISERS[code], faiss.METRIC_INNER_PRODUCT, False
        )
    index.own_fields = True
    quantiser.this.disown()
    for rows, images in blocks:
        _check(rows, images, dim)
        if not index.is_trained:
            index.train(images)
        index.add_with_ids(images, rows)
    return index


def write(index: Any, path: Path) -> None:
    faiss.write_index(index, str(path))


def load(path: Path, *, rows: int, dim: int) -> Any:
    """The index in a file, refused unless it is what its manifest says."""
    try:
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise DataError(
            what=f"not a readable index: {str(error).splitlines()[0][:200]}",
            where=str(path),
            fix="run `mudg index build` again",
        ) from error
    if index.ntotal != rows or index.d != dim:
        raise DataError(
            what=f"the index holds {index.ntotal} x {index.d}, its manifest says {rows} x {dim}",
            where=str(path),
            fix="run `mudg index build` again",
        )
    return index


def search(index: Any, queries: Float32, neighbors: int, probes: int) -> Hits:
    """The `neighbors` best rows of each query, from the `probes` nearest cells."""
    if queries.ndim != 2 or queries.shape[1] != index.d:
        raise DataError(
            what=f"queries of shape {queries.shape} against an index of dimension {index.d}",
            fix="embed the queries with the model that built the index",
        )
    parameters = faiss.SearchParametersIVF(nprobe=min(probes, index.nlist))  # type: ignore[call-arg]
    cosines, rows = index.search(np.ascontiguousarray(queries, np.float32), neighbors, params=parameters)
    return Hits(rows=np.asarray(rows, np.int64), cosines=np.asarray(cosines, np.float32))


def recall_at_1(found: Hits, truth: Int64) -> float:
    """Share of queries whose first hit is the exact nearest image."""
    return float(np.mean(found.rows[:, 0] == truth))


def _check(rows: Int64, images: Float32, dim: int) -> None:
    if images.ndim != 2 or images.shape[1] != dim or len(rows) != len(images):
        raise DataError(
            what=f"{len(rows)} row ids for images of shape {images.shape}, in an index of dimension {dim}",
            fix="embed the shard again with the model of this index",
        )
    if not np.isfinite(images).all():
        bad = rows[~np.isfinite(images).all(axis=1)]
        raise DataError(
            what=f"NaN or infinite embeddings in rows {bad[:10].tolist()}", fix="embed the shard again"
        )
