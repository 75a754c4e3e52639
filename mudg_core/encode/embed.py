"""Embedding a corpus shard, in the layout that clip-retrieval, autofaiss and embedding-reader share.

    img_emb/img_emb_0.npy   text_emb/text_emb_0.npy   metadata/metadata_0.parquet

Row i of all three is the same pair; `row` in the metadata is its number in the whole corpus.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from mudg_core.corpus.shards import ShardSample
from mudg_core.errors import DataError

if TYPE_CHECKING:  # torch is slow to load, and readers of what was made do without
    from mudg_core.encode.models import Clip, Pixels

Float16 = NDArray[np.float16]
Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]

IMAGES = "img_emb/img_emb_0.npy"
TEXTS = "text_emb/text_emb_0.npy"
METADATA = "metadata/metadata_0.parquet"


@dataclass(frozen=True)
class Embedded:
    """Counts for the manifest: rows written, and rows refused by reason."""

    rows: int
    refused: dict[str, int]


def embed_shard(
    samples: Iterable[ShardSample], clip: Clip, first_row: int, batch_size: int, out: Path
) -> Embedded:
    """Writes the three files of a shard below `out`. A bad sample costs that sample, never the shard."""
    images: list[Float32] = []
    texts: list[Float32] = []
    lines: list[dict[str, Any]] = []
    refused: dict[str, int] = {}
    for pixels, captions, metadata in _batches(samples, clip, first_row, batch_size, refused):
        image, text = clip.encode_images(pixels, batch_size), clip.encode_texts(captions, batch_size)
        finite = np.isfinite(np.concatenate([image, text], axis=1)).all(axis=1)
        good = finite & image.any(axis=1) & text.any(axis=1)
        for reason, bad in (("embedding not finite", ~finite), ("embedding of norm zero", finite & ~good)):
            if bad.any():
                refused[reason] = refused.get(reason, 0) + int(bad.sum())
        images.append(image[good])
        texts.append(text[good])
        lines.extend(line for line, keep in zip(metadata, good, strict=True) if keep)
    if not lines:
        raise DataError(what=f"no usable sample in the shard ({refused})", fix="check the shard's images")
    _write(out, np.concatenate(images), np.concatenate(texts), lines)
    return Embedded(rows=len(lines), refused=refused)


def _batches(
    samples: Iterable[ShardSample], clip: Clip, first_row: int, size: int, refused: dict[str, int]
) -> Iterator[tuple[Pixels, list[str], list[dict[str, Any]]]]:
    pixels: list[Pixels] = []
    captions: list[str] = []
    lines: list[dict[str, Any]] = []
    for number, sample in enumerate(samples):
        try:
            with Image.open(io.BytesIO(sample.image or b""), formats=("JPEG", "PNG", "WEBP")) as image:
                pixels.append(clip.pixels(image))
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            reason = f"image: {type(error).__name__}"
            refused[reason] = refused.get(reason, 0) + 1
            continue
        captions.append(sample.caption)
        row = first_row + number
        lines.append(
            {
                "row": row,
                "key": sample.key,
                "url": sample.url,
                "caption": sample.caption,
                "sha256": sample.sha256,
            }
        )
        if len(lines) == size:
            yield np.stack(pixels), captions, lines
            pixels, captions, lines = [], [], []
    if lines:
        yield np.stack(pixels), captions, lines


def _write(out: Path, images: Float32, texts: Float32, lines: list[dict[str, Any]]) -> None:
    for name, features in ((IMAGES, images), (TEXTS, texts)):
        (out / name).parent.mkdir()
        np.save(out / name, features.astype(np.float16))
    (out / METADATA).parent.mkdir()
    pq.write_table(pa.Table.from_pylist(lines), out / METADATA, compression="zstd")


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
    features = np.full((len(rows), shards[0].images.shape[1]), np.nan, dtype=np.float32)
    for shard in shards:
        here, lines = shard.places(rows)
        features[here] = shard.images[lines]
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
