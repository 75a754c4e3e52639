"""Writes an embedded shard while its rows come in: memory does not grow with the shard.

A batch goes to images, texts and metadata in one call and in one order, so that rows cannot drift apart;
`close` compares the three counts all the same. Near-duplicate groups are only known when all rows are, so
the metadata is written twice, the second time with the group. `screen` writes a shard again without near
copies and misfit captions: another limit embeds nothing again.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.encode.duplicates import first_copies
from mudg_core.encode.shard import IMAGES, METADATA, REFUSED, TEXTS, EmbeddingShard, Float16, Float32
from mudg_core.errors import DataError

ROWS_PER_GROUP = 16_384
UNGROUPED = "metadata/ungrouped.parquet"
_TEXT = ("key", "file", "url", "caption", "sha256")
_SIZES = ("width", "height", "caption_length")
SCHEMA = pa.schema(
    {"row": pa.int64()}
    | dict.fromkeys(_TEXT, pa.string())
    | dict.fromkeys(_SIZES, pa.int32())
    | {"cosine": pa.float32(), "phash": pa.int64(), "opt_out": pa.bool_()}
)
GROUPED = SCHEMA.append(pa.field("duplicate_of", pa.int64()))
REFUSED_SCHEMA = pa.schema({"row": pa.int64()} | dict.fromkeys(("key", "file", "url", "reason"), pa.string()))
BLOCK = 65_536
COPY, UNLIKE = "near copy of an earlier row", "caption unlike its image"


class Refusal(NamedTuple):
    """A sample that was not embedded, and why; reasons are few and short, so that they can be counted."""

    row: int
    key: str
    file: str
    url: str
    reason: str


class Npy:
    """A .npy file of half-precision rows whose number is not known before its end."""

    def __init__(self, path: Path, dim: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.dim, self.rows = path, dim, 0
        self.stream = path.open("wb")
        self.start = self._header()

    def append(self, features: Float16) -> None:
        self.stream.write(np.ascontiguousarray(features, dtype="<f2").data)
        self.rows += len(features)

    def close(self) -> None:
        """numpy leaves room in a header for the number of rows to grow."""
        self.stream.seek(0)
        assert self._header() == self.start
        self.stream.close()

    def _header(self) -> int:
        shape = {"descr": "<f2", "fortran_order": False, "shape": (self.rows, self.dim)}
        np.lib.format.write_array_header_1_0(self.stream, shape)
        return self.stream.tell()


@dataclass
class Written:
    """Counts for the manifest."""

    rows: int
    duplicates: int
    refused: dict[str, int]


class ShardWriter:
    """Use it in a `with`, and `close` it once every row is there."""

    def __init__(self, out: Path, dim: int) -> None:
        self.out = out
        self.images, self.texts = Npy(out / IMAGES, dim), Npy(out / TEXTS, dim)
        (out / METADATA).parent.mkdir(parents=True, exist_ok=True)
        self.metadata = pq.ParquetWriter(out / UNGROUPED, SCHEMA)
        self.rows, self.hashes = array("q"), array("q")
        self.hashed = True  # published embeddings come without pixels
        self.refusals: list[Refusal] = []

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in (self.images.stream, self.texts.stream, self.metadata):
            file.close()

    def add(self, images: Float32, texts: Float32, lines: pa.Table) -> None:
        """Unit-norm features and as many lines of metadata (SCHEMA)."""
        self.images.append(images.astype(np.float16))
        self.texts.append(texts.astype(np.float16))
        self.rows.frombytes(lines.column("row").to_numpy().tobytes())
        self.hashed &= lines.column("phash").null_count == 0
        self.hashes.frombytes(lines.column("phash").fill_null(0).to_numpy().tobytes())
        self.metadata.write_table(lines)

    def refuse(self, refusals: Sequence[Refusal]) -> None:
        self.refusals.extend(refusals)

    def close(self) -> Written:
        self.metadata.close()
        self.images.close()
        self.texts.close()
        counts = {self.images.rows, self.texts.rows, pq.read_metadata(self.out / UNGROUPED).num_rows}
        if len(counts) != 1:
            raise DataError(what=f"images, texts and metadata differ in length: {sorted(counts)}")
        duplicates = self._group()
        self._write_refusals()
        return Written(self.images.rows, duplicates, self._tally())

    def _group(self) -> int:
        """The metadata once more, each row with the first row that is a near copy of the same image."""
        rows = np.array(self.rows, np.int64)
        first = rows
        if len(rows) and self.hashed:
            features = np.load(self.images.path, mmap_mode="r", allow_pickle=False)
            first = rows[first_copies(np.array(self.hashes, np.int64), features)]
        done = 0
        with (
            pq.ParquetFile(self.out / UNGROUPED) as source,
            pq.ParquetWriter(self.out / METADATA, GROUPED, compression="zstd") as target,
        ):
            for batch in source.iter_batches(ROWS_PER_GROUP):
                table = pa.Table.from_batches([batch])
                here = pa.array(first[done : done + table.num_rows])
                target.write_table(table.append_column(GROUPED.field("duplicate_of"), here))
                done += table.num_rows
        (self.out / UNGROUPED).unlink()
        return int((first != rows).sum())

    def _write_refusals(self) -> None:
        columns = zip(*self.refusals, strict=True) if self.refusals else ([] for _ in REFUSED_SCHEMA)
        arrays = [
            pa.array(list(values), field.type) for values, field in zip(columns, REFUSED_SCHEMA, strict=True)
        ]
        pq.write_table(pa.table(arrays, schema=REFUSED_SCHEMA), self.out / REFUSED)

    def _tally(self) -> dict[str, int]:
        reasons, counts = np.unique([refusal.reason for refusal in self.refusals], return_counts=True)
        return {str(reason): int(count) for reason, count in zip(reasons, counts, strict=True)}


def screen(shard: EmbeddingShard, out: Path, *, dedup: bool, min_cosine: float | None) -> dict[str, int]:
    """The shard without such rows, below `out`, and how many were left out for which reason."""
    metadata = shard.metadata()
    columns = (metadata.column(name).to_numpy() for name in ("row", "duplicate_of", "cosine"))
    rows, first, cosine = columns
    copies = (first != rows) if dedup else np.zeros(len(rows), bool)
    unlike = ~copies & (cosine < min_cosine) if min_cosine is not None else np.zeros(len(rows), bool)
    kept = np.flatnonzero(~(copies | unlike))
    for name, features in ((IMAGES, shard.images), (TEXTS, shard.texts)):
        file = Npy(out / name, features.shape[1])
        for start in range(0, len(kept), BLOCK):
            file.append(features[kept[start : start + BLOCK]])
        file.close()
    (out / METADATA).parent.mkdir()
    pq.write_table(metadata.take(pa.array(kept)), out / METADATA, compression="zstd")
    reasons = np.select([copies, unlike], [COPY, UNLIKE], "")
    left = metadata.append_column("reason", pa.array(reasons)).filter(pa.array(copies | unlike))
    pq.write_table(left.select(REFUSED_SCHEMA.names).cast(REFUSED_SCHEMA), out / REFUSED)
    return {COPY: int(copies.sum()), UNLIKE: int(unlike.sum())}
