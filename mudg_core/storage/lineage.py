"""What an artifact was made from, and what was made from it: the graph around one artifact."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mudg_core.settings import Json
from mudg_core.storage.browse import family
from mudg_core.storage.gc_marks import name_of
from mudg_core.storage.manifest import ArtifactRef, Manifest
from mudg_core.storage.store import ArtifactStore
from mudg_core.storage.survey import Survey, survey

EXTENTS = ("rows", "images", "queries", "pairs", "cells")
Following = Callable[[str], list[str]]


@dataclass(frozen=True)
class Lineage:
    """The graph around `root`, by place (`stage/key`): everything that it was made from, and, where that was
    asked for, everything that was made from it. Places that a manifest names and `found` lacks are gone."""

    root: Manifest
    found: dict[str, Manifest]
    children: dict[str, list[str]]

    def ancestors(self) -> list[Manifest]:
        """The root first."""
        return self._from(self.parents)

    def parents(self, name: str) -> list[str]:
        found = self.found.get(name)
        return [name_of(ref) for ref in found.recipe.all_parents()] if found else []

    def descendants(self) -> list[Manifest]:
        return self._from(self.made_from)

    def made_from(self, name: str) -> list[str]:
        return self.children.get(name, [])

    def _from(self, following: Following) -> list[Manifest]:
        return [self.found[name] for name in reached(name_of(self.root.ref), following) if name in self.found]


def lineage_of(store: ArtifactStore, ref: ArtifactRef, *, children: bool = False) -> Lineage:
    """Children are not written down anywhere: to find them, all manifests of the store are read."""
    root = store.manifest(ref)
    found = {name_of(one.ref): one for one in family(store, root)}
    if not children:
        return Lineage(root, found, {})
    by_parent = _by_parent(survey(store.objects))
    for name in reached(name_of(ref), lambda name: by_parent.get(name, [])):
        found.setdefault(name, store.manifest(store.at(*name.split("/"))))
    return Lineage(root, found, {name: by_parent[name] for name in found if name in by_parent})


def made_from(store: ArtifactStore, refs: Iterable[ArtifactRef]) -> set[str]:
    """Names (`stage/key`) of all that was made from any of these; all manifests are read, once."""
    by_parent = _by_parent(survey(store.objects))
    roots = [name_of(ref) for ref in refs]
    return {name for root in roots for name in reached(root, lambda name: by_parent.get(name, []))} - {*roots}


def extent(manifest: Manifest) -> str:
    """How large it is, in its own unit: '24000 rows'."""
    facts = manifest.facts
    return next((f"{facts[name]} {name}" for name in EXTENTS if name in facts), "")


def bytes_of(manifest: Manifest) -> int:
    return sum(entry.size for entry in manifest.files)


def described(manifest: Manifest) -> Json:
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
        "bytes": bytes_of(manifest),
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


def _by_parent(found: Survey) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for item in sorted(found.items.values(), key=lambda item: (item.created, item.name)):
        for parent in item.parents:
            children.setdefault(parent, []).append(item.name)
    return children


def reached(start: str, following: Following) -> list[str]:
    """Everything that can be reached, nearest first, each once; the start itself first."""
    seen, waiting = {start: None}, deque([start])
    while waiting:
        fresh = [name for name in dict.fromkeys(following(waiting.popleft())) if name not in seen]
        seen |= dict.fromkeys(fresh)
        waiting += fresh
    return list(seen)
