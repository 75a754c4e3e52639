"""Published embeddings become an embedded shard like any other: checked, made unit length, numbered.

They are copied once, in half precision: what an index is built on must not change under it. Nobody can see
from numbers which model made them, so some captions are encoded again and compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mudg_core.corpus.sources import embeddings, tables
from mudg_core.corpus.sources.embeddings import NAMES, Partition
from mudg_core.corpus.sources.files import SourceFiles
from mudg_core.corpus.sources.shard import SourceShard
from mudg_core.encode.duplicates import half_cosines
from mudg_core.encode.shard import Float32, Int64
from mudg_core.encode.writer import SCHEMA, Refusal, ShardWriter, Written
from mudg_core.errors import DataError

if TYPE_CHECKING:
    from mudg_core.encode.models import Clip

CHECKED_CAPTIONS, SAME_MODEL = 64, 0.98


def take_over(files: SourceFiles, shard: SourceShard, clip: Clip, scratch: Path, out: Path) -> Written:
    """Writes an embedded shard below `out`."""
    first = shard.first_row
    with ShardWriter(out, clip.dim) as writer:
        for file in shard.files:
            with embeddings.open_partition(files, file, scratch) as partition:
                where = f"{files.url}/{file.name}"
                _check_shape(partition, clip.dim, file.rows, where)
                _check_model(partition, clip, where)
                _copy(partition, clip, first, file.name, writer)
            first += file.rows
        return writer.close()


def _copy(partition: Partition, clip: Clip, first: int, file: str, writer: ShardWriter) -> None:
    done = 0
    for lines in _lines(partition):
        part = slice(done, done + lines.num_rows)
        images = np.asarray(partition.images[part], np.float32)
        texts = _texts(partition, clip, part, lines)
        rows = first + np.arange(part.start, part.stop)
        good, images, texts = _unit(images, texts)
        writer.refuse(_refusals(rows, lines, good, file))
        metadata = _metadata(lines, rows, file)
        cosine = pa.array(half_cosines(images, texts), pa.float32())
        table = metadata.filter(pa.array(good)).set_column(
            SCHEMA.names.index("cosine"), SCHEMA.field("cosine"), cosine
        )
        writer.add(images, texts, table)
        done = part.stop


def _texts(partition: Partition, clip: Clip, part: slice, lines: pa.Table) -> Float32:
    if partition.texts is not None:
        return np.asarray(partition.texts[part], np.float32)
    return clip.encode_texts(_captions(lines))


def _unit(images: Float32, texts: Float32) -> tuple[Any, Float32, Float32]:
    """Which rows have a direction on both sides, and those, at unit length."""
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = [np.linalg.norm(side, axis=1) for side in (images, texts)]
    good = np.logical_and.reduce([np.isfinite(size) & (size > 0) for size in sizes])
    images, texts = (side[good] / size[good, None] for side, size in zip((images, texts), sizes, strict=True))
    return good, images, texts


def _refusals(rows: Int64, lines: pa.Table, good: Any, file: str) -> list[Refusal]:
    bad = lines.take(pa.array(np.flatnonzero(~good)))
    keys, urls = (_text_column(bad, name) for name in ("key", "url"))
    reason = "embedding: not finite or zero norm"
    named = zip(rows[~good].tolist(), keys, urls, strict=True)
    return [Refusal(row, key, file, url, reason) for row, key, url in named]


def _lines(partition: Partition) -> Iterator[pa.Table]:
    """Only our columns: nobody's other columns are unpacked."""
    columns = embeddings.columns_of(partition.metadata)
    for batch in tables.batches(partition.metadata, columns, "metadata of published embeddings"):
        yield pa.Table.from_batches([batch])


def _metadata(lines: pa.Table, rows: Int64, file: str) -> pa.Table:
    """In our columns; what the publisher does not tell stays empty."""
    count, columns = len(rows), {}
    for field in SCHEMA:
        theirs = next((name for name in NAMES.get(field.name, ()) if name in lines.column_names), None)
        columns[field.name] = lines.column(theirs).cast(field.type) if theirs else pa.nulls(count, field.type)
    columns |= {"row": pa.array(rows), "file": pa.array([file] * count)}
    columns["url"], columns["key"] = (pa.array(_text_column(lines, name)) for name in ("url", "key"))
    captions = _captions(lines)
    columns["caption"] = pa.array(captions)
    columns["caption_length"] = pa.array([len(caption) for caption in captions], pa.int32())
    columns["opt_out"] = columns["opt_out"].fill_null(False)
    return pa.table(columns, schema=SCHEMA)


def _text_column(lines: pa.Table, name: str) -> list[str]:
    theirs = next((other for other in NAMES[name] if other in lines.column_names), None)
    return (
        [str(value or "") for value in lines.column(theirs).to_pylist()] if theirs else [""] * lines.num_rows
    )


def _captions(lines: pa.Table) -> list[str]:
    return _text_column(lines, "caption")


def _check_shape(partition: Partition, dim: int, rows: int, where: str) -> None:
    shapes = [partition.images.shape, (rows, dim), (partition.metadata.metadata.num_rows, dim)]
    shapes += [partition.texts.shape] if partition.texts is not None else []
    if len(set(shapes)) > 1:
        raise DataError(
            what=f"images {shapes[0]}, texts {shapes[3] if len(shapes) > 3 else 'none'}, metadata "
            f"{shapes[2][0]} rows; {rows} rows were registered and the model has {dim} dimensions",
            where=where,
            fix="set encode.model to the model that made the embeddings, or fetch the partition again",
        )


def _check_model(partition: Partition, clip: Clip, where: str) -> None:
    """Compares stored texts with the same captions encoded here."""
    lines = next(_lines(partition), None)
    captions = [caption for caption in _captions(lines)[:CHECKED_CAPTIONS]] if lines is not None else []
    known = [place for place, caption in enumerate(captions) if caption]
    if partition.texts is None and not known:
        raise DataError(what="neither text embeddings nor captions", where=where, fix="add one of the two")
    if partition.texts is None or not known:
        return
    good, stored, here = _unit(
        np.asarray(partition.texts[known], np.float32), clip.encode_texts([captions[k] for k in known])
    )
    if good.any() and float((stored * here).sum(axis=1).mean()) < SAME_MODEL:
        raise DataError(
            what=f"these embeddings were not made by {clip.name}: captions encoded again are elsewhere",
            where=where,
            fix="set encode.model to the model that made the embeddings",
        )
