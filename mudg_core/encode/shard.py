"""An embedded shard on disk, in the layout that clip-retrieval, autofaiss and embedding-reader share.

    img_emb/img_emb_0.npy   text_emb/text_emb_0.npy   metadata/metadata_0.parquet   refused.parquet

Row i of the first three is the same pair; `row` in the metadata is its number in the whole corpus. Samples
that were not embedded are in the last, each with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mudg_core.errors import DataError

Float16 = NDArray[np.float16]
Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]

IMAGES = "img_emb/img_emb_0.npy"
TEXTS = "text_emb/text_emb_0.npy"
METADATA = "metadata/metadata_0.parquet"
REFUSED = "refused.parquet"


@dataclass(frozen=True)
class EmbeddingShard:
    """A shard on disk, memory-mapped; checked for alignment when it is opened."""

    images: Float16
    texts: Float16
    metadata_path: Path

    @classmethod
    def open(cls, folder: Path) -> EmbeddingShard:
        try:
            images = np.load(folder / IMAGES, mmap_mode="r", allow_pickle=False)
            texts = np.load(folder / TEXTS, mmap_mode="r", allow_pickle=False)
            rows = pq.read_metadata(folder / METADATA).num_rows
        except (OSError, ValueError, EOFError, pa.ArrowException) as error:
            raise DataError(
                what=f"the shard cannot be read: {error}", where=str(folder), fix="embed the shard again"
            ) from error
        if not (len(images) == len(texts) == rows) or images.shape != texts.shape:
            raise DataError(
                what=f"misaligned shard: images {images.shape}, texts {texts.shape}, metadata {rows} rows",
                where=str(folder),
                fix="embed the shard again",
            )
        return cls(images, texts, folder / METADATA)

    @cached_property
    def rows(self) -> Int64:
        return np.asarray(
            pq.read_table(self.metadata_path, columns=["row"]).column(0).to_numpy(), dtype=np.int64
        )

    def metadata(self) -> pa.Table:
        return pq.read_table(self.metadata_path)

    def places(self, rows: Int64) -> tuple[Int64, Int64]:
        """Which of `rows` are in this shard: their positions in `rows`, and their lines in the shard."""
        place = np.searchsorted(self.rows, rows, sorter=self._ascending)
        lines = self._ascending[np.minimum(place, len(self.rows) - 1)]
        here = np.flatnonzero(self.rows[lines] == rows)
        return here, lines[here]

    @cached_property
    def _ascending(self) -> Int64:
        """The lines in the order of their rows: ours ascend, those of a foreign pool need not."""
        return np.argsort(self.rows, kind="stable")


def gather_images(shards: Sequence[EmbeddingShard], rows: Int64) -> Float32:
    """Image features of corpus rows, whichever shards they lie in."""
    return _gather(shards, rows, "images")


def gather_texts(shards: Sequence[EmbeddingShard], rows: Int64) -> Float32:
    """The same of their captions."""
    return _gather(shards, rows, "texts")


def _gather(shards: Sequence[EmbeddingShard], rows: Int64, side: str) -> Float32:
    features = np.full((len(rows), shards[0].images.shape[1]), np.nan, dtype=np.float32)
    for shard in shards:
        here, lines = shard.places(rows)
        features[here] = getattr(shard, side)[lines]
    if np.isnan(features).any():
        lost = rows[np.isnan(features).any(axis=1)]
        raise DataError(what=f"rows {lost[:5].tolist()} are in no shard", fix="build the index again")
    return features


def gather_metadata(shards: Sequence[EmbeddingShard], rows: Int64) -> pa.Table:
    """Metadata of corpus rows, one line each in the order of `rows`, with the number of the shard."""
    tables, positions = [], []
    for number, shard in enumerate(shards):
        here, lines = shard.places(rows)
        if len(here):
            table = shard.metadata().take(pa.array(lines))
            tables.append(table.append_column("shard", pa.array(np.full(len(here), number))))
            positions.append(here)
    order = np.argsort(np.concatenate(positions)) if positions else np.zeros(0, np.int64)
    if len(order) != len(rows):
        raise DataError(what=f"{len(rows) - len(order)} rows are in no shard", fix="build the index again")
    return pa.concat_tables(tables).take(pa.array(order))
