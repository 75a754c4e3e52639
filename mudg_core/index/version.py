"""An index version: the index with everything it was made from, found from its manifest alone, and opened.

Which version is current, and which were before, is one pointer. A version has to pass the gate to become
current; going back, by one or by name, withdraws the one that was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mudg_core.encode.shard import EmbeddingShard, gather_images
from mudg_core.errors import ConflictError, DataError, GateError, MissingArtifactError
from mudg_core.index import ivf
from mudg_core.index.coarse import Coarse
from mudg_core.index.recall import Estimate
from mudg_core.index.search import Searcher
from mudg_core.index.vectors import Float32, Int64
from mudg_core.storage import ArtifactRef, ArtifactStore, Pointer

CURRENT = "index-current"
ATTEMPTS = 5
ONE = ("coarse", "centroids", "samples")
MANY = ("parts", "neighbors", "embeddings")
COARSE, PART, REMOVED = "coarse.safetensors", "part.faiss", "removed.npy"


@dataclass(frozen=True)
class IndexVersion:
    """What a search needs, and what measuring and growing the index need. The first `training` shards are
    those it was trained on."""

    index: ArtifactRef
    variant: str
    training: int
    coarse: ArtifactRef
    centroids: ArtifactRef
    samples: ArtifactRef
    parts: tuple[ArtifactRef, ...]
    neighbors: tuple[ArtifactRef, ...]
    embeddings: tuple[ArtifactRef, ...]
    shards: tuple[ArtifactRef, ...]


@dataclass(frozen=True)
class Promotion:
    """One time that a version became current. `withdrawn`: somebody rolled back from it."""

    ref: ArtifactRef
    when: str
    current: bool = False
    withdrawn: bool = False


def load_version(store: ArtifactStore, index: ArtifactRef) -> IndexVersion:
    """The version that an index artifact belongs to."""
    parents, facts = _parents(store, index), store.manifest(index).facts
    return IndexVersion(
        index=index,
        variant=str(facts["variant"]),
        training=int(str(facts["training_shards"])),
        shards=shards_of(store, parents["embeddings"]),
        **{name: parents[name] for name in (*ONE, *MANY)},
    )


def shards_of(store: ArtifactStore, embeddings: Iterable[ArtifactRef]) -> tuple[ArtifactRef, ...]:
    """The corpus shards that were embedded."""
    shards = (store.manifest(ref).recipe.parents["shard"] for ref in embeddings)
    return tuple(shard for shard in shards if isinstance(shard, ArtifactRef))


def current_version(store: ArtifactStore) -> IndexVersion:
    """The promoted version; a flow asks once and stays on the answer."""
    return load_version(store, _pointer(store).ref)


def promote(store: ArtifactStore, index: ArtifactRef) -> None:
    """Makes an index the current one. Whoever else moved the pointer meanwhile has a valid version too, so
    the later one becomes current, and the other is in the history. To promote one that was current before is
    to go back: it withdraws the version that is left, if nobody has moved on from that."""
    _parents(store, index)
    first = store.pointer(CURRENT)
    for attempt in range(ATTEMPTS):
        now = store.pointer(CURRENT) if attempt else first
        if now is not None and now.ref == index:
            return
        back = now is not None and first is not None and now.ref == first.ref and index in _earlier(now)
        try:
            store.move_pointer(CURRENT, index, now, withdraw=back)
            return
        except ConflictError:
            if attempt == ATTEMPTS - 1:
                raise


def promote_after(store: ArtifactStore, index: ArtifactRef, seen: Pointer | None) -> None:
    """The same for a version that was made in view of another. If that is no longer the current one it is a
    ConflictError: rows may have been removed since, which the new version still has."""
    _parents(store, index)
    if seen is None or seen.ref != index:
        store.move_pointer(CURRENT, index, seen)


def rollback(store: ArtifactStore) -> ArtifactRef:
    """Makes the version that was current before current again, skipping those no longer whole or withdrawn.

    Done twice, it goes back two versions rather than to and fro. If somebody promotes meanwhile it is a
    ConflictError, not another try: the version that was to be withdrawn is no longer the current one.
    """
    now = _pointer(store)
    for ref in _earlier(now):
        if _whole(store, ref):
            store.move_pointer(CURRENT, ref, now, withdraw=True)
            return ref
    before = len({past.ref for past in now.history} - {now.ref})
    earlier = f"{before} were current before {now.ref}, all withdrawn or damaged"
    raise MissingArtifactError(
        what=f"no version to go back to: {earlier if before else 'this is the first one'}",
        where=store.url,
        fix="run `mudg index list`, then `mudg index promote REF`, or `mudg index build`",
    )


def history(store: ArtifactStore) -> list[Promotion]:
    """Every promotion that is remembered, newest first; empty if there was none."""
    now = store.pointer(CURRENT)
    if now is None:
        return []
    past = [Promotion(p.ref, p.moved, withdrawn=p.withdrawn) for p in reversed(now.history)]
    return [Promotion(now.ref, now.moved, current=True), *past]


def is_withdrawn(store: ArtifactStore, index: ArtifactRef) -> bool:
    """Whether the last that is remembered of a version is that somebody went back from it."""
    return next((past.withdrawn for past in history(store) if past.ref == index), False)


def gate(
    recall: Estimate,
    required: float,
    *,
    measure: str = "R@1",
    cost: str = "",
    index: ArtifactRef | None = None,
) -> None:
    """Refuses an index that finds less than it must. The estimate decides, as it does when probes are chosen;
    the interval is told. `cost` is what was paid for it, as `Point.cost` says."""
    if recall.value >= required:
        return
    at = f" at {cost}" if cost else ""
    open_ = "; more held-out queries could decide otherwise" if recall.high >= required else ""
    raise GateError(
        what=f"{measure} of the new index is {recall}{at}, and {100 * required:.1f} % was required{open_}. "
        "It was not promoted: the old version stays current",
        where=str(index or ""),
        fix=f"read more (raise index.probes or index.mass), or train again with more texts or cells, "
        f"or accept it: `mudg index promote {index or 'REF'} --force`",
    )


def _pointer(store: ArtifactStore) -> Pointer:
    pointer = store.pointer(CURRENT)
    if pointer is None:
        raise MissingArtifactError(
            what="there is no index yet", where=store.url, fix="run `mudg index build` (or `mudg demo`) first"
        )
    return pointer


def _parents(store: ArtifactStore, index: ArtifactRef) -> dict[str, Any]:
    """What an index was made from, which nothing else is."""
    parents = store.manifest(index).recipe.parents
    one = all(isinstance(parents.get(name), ArtifactRef) for name in ONE)
    if not one or not all(isinstance(parents.get(name), tuple) for name in MANY):
        raise DataError(
            what=f"{index} is not an index", where=store.uri(index), fix="`mudg index list` shows what is"
        )
    return dict(parents)


def _earlier(now: Pointer) -> Iterator[ArtifactRef]:
    """Versions before the current one, latest first, each once. Its latest promotion tells whether a version
    was withdrawn: one promoted again after that is in use again."""
    seen = {now.ref}
    for past in reversed(now.history):
        if past.ref not in seen and not past.withdrawn:
            yield past.ref
        seen.add(past.ref)


def _whole(store: ArtifactStore, index: ArtifactRef) -> bool:
    """Whether all manifests of a version are there and as they were; a store that fails is no answer."""
    try:
        version = load_version(store, index)
        for ref in (version.coarse, *version.parts):
            store.manifest(ref)
    except DataError:
        return False
    return True


def open_searcher(store: ArtifactStore, version: IndexVersion, *, image_queries: bool = False) -> Searcher:
    """All parts memory-mapped; exact features for re-ranking come from the embeddings themselves."""
    coarse = open_coarse(store, version.coarse)
    shards = [EmbeddingShard.open(store.folder(ref)) for ref in version.embeddings]

    def fetch(rows: Int64) -> Float32:
        return gather_images(shards, rows)

    return Searcher(
        coarse.for_images() if image_queries else coarse,
        [open_part(store, ref) for ref in version.parts],
        fetch,
        spilled=version.variant == "spilled",
    )


def unknown_rows(store: ArtifactStore, version: IndexVersion, rows: Sequence[int]) -> list[int]:
    """Which of these rows no shard of the version has."""
    known = (EmbeddingShard.open(store.folder(ref)).rows for ref in version.embeddings)
    return sorted(set(rows).difference(*(np.intersect1d(rows, shard).tolist() for shard in known)))


def open_coarse(store: ArtifactStore, coarse: ArtifactRef) -> Coarse:
    return Coarse.load(store.file(coarse, COARSE))


def open_part(store: ArtifactStore, part: ArtifactRef) -> object:
    facts = store.manifest(part).facts
    rows, dim = (int(str(facts[name])) for name in ("vectors", "dim"))
    return ivf.load(store.file(part, PART), rows=rows, dim=dim)


def check_model(store: ArtifactStore, version: IndexVersion, weights: str) -> None:
    """Refuses queries of another model than the one that embedded the corpus: their cosines mean nothing."""
    built = store.manifest(version.embeddings[0]).recipe.weights
    if built and weights not in built.values():
        raise DataError(
            what="the index was built with another CLIP model than encode.model names",
            where=store.uri(version.index),
            fix="set encode.model to the model of the index, or build the index again",
        )
