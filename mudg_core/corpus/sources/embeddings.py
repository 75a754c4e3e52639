"""Published embeddings in the layout of clip-retrieval: `img_emb/`, `text_emb/`, `metadata/`, in partitions.

Only listed and opened here; what they become is in `encode.published`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus.sources.files import Entry, SourceFiles
from mudg_core.corpus.sources.shard import SourceFile
from mudg_core.errors import DataError

IMAGE = re.compile(r"(?P<top>(?:.*/)?)img_emb/img_emb_(?P<part>\d+)\.npy")
HEADER_BYTES = 1 << 16
AGAIN = "fetch the partition again, or leave it out"


class Partition(NamedTuple):
    """One partition on this machine's disk; features are memory-mapped."""

    images: Any
    texts: Any | None
    metadata: pq.ParquetFile


def recognises(entries: Sequence[Entry]) -> bool:
    return any(IMAGE.fullmatch(entry.name) for entry in entries)


def parts(files: SourceFiles, entries: Sequence[Entry], rows_per_shard: int) -> Iterator[list[SourceFile]]:
    names = {entry.name for entry in entries}
    found = [entry for entry in entries if IMAGE.fullmatch(entry.name)]
    for entry in sorted(found, key=lambda entry: _order(entry.name)):
        _, metadata = siblings(entry.name)
        if metadata not in names:
            raise DataError(what=f"there is no {metadata}", where=f"{files.url}/{entry.name}", fix=AGAIN)
        rows = _rows(files, entry)
        if rows:
            known = files.fingerprint(entry)
            yield [SourceFile(name=entry.name, size=entry.size, rows=rows, fingerprint=known)]


def siblings(image: str) -> tuple[str, str]:
    """Where the texts and the metadata of a partition lie."""
    found = IMAGE.fullmatch(image)
    assert found
    top, part = found["top"], found["part"]
    return f"{top}text_emb/text_emb_{part}.npy", f"{top}metadata/metadata_{part}.parquet"


@contextmanager
def opened(files: SourceFiles, file: SourceFile, scratch: Path) -> Iterator[Partition]:
    texts, metadata = siblings(file.name)
    where = f"{files.url}/{file.name}"
    with (
        files.local(file.name, scratch) as images,
        files.local(metadata, scratch) as lines,
        files.local(texts, scratch) if files.objects.exists(texts) else nullcontext() as captions,
        _parquet(lines, where) as table,
    ):
        files.expect(file.name, file.fingerprint, images)
        yield Partition(_array(images, where), _array(captions, where) if captions else None, table)


def _array(path: Path, where: str) -> Any:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(what=f"cannot be read as .npy: {error}", where=where, fix=AGAIN) from error
    if found.ndim != 2 or found.dtype not in (np.float16, np.float32):
        what = f"features are {found.dtype} of shape {found.shape}, not float16 or float32 rows"
        raise DataError(what=what, where=where, fix="write them as float16 (n, dim)")
    return found


def _parquet(path: Path, where: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(what=f"the metadata cannot be read: {error}", where=where, fix=AGAIN) from error


def _order(name: str) -> tuple[str, int]:
    found = IMAGE.fullmatch(name)
    assert found
    return found["top"], int(found["part"])


def _rows(files: SourceFiles, entry: Entry) -> int:
    """From the header alone."""
    try:
        with files.open(entry) as stream:
            version = np.lib.format.read_magic(stream)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, _ = read(stream, HEADER_BYTES)
    except (ValueError, OSError, EOFError) as error:
        where = f"{files.url}/{entry.name}"
        raise DataError(what=f"cannot be read as .npy: {error}", where=where, fix=AGAIN) from error
    return int(shape[0]) if shape else 0
