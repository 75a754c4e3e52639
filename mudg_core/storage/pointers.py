"""Named references that move (`current`), each move conditional on what the mover has seen."""

from __future__ import annotations

import json
import uuid

from mudg_core.errors import ConflictError, DataError
from mudg_core.storage import layout
from mudg_core.storage.circumstances import now
from mudg_core.storage.manifest import ArtifactRef, Record
from mudg_core.storage.objects import Objects


class Pointer(Record):
    """Where a pointer pointed when it was read. A reader keeps `ref` for as long as it works."""

    name: str
    ref: ArtifactRef
    etag: str


def read(objects: Objects, name: str) -> Pointer | None:
    path = layout.pointer(name)
    found = objects.read(path)
    if found is None:
        return None
    try:
        ref = ArtifactRef.model_validate(json.loads(found[0])["ref"])
    except (ValueError, KeyError, TypeError) as error:
        where = layout.uri(objects.url, path)
        raise DataError(
            what=f"pointer {name!r} is damaged", where=where, fix="delete it, then promote a version again"
        ) from error
    return Pointer(name=name, ref=ref, etag=found[1])


def move(objects: Objects, name: str, ref: ArtifactRef, expected: Pointer | None) -> Pointer:
    """Each move writes other bytes, so a mover whose reply was lost can tell its own move from another's."""
    document = {"ref": ref.model_dump(mode="json"), "move": uuid.uuid4().hex, "moved": now()}
    data = json.dumps(document, sort_keys=True, indent=1).encode()
    try:
        etag = objects.replace(layout.pointer(name), data, expected.etag if expected else None)
    except ConflictError as error:
        raise ConflictError(
            what=f"pointer {name!r} was moved by somebody else",
            where=error.where,
            fix="look at where it points now, and decide again",
        ) from error
    return Pointer(name=name, ref=ref, etag=etag)
