"""Does a store keep its promises? Asked before any work, because a store that ignores the condition of a
conditional put lets two writers both win, and nobody would notice."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress

from mudg_core.errors import ConflictError, StorageError, UnsafeStoreError
from mudg_core.storage import layout
from mudg_core.storage.objects import Objects


def check(objects: Objects) -> None:
    """Leaves nothing behind. Reads first, as some servers answer a put to a missing bucket by creating it.
    Every put has other bytes, as a writer recognises its own lost replies by them."""
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
    return UnsafeStoreError(
        what=f"the store {fault}: two writers could both win",
        where=objects.url,
        fix="use a store with conditional puts: a local folder, AWS S3, or a recent SeaweedFS, MinIO or Ceph",
    )
