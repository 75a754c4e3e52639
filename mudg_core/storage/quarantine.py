"""Setting a damaged artifact aside, byte for byte, so that it can be both rebuilt and looked into."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress

from mudg_core.errors import ConflictError
from mudg_core.storage import layout
from mudg_core.storage.build_info import now
from mudg_core.storage.objects import Objects


def set_aside(objects: Objects, stage: str, key: str, found: tuple[bytes, str], reason: str) -> None:
    """Copy first, delete second: killed in between, the copy is there twice and nothing is lost. A second
    reader that finds the same fault at the same time does the same, and neither minds the other."""
    data, etag = found
    token = hashlib.sha256(data).hexdigest()[:16]
    note = json.dumps({"reason": reason, "quarantined": now()}, sort_keys=True, indent=1).encode()
    with suppress(ConflictError):
        objects.put_new(layout.quarantine(stage, key, token, "manifest.json"), data)
    with suppress(ConflictError):
        objects.put_new(layout.quarantine(stage, key, token, "reason.json"), note)
    with suppress(ConflictError):
        objects.delete(layout.manifest(stage, key), expected_etag=etag)
