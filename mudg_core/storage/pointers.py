"""Named references that move (`current`), each move conditional on what the mover has seen.

Where a pointer pointed before lies inside the pointer itself: one compare-and-swap then moves and records,
so the record can neither miss a move nor hold one that never happened.
"""

from __future__ import annotations

import json
import uuid

from mudg_core.errors import ConflictError, DataError, InputError
from mudg_core.storage import layout
from mudg_core.storage.build_info import now
from mudg_core.storage.manifest import ArtifactRef, Record
from mudg_core.storage.objects import Objects

MAX_HISTORY = 50


class Past(Record):
    """Where a pointer pointed once. `withdrawn`: it was moved off because what it pointed to was no good."""

    ref: ArtifactRef
    moved: str = ""
    withdrawn: bool = False


class Pointer(Record):
    """Where a pointer pointed when it was read. A reader keeps `ref` for as long as it works."""

    name: str
    ref: ArtifactRef
    etag: str
    moved: str = ""
    history: tuple[Past, ...] = ()  # oldest first


def read(objects: Objects, name: str) -> Pointer | None:
    path = layout.pointer(name)
    stored = objects.read(path)
    if stored is None:
        return None
    try:
        body = json.loads(stored.data)
        optional = {field: body[field] for field in ("moved", "history") if field in body}
        return Pointer(name=name, ref=body["ref"], etag=stored.etag, **optional)
    except (ValueError, KeyError, TypeError, InputError) as error:
        fix = "delete it, then promote a version again"
        where = layout.uri(objects.url, path)
        raise DataError(what=f"pointer {name!r} is damaged", where=where, fix=fix) from error


def move(
    objects: Objects, name: str, ref: ArtifactRef, expected: Pointer | None, *, withdraw: bool = False
) -> Pointer:
    """Each move writes other bytes, so a mover whose reply was lost can tell its own move from another's."""
    moved, history = now(), _history(expected, withdraw)
    document = {
        "ref": ref.model_dump(mode="json"),
        "move": uuid.uuid4().hex,
        "moved": moved,
        "history": [past.model_dump(mode="json") for past in history],
    }
    data = json.dumps(document, sort_keys=True, indent=1).encode()
    try:
        etag = objects.replace(layout.pointer(name), data, expected.etag if expected else None)
    except ConflictError as error:
        what, fix = (
            f"pointer {name!r} was moved by another process",
            "look at where it points now, and decide again",
        )
        raise ConflictError(what=what, where=error.where, fix=fix) from error
    return Pointer(name=name, ref=ref, etag=etag, moved=moved, history=history)


def _history(before: Pointer | None, withdraw: bool) -> tuple[Past, ...]:
    """Bounded, as every reader reads all of it."""
    if before is None:
        return ()
    past = Past(ref=before.ref, moved=before.moved, withdrawn=withdraw)
    return (*before.history, past)[-MAX_HISTORY:]
