"""Parquet files of strangers: read in small batches, with a limit for what a few bytes may unpack to.

A text that comes again and again is stored once, so a kilobyte can stand for gigabytes, and no size in the
file says so. Texts therefore stay as they are stored (a dictionary and numbers) until their lengths are seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mudg_core.errors import DataError

BATCH = 1024
MAX_TEXT_BYTES = (
    64 << 10
)  # of one value: a longer caption is nobody's caption, and a longer address no address
MAX_BATCH_BYTES = 32 << 20
MAX_ROWS_PER_BYTE = 100  # a list of different things has many bytes a row
MAX_CHUNK_BYTES, MAX_RATIO = 256 << 20, 200  # a column chunk may be large, or compressed that much, not both
_BUFFER_BYTES = 8 << 20
_AGAIN = "fetch the file again, or leave it out"


def open_table(source: Any, size: int, where: str) -> pq.ParquetFile:
    """Its header, judged; `size` is that of the file."""
    try:
        schema = pq.ParquetFile(source)
        texts = [field.name for field in schema.schema_arrow if _is_text(field.type)]
        table = pq.ParquetFile(
            source, metadata=schema.metadata, read_dictionary=texts, buffer_size=_BUFFER_BYTES
        )
        rows = table.metadata.num_rows
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise DataError(what=f"not a parquet file: {error}", where=where, fix=_AGAIN) from error
    if not 0 <= rows <= size * MAX_ROWS_PER_BYTE:
        raise DataError(what=f"{size} bytes claim to hold {rows} rows", where=where, fix=_AGAIN)
    return table


def batches(
    table: pq.ParquetFile, columns: Sequence[str], where: str, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows in order, with plain columns. A text that is too long is left out (null)."""
    for group in range(table.num_row_groups) if groups is None else groups:
        _check_group(table, group, columns, where)
        try:
            found = table.iter_batches(BATCH, row_groups=[group], columns=list(columns))
            for batch in found:
                yield _plain(batch, f"{where}, row group {group}")
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise DataError(
                what=f"row group {group} cannot be read: {error}", where=where, fix=_AGAIN
            ) from error


def _check_group(table: pq.ParquetFile, group: int, columns: Sequence[str], where: str) -> None:
    found = table.metadata.row_group(group)
    for chunk in (found.column(number) for number in range(found.num_columns)):
        if chunk.path_in_schema not in columns:
            continue
        unpacked = chunk.total_uncompressed_size
        if unpacked > MAX_CHUNK_BYTES and unpacked > MAX_RATIO * max(1, chunk.total_compressed_size):
            raise DataError(
                what=f"row group {group}: {chunk.total_compressed_size} bytes of column "
                f"{chunk.path_in_schema} unpack to {unpacked}",
                where=where,
                fix=_AGAIN,
            )


def _plain(batch: pa.RecordBatch, where: str) -> pa.RecordBatch:
    left, columns = MAX_BATCH_BYTES, {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not pa.types.is_dictionary(column.type) and not _is_small(column.type):
            fix = "write texts, numbers or booleans, one a row"
            raise DataError(what=f"column {name} holds {column.type}", where=where, fix=fix)
        if pa.types.is_dictionary(column.type):
            column, size = _short(column)
            left -= size
            if left < 0:
                raise DataError(
                    what=f"{batch.num_rows} rows unpack to more than {MAX_BATCH_BYTES >> 20} MB of text",
                    where=where,
                    fix=_AGAIN,
                )
            column = column.cast(column.type.value_type)
        columns[name] = column
    return pa.RecordBatch.from_pydict(columns)


def _short(column: Any) -> tuple[Any, int]:
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
    return any(
        check(kind)
        for check in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )
