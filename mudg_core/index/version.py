"""An index version: the index with everything it was made from, found from its manifest alone."""

from __future__ import annotations

from dataclasses import dataclass

from mudg_core.errors import ConflictError, MissingArtifactError
from mudg_core.storage import ArtifactRef, ArtifactStore

CURRENT = "index-current"


@dataclass(frozen=True)
class IndexVersion:
    index: ArtifactRef
    centroids: ArtifactRef
    embeddings: tuple[ArtifactRef, ...]
    shards: tuple[ArtifactRef, ...]


def load_version(store: ArtifactStore, index: ArtifactRef) -> IndexVersion:
    """The version that an index artifact belongs to."""
    parents = store.manifest(index).recipe.parents
    embeddings, centroids = parents["embeddings"], parents["centroids"]
    assert isinstance(embeddings, tuple) and isinstance(centroids, ArtifactRef)
    shards = [store.manifest(ref).recipe.parents["shard"] for ref in embeddings]
    return IndexVersion(index, centroids, embeddings, tuple(s for s in shards if isinstance(s, ArtifactRef)))


def current_version(store: ArtifactStore) -> IndexVersion:
    """The promoted version; a flow asks once and stays on the answer."""
    pointer = store.pointer(CURRENT)
    if pointer is None:
        raise MissingArtifactError(
            what="there is no index yet", where=store.url, fix="run `mudg index build` (or `mudg demo`) first"
        )
    return load_version(store, pointer.ref)


def promote(store: ArtifactStore, index: ArtifactRef) -> None:
    """Makes an index the current one. Whoever else moved the pointer meanwhile has a valid version too."""
    now = store.pointer(CURRENT)
    if now is None or now.ref != index:
        try:
            store.move_pointer(CURRENT, index, now)
        except ConflictError:
            store.move_pointer(CURRENT, index, store.pointer(CURRENT))
