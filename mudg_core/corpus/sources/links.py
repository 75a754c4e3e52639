"""Lists of web addresses with captions, in parquet files as LAION publishes them. They are downloaded
first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from mudg_core.corpus.sources import tables
from mudg_core.corpus.sources.files import Entry, SourceFiles
from mudg_core.corpus.sources.shard import SourceFile, SourceShard
from mudg_core.errors import DataError

MAX_SHARD_BYTES = 512 << 20

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
            rows = _open_list(stream, entry, files).metadata.num_rows
        fingerprint = files.fingerprint(entry)
        for start in range(0, rows, rows_per_shard):
            count = min(rows_per_shard, rows - start)
            cut = {"name": entry.name, "size": entry.size, "fingerprint": fingerprint}
            yield [SourceFile(**cut, rows=count, start=start)]


def read(files: SourceFiles, shard: SourceShard) -> pa.Table:
    """The links of a shard, with the columns of NAMES that there are."""
    slices = [_slice(files, file) for file in shard.files]
    return pa.concat_tables(slices, promote_options="default")


def _slice(files: SourceFiles, wanted: SourceFile) -> pa.Table:
    """Only the row groups that hold the rows, and of these only our columns."""
    batches, first, left = list[pa.RecordBatch](), 0, MAX_SHARD_BYTES
    files.expect(wanted.name, wanted.fingerprint)
    entry, end = Entry(wanted.name, wanted.size), wanted.start + wanted.rows
    with files.open(entry) as stream:
        table = _open_list(stream, entry, files)
        columns = _columns(table.schema_arrow)
        theirs = list(columns.values())
        for group in range(table.num_row_groups):
            rows = table.metadata.row_group(group).num_rows
            if first < end and wanted.start < first + rows:
                read = tables.batches(table, theirs, f"{files.url}/{wanted.name}", [group])
                for part in _between(read, wanted.start - first, end - first):
                    batches.append(part)
                    left -= part.nbytes
                    if left < 0:
                        raise _too_much(f"{files.url}/{wanted.name}")
            first += rows
    return pa.Table.from_batches(batches).select(theirs).rename_columns(list(columns))


def _between(batches: Iterator[pa.RecordBatch], start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Of the rows of a row group those from `start` to `end`; nothing behind them is read."""
    first = 0
    for batch in batches:
        begin, stop = max(start - first, 0), min(end - first, batch.num_rows)
        if begin < stop:
            yield batch.slice(begin, stop - begin)
        first += batch.num_rows
        if first >= end:
            return


def _too_much(where: str) -> DataError:
    what = f"the links of one shard unpack to more than {MAX_SHARD_BYTES >> 20} MB"
    fix = "lower corpus.rows_per_shard and add the file again, or leave it out"
    return DataError(what=what, where=where, fix=fix)


def _open_list(stream: object, entry: Entry, files: SourceFiles) -> tables.Table:
    where = f"{files.url}/{entry.name}"
    table = tables.open_table(stream, entry.size, where)
    missing = {"url", "caption"} - _columns(table.schema_arrow).keys()
    if missing:
        raise DataError(
            what=f"no column for {' and '.join(sorted(missing))} among "
            f"{', '.join(table.schema_arrow.names)[:300]}",
            where=where,
            fix=f"name it {' or '.join(NAMES[sorted(missing)[0]])}",
        )
    theirs = list(_columns(table.schema_arrow).values())
    tables.check_types(table, theirs, where)
    tables.check_encodings(table, theirs, where)
    return table


def _columns(schema: pa.Schema) -> dict[str, str]:
    """Our name of each column that is there, and theirs."""
    columns = {ours: [name for name in names if name in schema.names] for ours, names in NAMES.items()}
    return {ours: names[0] for ours, names in columns.items() if names}
