"""A version of the index, opened for searching and for measuring."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mudg_core.encode.shard import EmbeddingShard, gather_images
from mudg_core.errors import DataError
from mudg_core.index import ivf
from mudg_core.index.coarse import Coarse
from mudg_core.index.neighbors import Neighbors
from mudg_core.index.pairs import NEIGHBORS
from mudg_core.index.samples import Samples
from mudg_core.index.search import Searcher
from mudg_core.index.vectors import Float32, Int64
from mudg_core.index.version import IndexVersion
from mudg_core.storage import ArtifactRef, ArtifactStore

COARSE, PART, REMOVED = "coarse.safetensors", "part.faiss", "removed.npy"


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


def truth_of(near: Neighbors, samples: Samples, kind: str, removed: list[int]) -> Int64:
    """The true nearest rows of each sample that the index can find: not itself, and none that was removed."""
    part = samples.counts.part(kind)
    rows = near.rows[part]
    gone = np.isin(rows, removed)
    if kind == "images":
        gone |= rows == samples.rows[part][:, None]
    order = np.argsort(gone | (rows < 0), axis=1, kind="stable")
    kept = np.take_along_axis(np.where(gone, -1, rows), order, axis=1)
    return kept[:, :NEIGHBORS]


def own_rows(samples: Samples, kind: str) -> Int64 | None:
    """The rows that queries of a kind would find themselves in: those of images."""
    return samples.rows[samples.counts.part(kind)] if kind == "images" else None


def check_model(store: ArtifactStore, version: IndexVersion, weights: str) -> None:
    """Refuses queries of another model than the one that embedded the corpus: their cosines mean nothing."""
    built = store.manifest(version.embeddings[0]).recipe.weights
    if built and weights not in built.values():
        raise DataError(
            what="the index was built with another CLIP model than encode.model names",
            where=store.uri(version.index),
            fix="set encode.model to the model of the index, or build the index again",
        )
