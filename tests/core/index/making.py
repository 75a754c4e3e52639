"""Small worlds of unit vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mudg_core.encode.shard import IMAGES, METADATA, TEXTS
from mudg_core.encode.shard import EmbeddingShard as Shard
from mudg_core.index.ivf import Hits

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]


def unit(vectors: NDArray[np.floating]) -> Float32:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def sphere(rows: int, dim: int, seed: int = 0) -> Float32:
    return unit(np.random.default_rng(seed).normal(size=(rows, dim)))


def modality_gap(rows: int, seed: int = 0) -> tuple[Float32, Float32]:
    """Images and their texts: close in meaning, but each kind in a cone of its own, as CLIP has them."""
    random = np.random.default_rng(seed)
    topics = random.normal(size=(40, 24))
    shared = topics[random.integers(0, 40, rows)] + 0.7 * random.normal(size=(rows, 24))
    offset = np.zeros(24)
    offset[:2] = 5.0, -3.0
    return unit(shared + offset), unit(shared - offset + 0.4 * random.normal(size=(rows, 24)))


def shard_of(folder: Path, rows: Int64, images: NDArray[np.floating], texts: NDArray[np.floating]) -> Shard:
    """An embedding shard on disk, as `embed_shard` writes it."""
    for name, features in ((IMAGES, images), (TEXTS, texts)):
        (folder / name).parent.mkdir(parents=True)
        np.save(folder / name, features.astype(np.float16))
    (folder / METADATA).parent.mkdir()
    pq.write_table(pa.table({"row": np.asarray(rows, np.int64)}), folder / METADATA)
    return Shard.open(folder)


def world(folder: Path, rows: int, shards: int = 1, seed: int = 0) -> list[Shard]:
    """`modality_gap` cut into shards, rows numbered from zero."""
    images, texts = modality_gap(rows, seed)
    parts = np.array_split(np.arange(rows), shards)
    return [shard_of(folder / str(n), part, images[part], texts[part]) for n, part in enumerate(parts)]


def read_cells(index: Any, queries: Float32, cells: Int64, neighbors: int) -> Hits:
    """What faiss itself finds in some cells of each query."""
    index.nprobe = cells.shape[1]
    unused = np.zeros(cells.shape, np.float32)
    cosines, rows = index.search_preassigned(
        np.ascontiguousarray(queries, np.float32), neighbors, cells, unused
    )
    return Hits(np.asarray(rows, np.int64), np.asarray(cosines, np.float32))
