"""The files of a source, on a local disk or in a bucket, behind one small interface.

The same code as for artifacts reaches them (`storage.objects`), so that time-outs, retries and errors are
the same. A source is only ever read.
"""

from __future__ import annotations

import hashlib
import io
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mudg_core.errors import DataError, InputError, MissingArtifactError
from mudg_core.settings import StorageSettings
from mudg_core.storage.objects import Objects, open_objects

MAX_ENTRIES = 2_000_000
SAMPLED = 64 << 10  # bytes of a fingerprint from each of three places


class Entry(NamedTuple):
    """A file below a source's URL."""

    name: str
    size: int

    @property
    def suffix(self) -> str:
        return self.name.rpartition("/")[2].rpartition(".")[2].lower()

    @property
    def stem(self) -> str:
        return self.name.removesuffix(f".{self.suffix}") if "." in self.name else self.name


class SourceFiles:
    """What lies below a URL; a URL that names one file is a source of that file."""

    def __init__(self, url: str, storage: StorageSettings) -> None:
        self.url = as_url(url)
        root, self.only = self.url, ""
        if Path(self.url).suffix.lower() in (".tar", ".parquet"):
            root, _, self.only = self.url.rpartition("/")
        self.objects: Objects = open_objects(storage.model_copy(update={"url": root}))

    def entries(self) -> list[Entry]:
        """All files in the order of their names; hidden ones (`.git/…`, `.DS_Store`) are nobody's data."""
        entries = []
        for name, size, _ in self.objects.entries(self.only):
            if any(part.startswith(".") for part in name.split("/")):
                continue
            entries.append(Entry(name, size))
            if len(entries) > MAX_ENTRIES:
                fix = "pack the images into WebDataset tars, or add the folders below one by one"
                raise InputError(what=f"more than {MAX_ENTRIES} files", where=self.url, fix=fix)
        return sorted(entries)

    def fingerprint(self, entry: Entry) -> str:
        """Tells files apart by their size, beginning, middle and end: a terabyte is not read to be listed."""
        return _fingerprint(entry.size, partial(self.objects.read_range, entry.name))

    def expect(self, name: str, fingerprint: str, path: Path | None = None) -> None:
        """Refuses a file that is not what was added; where it lies, or as it was fetched. Rows are counted
        within files, so those of a file that has changed would be other images under the same numbers."""
        if path is None:
            entry = next((Entry(e.path, e.size) for e in self.objects.entries(name) if e.path == name), None)
            actual = self.fingerprint(entry) if entry else None
        else:
            actual = _fingerprint_of(path)
        if actual is None:
            raise MissingArtifactError(
                what=f"{name} is gone since it was added", where=self.url, fix="put it back as it was"
            )
        if actual != fingerprint:
            fix = "put it back as it was, and new data into new files; `mudg takedown` takes images out"
            raise DataError(what=f"{name} has changed since it was added", where=self.url, fix=fix)

    def read(self, name: str, limit: int) -> bytes:
        """The beginning of a file."""
        return self.objects.read_range(name, 0, limit)

    def open(self, entry: Entry) -> io.BufferedReader:
        """For readers that want few bytes of a large file."""
        return io.BufferedReader(RangeFile(self.objects, entry), 1 << 16)

    @contextmanager
    def local(self, name: str, scratch: Path) -> Iterator[Path]:
        """The file on this machine's disk; a copy in `scratch` for as long as it is used, if it lies
        elsewhere."""
        for _, path in self.fetched([name], scratch):
            yield path

    def fetched(self, names: Sequence[str], scratch: Path) -> Iterator[tuple[str, Path]]:
        """The same for many, one after the other: the next is fetched while one is read."""
        with ThreadPoolExecutor(1, thread_name_prefix="fetch") as pool:
            coming = [pool.submit(self._fetch, name, scratch) for name in names[:1]]
            for number, name in enumerate(names):
                path = coming.pop().result()
                coming += [
                    pool.submit(self._fetch, later, scratch) for later in names[number + 1 : number + 2]
                ]
                try:
                    yield name, path
                finally:
                    if path.parent == scratch:
                        path.unlink(missing_ok=True)

    def _fetch(self, name: str, scratch: Path) -> Path:
        if local := self.objects.local_path(name):
            return local
        copy = scratch / uuid.uuid4().hex
        self.objects.download(name, copy)
        return copy


class RangeFile(io.RawIOBase):
    """A file that is read where it lies, piece by piece."""

    def __init__(self, objects: Objects, entry: Entry) -> None:
        super().__init__()
        self.objects, self.entry, self.place = objects, entry, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.place = offset + (0, self.place, self.entry.size)[whence]
        return self.place

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        wanted = min(len(view), max(0, self.entry.size - self.place))
        data = self.objects.read_range(self.entry.name, self.place, wanted) if wanted else b""
        view[: len(data)] = data
        self.place += len(data)
        return len(data)


def _fingerprint(size: int, read: Callable[[int, int], bytes]) -> str:
    digest = hashlib.sha256(str(size).encode())
    for start in sorted({0, max(0, (size - SAMPLED) // 2), max(0, size - SAMPLED)}):
        digest.update(read(start, min(SAMPLED, size)))
    return digest.hexdigest()


def _fingerprint_of(path: Path) -> str | None:
    """Of a file on this machine; None if there is none."""

    def read(start: int, length: int) -> bytes:
        stream.seek(start)
        return stream.read(length)

    try:
        with path.open("rb") as stream:
            return _fingerprint(path.stat().st_size, read)
    except FileNotFoundError:
        return None


def as_url(text: str) -> str:
    """What people type for a source: a URL, or a path."""
    if text.startswith("s3://"):
        return text.rstrip("/")
    if "://" in text and not text.startswith("file://"):
        fix = "give a path, file:///path or s3://bucket/prefix; lists of links come as parquet files"
        raise InputError(what=f"cannot read {text[:200]!r}", fix=fix)
    path = Path(os.path.normpath(Path(text.removeprefix("file://")).expanduser().absolute()))  # without `..`
    if not path.exists():
        raise InputError(what="there is no such file or folder", where=str(path), fix="check the path")
    return f"file://{path}"
