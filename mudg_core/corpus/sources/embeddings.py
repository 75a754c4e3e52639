"""Published embeddings in the layout of clip-retrieval: `img_emb/`, `text_emb/`, `metadata/`, in partitions.

Only listed and opened here; what they become is in `encode.published`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from mudg_core.corpus.sources import tables
from mudg_core.corpus.sources.files import Entry, SourceFiles
from mudg_core.corpus.sources.shard import SourceFile
from mudg_core.errors import DataError

IMAGE = re.compile(r"(?P<top>(?:.*/)?)img_emb/img_emb_(?P<part>\d+)\.npy")
HEADER_BYTES = 4096  # of which numpy writes 128
MAX_LENGTH = 1 << 62  # of a side: a number of thousands of digits cannot even be printed
AGAIN = "fetch the partition again, or leave it out"
# What a column of the metadata is called by those who publish embeddings; the first that is there counts.
NAMES = {
    "key": ("key", "image_path"),
    "url": ("url", "URL"),
    "caption": ("caption", "TEXT", "text"),
    "sha256": ("sha256",),
    "width": ("original_width", "width", "WIDTH"),
    "height": ("original_height", "height", "HEIGHT"),
    "opt_out": ("opt_out",),
}


class Partition(NamedTuple):
    """One partition on this machine's disk; features are memory-mapped."""

    images: Any
    texts: Any | None
    metadata: tables.Table


def recognises(entries: Sequence[Entry]) -> bool:
    return any(IMAGE.fullmatch(entry.name) for entry in entries)


def parts(files: SourceFiles, entries: Sequence[Entry], rows_per_shard: int) -> Iterator[list[SourceFile]]:
    names = {entry.name for entry in entries}
    images = [entry for entry in entries if IMAGE.fullmatch(entry.name)]
    for entry in sorted(images, key=lambda entry: _order(entry.name)):
        _, metadata = siblings(entry.name)
        if metadata not in names:
            raise DataError(what=f"there is no {metadata}", where=f"{files.url}/{entry.name}", fix=AGAIN)
        rows = _checked_rows(files, entry, {other.name: other for other in entries})
        if rows:
            fingerprint = files.fingerprint(entry)
            yield [SourceFile(name=entry.name, size=entry.size, rows=rows, fingerprint=fingerprint)]


def siblings(image: str) -> tuple[str, str]:
    """Where the texts and the metadata of a partition lie."""
    match = IMAGE.fullmatch(image)
    assert match
    top, part = match["top"], match["part"]
    return f"{top}text_emb/text_emb_{part}.npy", f"{top}metadata/metadata_{part}.parquet"


def columns_of(metadata: tables.Table) -> list[str]:
    """Those that we read; of a file that has none of them the first, for its number of rows."""
    names = {name for names in NAMES.values() for name in names}
    there: list[str] = metadata.schema_arrow.names
    return [name for name in there if name in names] or there[:1]


@contextmanager
def open_partition(files: SourceFiles, file: SourceFile, scratch: Path) -> Iterator[Partition]:
    texts, metadata = siblings(file.name)
    where = f"{files.url}/{file.name}"
    with (
        files.local(file.name, scratch) as images,
        files.local(metadata, scratch) as lines,
        files.local(texts, scratch) if files.objects.exists(texts) else nullcontext() as captions,
        tables.open_table(lines, lines.stat().st_size, f"{files.url}/{metadata}") as table,
    ):
        files.expect(file.name, file.fingerprint, images)
        yield Partition(_array(images, where), _array(captions, where) if captions else None, table)


def _array(path: Path, where: str) -> Any:
    with path.open("rb") as stream:
        _shape(stream, path.stat().st_size, where)
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(what=f"cannot be read as .npy: {error}", where=where, fix=AGAIN) from error


def _order(name: str) -> tuple[str, int]:
    match = IMAGE.fullmatch(name)
    assert match
    return match["top"], int(match["part"])


def _checked_rows(files: SourceFiles, image: Entry, entries: Mapping[str, Entry]) -> int:
    """How many rows a partition has, if its headers agree with each other and with the sizes of its files."""
    texts, metadata = siblings(image.name)
    shape = _shape_of(files, image)
    if texts in entries and _shape_of(files, entries[texts]) != shape:
        what = f"{_shape_of(files, entries[texts])} texts beside {shape} images"
        raise DataError(what=what, where=f"{files.url}/{texts}", fix=AGAIN)
    where = f"{files.url}/{metadata}"
    with files.open(entries[metadata]) as stream:
        table = tables.open_table(stream, entries[metadata].size, where)
        tables.check_encodings(table, columns_of(table), where)
        lines = table.metadata.num_rows
    if lines != shape[0]:
        raise DataError(what=f"{lines} rows of metadata, {shape[0]} of images", where=where, fix=AGAIN)
    return shape[0]


def _shape_of(files: SourceFiles, entry: Entry) -> tuple[int, int]:
    """From the header alone."""
    with files.open(entry) as stream:
        return _shape(stream, entry.size, f"{files.url}/{entry.name}")


def _shape(stream: IO[bytes], size: int, where: str) -> tuple[int, int]:
    """What the header of an .npy says, if it is what we take and the file is as long as that. A header is a
    Python literal that a stranger wrote, so reading it may raise almost anything."""
    try:
        version = np.lib.format.read_magic(stream)
        versions = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, fortran, dtype = versions[version](stream, HEADER_BYTES)
        start = stream.tell()
    except Exception as error:
        what = f"cannot be read as .npy: {type(error).__name__}: {str(error)[:200]}"
        raise DataError(what=what, where=where, fix=AGAIN) from error
    is_matrix = len(shape) == 2 and 0 <= shape[0] < MAX_LENGTH and 1 <= shape[1] < MAX_LENGTH
    if not is_matrix or fortran or dtype not in (np.float16, np.float32):
        order = " in Fortran order" if fortran else ""
        lengths = ", ".join(f"{length:.4g}" if abs(length) < MAX_LENGTH else "…" for length in shape[:4])
        what = f"features are {str(dtype)[:50]} of shape ({lengths}){order}, not float16 or float32 rows"
        raise DataError(what=what, where=where, fix="write them as float16 (n, dim)")
    rows, dim = (int(length) for length in shape)
    expected = start + rows * dim * dtype.itemsize
    if size != expected:
        what = f"the header claims {rows} rows of {dim}, {expected} bytes in all; the file has {size}"
        raise DataError(what=what, where=where, fix=AGAIN)
    return rows, dim
