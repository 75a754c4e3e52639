"""Finding one's way among artifacts: from what a person types to a reference, from that to its ancestors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from mudg_core.errors import DataError, InputError, MissingArtifactError
from mudg_core.storage import layout
from mudg_core.storage.manifest import ArtifactRef, Manifest

if TYPE_CHECKING:
    from mudg_core.storage.store import ArtifactStore

SHOWN = 10
FIX = "give stage/beginning-of-key, a URI inside this store, or the name of a pointer"


def resolve(store: ArtifactStore, text: str) -> ArtifactRef:
    text = text.strip()
    if layout.NAME.fullmatch(text):
        pointer = store.pointer(text)
        if pointer is None:
            raise MissingArtifactError(what=f"there is no pointer {text!r}", where=store.url, fix=FIX)
        return pointer.ref
    parsed = layout.parse(text, store.url)
    if parsed is None:
        what = f"{text[:200]!r} does not name an artifact of this store"
        raise InputError(what=what, where=store.url, fix=FIX)
    return _by_prefix(store, *parsed)


def _by_prefix(store: ArtifactStore, stage: str, prefix: str) -> ArtifactRef:
    keys = sorted(set(_keys(store, stage, prefix)))
    if not keys:
        what = f"no artifact begins with {stage}/{prefix}"
        raise MissingArtifactError(what=what, where=store.url, fix="check the stage and the key")
    if len(keys) > 1:
        shown = ", ".join(key[:16] for key in keys[:SHOWN])
        what = f"{stage}/{prefix} names {len(keys)} artifacts: {shown}"
        raise InputError(what=what, where=store.url, fix="give more of the key")
    return store.at(stage, keys[0])


def _keys(store: ArtifactStore, stage: str, prefix: str) -> Iterator[str]:
    for path in filter(layout.is_own, store.objects.list(layout.artifacts(stage, prefix))):
        parts = path.split("/")
        if len(parts) == 4:
            yield parts[2]


def lineage(
    store: ArtifactStore, ref: ArtifactRef, seen: set[ArtifactRef] | None = None
) -> Iterator[Manifest]:
    """Depth first; `seen` makes a diamond of parents come out once."""
    seen = set() if seen is None else seen
    if ref in seen:
        return
    seen.add(ref)
    manifest = store.manifest(ref)
    for parent in manifest.recipe.all_parents():
        yield from lineage(store, parent, seen)
    yield manifest


def family(store: ArtifactStore, manifest: Manifest) -> Iterator[Manifest]:
    """A manifest and those of its ancestors that are there, each once: for whoever can do with gaps."""
    seen, waiting = {manifest.ref}, [manifest]
    while waiting:
        yield (one := waiting.pop())
        for parent in one.recipe.all_parents():
            if parent not in seen:
                seen.add(parent)
                with suppress(DataError):
                    waiting.append(store.manifest(parent))


def artifacts(store: ArtifactStore, stage: str) -> Iterator[Manifest]:
    """All artifacts of a stage, newest last; for people who look around, not for decisions."""
    found = []
    for key in sorted(set(_keys(store, stage, ""))):
        with suppress(MissingArtifactError):  # collected since it was listed
            found.append(store.manifest(store.at(stage, key)))
    yield from sorted(found, key=lambda manifest: manifest.circumstances.created)
