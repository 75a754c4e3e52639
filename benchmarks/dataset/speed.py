"""Seconds that labels and selection take at the size of ImageNet: 1000 labels of 16 queries each."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from mudg_core.dataset.cluster_selection import plan_selection
from mudg_core.dataset.pseudo_labels import pseudo_label
from mudg_core.dataset.selection_rules import Rule
from mudg_core.index.vectors import Float32, Int64, normalised

PER_LABEL = 16  # queries
SHARED = 600  # images that the queries of a label choose from; a third are the next label's too
STEP = 400
TOPICS, LATENT = 40, 32
POOLS = 16  # labels whose features differ; the others have theirs again, so that making them takes no time


def label_seconds(queries: int = 16_000, neighbors: int = 64, method: str = "rank") -> float:
    """Pseudo-labels from so many hits."""
    hits = made_hits(queries, neighbors)
    started = time.perf_counter()
    pseudo_label(hits, method, neighbors, 0)
    return time.perf_counter() - started


def select_seconds(
    labels: int = 1000,
    images: int = 1000,
    dim: int = 512,
    per_class: int = 96,
    threads: int = 2,
    method: str = "cluster",
) -> float:
    """A selection plan on both cores; features come in half precision, as embeddings are stored."""
    pool = made_features(POOLS * images, dim).astype(np.float16)
    prompts = made_features(labels, dim, seed=1)
    row = np.arange(labels * images)
    values = {"label": row // images, "rank": row % images % 64 + 1, "cosine": np.zeros(len(row), np.float32)}
    labelled = pa.table({"row": row, **values})

    def features(rows: Int64) -> Float32:
        return pool[rows % len(pool)].astype(np.float32)

    started = time.perf_counter()
    plan_selection(labelled, features, Rule(method, per_class, 0, prompts), threads)
    return time.perf_counter() - started


def made_hits(queries: int, neighbors: int, seed: int = 0) -> pa.Table:
    """Queries of one label find much the same, and some of what the next label finds."""
    random = np.random.default_rng(seed)
    query = np.repeat(np.arange(queries), neighbors)
    label = np.arange(queries) // PER_LABEL
    shared = max(SHARED, neighbors)
    near = np.argsort(random.random((queries, shared), dtype=np.float32) * np.arange(1, shared + 1), axis=1)
    cosines = np.sort(random.normal(0.3, 0.03, (queries, neighbors)).astype(np.float32), axis=1)[:, ::-1]
    return pa.table(
        {
            "query": query,
            "label": label[query],
            "rank": np.tile(np.arange(1, neighbors + 1), queries),
            "row": (label[:, None] * STEP + near[:, :neighbors]).ravel(),
            "cosine": cosines.ravel(),
        }
    )


def made_features(count: int, dim: int, seed: int = 0) -> Float32:
    """Unit vectors in a cone, around topics, with noise: as images of a label lie."""
    random = np.random.default_rng(seed)
    topics = random.normal(size=(TOPICS, LATENT))[random.integers(0, TOPICS, count)]
    inner = topics + 0.7 * random.normal(size=(count, LATENT))
    vectors = inner @ random.normal(size=(LATENT, dim)) / LATENT**0.5 + 1
    return normalised(vectors + 0.3 * random.normal(size=(count, dim)))
