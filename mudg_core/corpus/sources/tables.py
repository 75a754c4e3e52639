"""Parquet files of strangers: read in small batches, with a limit for what a few bytes may unpack to.

A text that comes again and again is stored once, so a kilobyte can stand for gigabytes, and no size in the
file says so. Texts therefore stay as they are stored (a dictionary and numbers) until their lengths are seen.
Two encodings cannot be read so. DELTA_BYTE_ARRAY repeats the beginning of the text before, and of
DELTA_LENGTH_BYTE_ARRAY Arrow takes memory for as many lengths as a page claims: a few bytes of either stand
for gigabytes, so both are refused, by the footer when a file is added and by each page before it is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mudg_core.corpus.sources.pages import pages
from mudg_core.errors import DataError

BATCH = 1024
MAX_TEXT_BYTES = 64 << 10  # of one value: longer captions and addresses are nobody's
MAX_BATCH_BYTES = 32 << 20
MAX_ROWS_PER_BYTE = 100  # a list of different things has many bytes a row
MAX_CHUNK_BYTES, MAX_RATIO = 256 << 20, 200  # a column chunk may be large, or compressed that much, not both
MAX_PAGE_BYTES = 256 << 20  # a reader holds one whole, and a dictionary beside it
_BUFFER_BYTES = 8 << 20
UNREAD = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}
_AGAIN = "fetch the file again, or leave it out"


class Table(pq.ParquetFile):  # type: ignore[misc, unused-ignore]
    """One that knows what it was opened from: a path, or a stream that can seek."""

    def __init__(self, source: Any, **options: Any) -> None:
        super().__init__(source, **options)
        self.source = source


def open_table(source: Any, size: int, where: str) -> Table:
    """Its header, judged; `size` is that of the file."""
    try:
        schema = pq.ParquetFile(source)
        _check_names(schema.schema_arrow.names)
        texts = [field.name for field in schema.schema_arrow if _is_text(field.type)]
        table = Table(source, metadata=schema.metadata, read_dictionary=texts, buffer_size=_BUFFER_BYTES)
        rows = table.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DataError(what=f"not a parquet file: {error}", where=where, fix=_AGAIN) from error
    if not 0 <= rows <= size * MAX_ROWS_PER_BYTE:
        raise DataError(what=f"{size} bytes claim to hold {rows} rows", where=where, fix=_AGAIN)
    return table


def _check_names(names: Sequence[str]) -> None:
    """ValueError if two columns have one: nobody knows which of them is meant."""
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"several columns have the same name: {', '.join(repeated)[:200]}")


def batches(
    table: Table, columns: Sequence[str], where: str, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows in order, with plain columns. A text that is too long is left out (null)."""
    check_types(table, columns, where)
    for group in range(table.num_row_groups) if groups is None else groups:
        _check_group(table, group, columns, where)
        try:
            for batch in table.iter_batches(BATCH, row_groups=[group], columns=list(columns)):
                yield _unpacked(batch, f"{where}, row group {group}")
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise DataError(
                what=f"row group {group} cannot be read: {error}", where=where, fix=_AGAIN
            ) from error


def check_types(table: Table, columns: Sequence[str], where: str) -> None:
    """Before anything is read: a list or a struct of a few bytes may be of any length."""
    schema = table.schema_arrow
    for name in columns:
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not _is_text(kind) and not _is_small(kind):
            fix = "write texts, numbers or booleans, one a row"
            raise DataError(what=f"column {name} holds {str(kind)[:100]}", where=where, fix=fix)


def check_encodings(table: Table, columns: Sequence[str], where: str) -> None:
    """By the footer, which an honest writer fills in: nobody waits for a build to hear of it."""
    for group in range(table.num_row_groups):
        for chunk in _chunks(table, group, columns):
            if unread := set(chunk.encodings) & set(UNREAD.values()):
                what = f"column {chunk.path_in_schema} is encoded as {min(unread)}, which is not read"
                fix = "write the file again with plain values or a dictionary, as most writers do"
                raise DataError(what=what, where=where, fix=fix)


def _check_group(table: Table, group: int, columns: Sequence[str], where: str) -> None:
    with _stream_of(table.source) as stream:
        for chunk in _chunks(table, group, columns):
            if problem := _problem(stream, chunk):
                raise DataError(what=f"row group {group}: {problem}", where=where, fix=_AGAIN)


def _chunks(table: Table, group: int, columns: Sequence[str]) -> Iterator[Any]:
    row_group = table.metadata.row_group(group)
    chunks = (row_group.column(number) for number in range(row_group.num_columns))
    return (chunk for chunk in chunks if chunk.path_in_schema in columns)


def _stream_of(source: Any) -> AbstractContextManager[IO[bytes]]:
    return source.open("rb") if isinstance(source, Path) else nullcontext(source)


def _problem(stream: IO[bytes], chunk: Any) -> str:
    """What is wrong with a column chunk, by the headers of its pages and not by the footer alone."""
    name, packed, starts = chunk.path_in_schema, chunk.total_compressed_size, [chunk.data_page_offset]
    if chunk.has_dictionary_page:
        starts.append(chunk.dictionary_page_offset)
    try:
        column_pages = list(pages(stream, min(starts), packed))
    except ValueError as error:
        return f"column {name}: {error}"
    if unread := {number for page in column_pages for number in page.encodings} & UNREAD.keys():
        return f"column {name} is encoded as {UNREAD[min(unread)]}, which is not read"
    sizes = [page.unpacked for page in column_pages]
    unpacked = max(sum(sizes), chunk.total_uncompressed_size)
    if max(sizes, default=0) > MAX_PAGE_BYTES:
        return f"a page of column {name} unpacks to {max(sizes)} bytes"
    if unpacked > MAX_CHUNK_BYTES and unpacked > MAX_RATIO * max(1, packed):
        return f"{packed} bytes of column {name} unpack to {unpacked}"
    return ""


def _unpacked(batch: pa.RecordBatch, where: str) -> pa.RecordBatch:
    left, columns = MAX_BATCH_BYTES, {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column, size = _without_long_texts(column)
            left -= size
            if left < 0:
                what = f"{batch.num_rows} rows unpack to more than {MAX_BATCH_BYTES >> 20} MB of text"
                raise DataError(what=what, where=where, fix=_AGAIN)
            column = column.cast(column.type.value_type)
        columns[name] = column
    return pa.RecordBatch.from_pydict(columns)


def _without_long_texts(column: Any) -> tuple[Any, int]:
    """The column without texts that are too long, and the bytes that it takes once it is unpacked."""
    lengths = pc.binary_length(column.dictionary).fill_null(0)
    fits = pc.less_equal(lengths, MAX_TEXT_BYTES)
    indices = pc.if_else(pc.take(fits, column.indices), column.indices, None)
    size = pc.sum(pc.take(lengths, indices)).as_py() or 0
    if pc.all(fits).as_py() is not False:
        return column, size
    dictionary = pc.if_else(fits, column.dictionary, None)
    return pa.DictionaryArray.from_arrays(indices, dictionary), size


def _is_small(kind: pa.DataType) -> bool:
    """Whether every value takes a few bytes, whatever a stranger wrote."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_null(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
