"""Finding one's way among artifacts: from what a person types to a reference, and from that to everything
that it was made from, and that was made from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mudg_core.errors import DataError, InputError, MissingArtifactError
from mudg_core.settings import Json
from mudg_core.storage import layout
from mudg_core.storage.gc.survey import survey
from mudg_core.storage.manifest import ArtifactRef, Manifest

if TYPE_CHECKING:
    from mudg_core.storage.store import ArtifactStore

MAX_KEYS = 10  # in an error message
FIX = "give stage/beginning-of-key, a URI inside this store, or the name of a pointer"
EXTENTS = ("rows", "images", "queries", "pairs", "cells")
Neighbours = Callable[[str], list[str]]


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
    keys = _keys(store, stage, prefix)
    if not keys:
        what = f"no artifact begins with {stage}/{prefix}"
        raise MissingArtifactError(what=what, where=store.url, fix="check the stage and the key")
    if len(keys) > 1:
        listed = ", ".join(key[:16] for key in keys[:MAX_KEYS])
        what = f"{stage}/{prefix} names {len(keys)} artifacts: {listed}"
        raise InputError(what=what, where=store.url, fix="give more of the key")
    return store.at(stage, keys[0])


def _keys(store: ArtifactStore, stage: str, prefix: str) -> list[str]:
    paths = filter(layout.is_own, store.objects.list(layout.artifacts(stage, prefix)))
    return sorted({path.split("/")[2] for path in paths if path.count("/") == 3})


def artifacts(store: ArtifactStore, stage: str) -> Iterator[Manifest]:
    """All artifacts of a stage, newest last; for people who look around, not for decisions."""
    manifests = []
    for key in _keys(store, stage, ""):
        with suppress(MissingArtifactError):  # collected since it was listed
            manifests.append(store.manifest(store.at(stage, key)))
    yield from sorted(manifests, key=lambda manifest: manifest.circumstances.created)


def lineage(
    store: ArtifactStore, ref: ArtifactRef, seen: set[ArtifactRef] | None = None
) -> Iterator[Manifest]:
    """Depth first, parents first; `seen` makes a diamond of parents come out once."""
    seen = set() if seen is None else seen
    if ref in seen:
        return
    seen.add(ref)
    manifest = store.manifest(ref)
    for parent in manifest.recipe.all_parents():
        yield from lineage(store, parent, seen)
    yield manifest


@dataclass(frozen=True)
class Lineage:
    """The graph around `root`, by place (`stage/key`): everything that it was made from, and, if wanted,
    everything that was made from it. Places that a manifest names and `manifests` lacks are gone."""

    root: Manifest
    manifests: dict[str, Manifest]
    children: dict[str, list[str]]

    def parents(self, place: str) -> list[str]:
        manifest = self.manifests.get(place)
        return [ref.place for ref in manifest.recipe.all_parents()] if manifest else []

    def made_from(self, place: str) -> list[str]:
        return self.children.get(place, [])

    def ancestors(self) -> list[Manifest]:
        """The root first."""
        return self._reachable(self.parents)

    def descendants(self) -> list[Manifest]:
        return self._reachable(self.made_from)

    def _reachable(self, neighbours: Neighbours) -> list[Manifest]:
        places = _reachable(self.root.ref.place, neighbours)
        return [self.manifests[place] for place in places if place in self.manifests]


def lineage_of(store: ArtifactStore, ref: ArtifactRef, *, children: bool = False) -> Lineage:
    """Children are not written down anywhere: to find them, all manifests of the store are read."""
    root = store.manifest(ref)
    manifests = {manifest.ref.place: manifest for manifest in _with_ancestors(store, root)}
    if not children:
        return Lineage(root, manifests, {})
    by_parent = _children_by_parent(store)
    for place in _reachable(ref.place, lambda place: by_parent.get(place, [])):
        manifests.setdefault(place, store.manifest(store.at(*place.split("/"))))
    return Lineage(root, manifests, {place: by_parent[place] for place in manifests if place in by_parent})


def made_from(store: ArtifactStore, refs: Iterable[ArtifactRef]) -> set[str]:
    """Places (`stage/key`) of all that was made from any of these; all manifests are read, once."""
    by_parent = _children_by_parent(store)
    roots = [ref.place for ref in refs]
    reachable = (_reachable(root, lambda place: by_parent.get(place, [])) for root in roots)
    return {place for places in reachable for place in places} - {*roots}


def _with_ancestors(store: ArtifactStore, manifest: Manifest) -> Iterator[Manifest]:
    """A manifest and those of its ancestors that are there, each once."""
    seen, waiting = {manifest.ref}, [manifest]
    while waiting:
        yield (current := waiting.pop())
        for parent in current.recipe.all_parents():
            if parent not in seen:
                seen.add(parent)
                with suppress(DataError):
                    waiting.append(store.manifest(parent))


def _children_by_parent(store: ArtifactStore) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for item in sorted(survey(store.objects).items.values(), key=lambda item: (item.created, item.name)):
        for parent in item.parents:
            children.setdefault(parent, []).append(item.name)
    return children


def _reachable(start: str, neighbours: Neighbours) -> list[str]:
    """Nearest first, each once; the start itself first."""
    seen, waiting = {start: None}, deque([start])
    while waiting:
        fresh = [name for name in dict.fromkeys(neighbours(waiting.popleft())) if name not in seen]
        seen |= dict.fromkeys(fresh)
        waiting += fresh
    return list(seen)


def extent(manifest: Manifest) -> str:
    """How large it is, in its own unit: '24000 rows'."""
    facts = manifest.facts
    return next((f"{facts[name]} {name}" for name in EXTENTS if name in facts), "")


def describe(manifest: Manifest) -> Json:
    """One artifact of the graph; `settings` are those that decided what it is."""
    parents = manifest.recipe.parents
    by_role = {role: [p] if isinstance(p, ArtifactRef) else list(p) for role, p in parents.items()}
    return {
        "artifact": str(manifest.ref),
        "stage": manifest.recipe.stage,
        "key": manifest.key,
        "digest": manifest.digest,
        "created": manifest.circumstances.created,
        "seconds": manifest.circumstances.seconds,
        "extent": extent(manifest),
        "bytes": manifest.size,
        "settings": settings_that_matter(manifest),
        "parents": {role: [str(ref) for ref in refs] for role, refs in sorted(by_role.items())},
    }


def settings_that_matter(manifest: Manifest) -> Json:
    """Settings and plain inputs in one; with the beginning of the digest of each model."""
    inputs = manifest.recipe.settings.get("inputs", {})
    settings = {name: value for name, value in manifest.recipe.settings.items() if name != "inputs"}
    own = dict(inputs) if isinstance(inputs, dict) else {}
    weights = {f"weights of {role}": digest[:12] for role, digest in manifest.recipe.weights.items()}
    return own | settings | weights
