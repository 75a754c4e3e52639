"""Lists of web addresses with captions, in parquet files as LAION publishes them. They are downloaded
first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus.sources.files import Entry, SourceFiles
from mudg_core.corpus.sources.shard import SourceFile, SourceShard
from mudg_core.errors import DataError

# What a column is called by those who publish such lists; the first that is there counts.
NAMES = {
    "url": ("url", "URL", "image_url"),
    "caption": ("caption", "TEXT", "text", "alt_text", "alt"),
    "md5": ("md5", "MD5"),
    "sha256": ("sha256", "SHA256"),
    "opt_out": ("opt_out", "optout"),
}


def recognises(entries: Sequence[Entry]) -> bool:
    return any(entry.suffix == "parquet" for entry in entries)


def parts(files: SourceFiles, entries: Sequence[Entry], rows_per_shard: int) -> Iterator[list[SourceFile]]:
    """A file may have millions of rows, so shards are cut out of it."""
    for entry in entries:
        if entry.suffix != "parquet":
            continue
        with files.open(entry) as stream:
            rows = _opened(stream, f"{files.url}/{entry.name}").metadata.num_rows
        known = files.fingerprint(entry)
        for start in range(0, rows, rows_per_shard):
            here = min(rows_per_shard, rows - start)
            cut = {"name": entry.name, "size": entry.size, "fingerprint": known}
            yield [SourceFile(**cut, rows=here, start=start)]


def read(files: SourceFiles, shard: SourceShard) -> pa.Table:
    """The links of a shard, with the columns of NAMES that there are."""
    tables = [_slice(files, file) for file in shard.files]
    return pa.concat_tables(tables, promote_options="default")


def _slice(files: SourceFiles, wanted: SourceFile) -> pa.Table:
    """Only the row groups that hold the rows, and of these only our columns."""
    tables, first = [], 0
    files.expect(wanted.name, wanted.fingerprint)
    with files.open(Entry(wanted.name, wanted.size)) as stream:
        table = _opened(stream, f"{files.url}/{wanted.name}")
        columns = _columns(table.schema_arrow)
        for group in range(table.num_row_groups):
            rows = table.metadata.row_group(group).num_rows
            if first < wanted.start + wanted.rows and wanted.start < first + rows:
                begin = max(0, wanted.start - first)
                found = table.read_row_group(group, columns=list(columns.values()))
                tables.append(found.slice(begin, wanted.start + wanted.rows - max(first, wanted.start)))
            first += rows
    return pa.concat_tables(tables).select(list(columns.values())).rename_columns(list(columns))


def _opened(stream: object, where: str) -> pq.ParquetFile:
    try:
        table = pq.ParquetFile(stream)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            what=f"not a parquet file: {error}", where=where, fix="fetch the file again"
        ) from error
    missing = {"url", "caption"} - _columns(table.schema_arrow).keys()
    if missing:
        raise DataError(
            what=f"no column for {' and '.join(sorted(missing))} among "
            f"{', '.join(table.schema_arrow.names)[:300]}",
            where=where,
            fix=f"name it {' or '.join(NAMES[sorted(missing)[0]])}",
        )
    return table


def _columns(schema: pa.Schema) -> dict[str, str]:
    """Our name of each column that is there, and theirs."""
    found = {
        ours: next((name for name in names if name in schema.names), None) for ours, names in NAMES.items()
    }
    return {ours: name for ours, name in found.items() if name is not None}
