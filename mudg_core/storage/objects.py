"""The few things that we ask of a store of objects, and how one is opened from settings.

Every write that others may see is conditional: it either creates an object or replaces exactly the version
that the writer has seen. That is all the coordination there is, so two kinds of store behave the same.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from mudg_core.errors import ConflictError, StorageError, UnsafeStoreError
from mudg_core.settings import StorageSettings
from mudg_core.storage import layout

BLOCK = 1 << 20


class Stored(NamedTuple):
    """An object's content, and the etag that a later write may be conditional on."""

    data: bytes
    etag: str


class Entry(NamedTuple):
    """An object in a listing; `modified` in seconds since 1970, by the store's clock."""

    path: str
    size: int
    modified: float


class Objects(Protocol):
    """Objects by path (see `layout`). Raises StorageError and its kin, never a library's own errors."""

    @property
    def url(self) -> str:
        """Absolute URL of the root."""

    def put_new(self, path: str, data: bytes) -> str:
        """Creates an object and returns its etag; ConflictError if there already is one."""

    def read(self, path: str) -> Stored | None:
        """None if there is no such object."""

    def replace(self, path: str, data: bytes, expected_etag: str | None) -> str:
        """Compare-and-swap: ConflictError unless the object is at `expected_etag` (None: absent)."""

    def upload(self, path: str, local_file: Path, sha256: str) -> None:
        """Stores a file and verifies what was stored. May move the file rather than copy it."""

    def download(self, path: str, local_file: Path) -> None:
        """Copies an object to a file; MissingArtifactError if there is none. The caller verifies."""

    def exists(self, path: str) -> bool: ...

    def delete(self, path: str, expected_etag: str | None = None) -> None:
        """Deletes if there (and, if an etag is given, only at that version: else ConflictError)."""

    def list(self, prefix: str) -> Iterator[str]:
        """Paths that begin with `prefix`: for people and garbage collection, no decision rests on it."""

    def entries(self, prefix: str) -> Iterator[Entry]:
        """The same with the size and the age of each object."""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Some bytes of an object; MissingArtifactError if there is none."""

    def local_path(self, path: str) -> Path | None:
        """Where the object lies on this machine's disk, if it does at all."""

    def link(self, path: str, seconds: int) -> str:
        """An address that opens the object in a browser, for so long at least where links expire. It may be
        signed, so it is for people's eyes and for no log or manifest."""


def open_objects(settings: StorageSettings) -> Objects:
    """The store that a URL names. boto3 is imported only where S3 is asked for: it is slow to load."""
    scheme, separator, rest = settings.url.partition("://")
    if scheme == "file" and separator and rest:
        from mudg_core.storage.objects_local import LocalObjects

        return LocalObjects(Path(rest))
    if scheme == "s3" and rest.strip("/"):
        from mudg_core.storage.objects_s3 import S3Objects

        return S3Objects(settings)
    fix = "supported are file:///absolute/path, file://relative/path and s3://bucket/prefix"
    raise UnsafeStoreError(what=f"cannot use {settings.url[:200]!r} as a store", where="storage.url", fix=fix)


def sha256_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_conditional_puts(objects: Objects) -> None:
    """Before any work: with a store that ignores them two writers both win, and nobody notices. Reads first,
    as some servers create a missing bucket on a put. Every put has other bytes, as a writer recognises its
    own lost replies by them. Leaves nothing behind."""
    path = layout.probe(uuid.uuid4().hex)
    objects.read(path)
    try:
        first = objects.put_new(path, b"first")
        _must_conflict(objects, "create if absent", lambda: objects.put_new(path, b"second"))
        second = objects.replace(path, b"third", first)
        _must_conflict(objects, "replace if unchanged", lambda: objects.replace(path, b"fourth", first))
        if objects.read(path) != (b"third", second):
            raise _unsafe(objects, "does not return what was written last")
    finally:
        with suppress(StorageError):  # the first error says more than a failed cleaning up
            objects.delete(path)


def _must_conflict(objects: Objects, promise: str, put: Callable[[], str]) -> None:
    try:
        put()
    except ConflictError:
        return
    raise _unsafe(objects, f"ignores the condition {promise!r}")


def _unsafe(objects: Objects, fault: str) -> UnsafeStoreError:
    fix = "use a store with conditional puts: a local folder, AWS S3, or a recent SeaweedFS, MinIO or Ceph"
    return UnsafeStoreError(what=f"the store {fault}: two writers could both win", where=objects.url, fix=fix)
