"""Small artifacts to store, and ways to harm them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from mudg_core.storage.objects_local import LocalObjects
from mudg_core.storage.objects_s3 import S3Objects

SHARD = "img_emb/img_emb_0.npy"
REPORT = "report.html"
_clock = itertools.count()


def recipe(stage: str = "embed", **changes: Any) -> Recipe:
    return Recipe(**({"stage": stage, "algorithm": 1, "settings": {"rows": 3, "rate": 0.5}} | changes))


def maker(content: bytes = b"abc" * 1000) -> Callable[[Path], Facts]:
    """Same content every time, but for a report that never comes out the same."""

    def make(folder: Path) -> Facts:
        (folder / "img_emb").mkdir()
        (folder / SHARD).write_bytes(content)
        (folder / REPORT).write_text(f"took {next(_clock)} s")
        return Facts({"rows": len(content)}, volatile=frozenset({REPORT}))

    return make


def forbidden(folder: Path) -> Facts:
    raise AssertionError("built again although it was there")


def stored(store: ArtifactStore, prefix: str = "artifacts/") -> list[str]:
    return [path for path in store.objects.list(prefix) if not path.endswith("/")]


def overwrite(store: ArtifactStore, path: str, data: bytes) -> None:
    """Behind the store's back, as a failing disk would."""
    if isinstance(store.objects, LocalObjects):
        file = store.objects.local_path(path)
        file.chmod(0o644)
        file.write_bytes(data)
    elif isinstance(store.objects, S3Objects):
        key = f"{store.objects.prefix}/{path}"
        store.objects.client.put_object(Bucket=store.objects.bucket, Key=key, Body=data)


def flip_bit(store: ArtifactStore, path: str) -> None:
    found = store.objects.read(path)
    assert found is not None
    data = bytearray(found[0])
    data[len(data) // 2] ^= 1
    overwrite(store, path, bytes(data))


def path_of(store: ArtifactStore, ref: ArtifactRef, name: str = SHARD) -> str:
    return store.manifest(ref).path(name)
