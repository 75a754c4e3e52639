"""Embeddings to an index: pairs, centroids, populated index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from mudg_core.encode.embed import EmbeddingShard, gather_images
from mudg_core.index import ivf
from mudg_core.index.kmeans import cluster, normalised
from mudg_core.index.pairs import nearest_images, sample_texts
from mudg_core.storage import ArtifactRef, Facts
from tasks.policy import Work, stage

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]

HELD_OUT = 1000
PROBES = (1, 2, 4, 8, 16, 32)


@stage("pairs", settings=("index.training_texts", "index.seed"))
def find_pairs(work: Work, *, embeddings: list[ArtifactRef]) -> Facts:
    """q(p): texts with their exact nearest images; the last `held_out` texts are for measuring only."""
    shards = open_shards(work, embeddings)
    index = work.settings.index
    chosen = sample_texts([len(shard.rows) for shard in shards], index.training_texts + HELD_OUT, index.seed)
    texts = np.concatenate(
        [normalised(shard.texts[lines]) for shard, lines in zip(shards, chosen, strict=True)]
    )
    order = np.random.default_rng(index.seed).permutation(len(texts))
    rows, cosines = nearest_images(texts[order], (normalised(shard.images) for shard in shards))
    all_rows = np.concatenate([shard.rows for shard in shards])
    np.save(work.scratch / "texts.npy", texts[order].astype(np.float16))
    np.save(work.scratch / "nearest.npy", all_rows[rows])
    held_out = min(HELD_OUT, len(texts) // 10)
    return Facts({"pairs": len(texts), "held_out": held_out, "mean_cosine": round(float(cosines.mean()), 6)})


@stage("centroids", settings=("index.method", "index.cells", "index.iterations", "index.seed"))
def train_centroids(work: Work, *, pairs: ArtifactRef, embeddings: list[ArtifactRef]) -> Facts:
    """Paired k-means, or plain k-means on the same images as the baseline."""
    index = work.settings.index
    texts, nearest = _pairs(work, pairs, training=True)
    images = normalised(gather_images(open_shards(work, embeddings), nearest))
    targets = texts if index.method == "paired" else images
    found = cluster(images, targets, index.cells, index.iterations, index.seed)
    np.save(work.scratch / "centroids.npy", found.centroids)
    history = [asdict(objectives) for objectives in found.history]
    (work.scratch / "history.json").write_text(json.dumps(history, indent=1))
    return Facts({"cells": index.cells, "dim": found.centroids.shape[1], "last": history[-1]})


@stage("index", settings=("index.code",))
def populate(
    work: Work, *, centroids: ArtifactRef, pairs: ArtifactRef, embeddings: list[ArtifactRef]
) -> Facts:
    """A faiss IVF index of every image, with its recall on held-out captions."""
    shards = open_shards(work, embeddings)
    means: Float32 = np.load(work.store.file(centroids, "centroids.npy"), allow_pickle=False)
    index = ivf.populate(means, _blocks(shards), work.settings.index.code)
    ivf.write(index, work.scratch / "index.faiss")
    texts, nearest = _pairs(work, pairs, training=False)
    recall = {
        str(probes): round(ivf.recall_at_1(ivf.search(index, texts, 1, probes), nearest), 4)
        for probes in PROBES
        if probes <= len(means)
    }
    return Facts({"rows": index.ntotal, "dim": index.d, "cells": len(means), "recall_at_1": recall})


def open_shards(work: Work, embeddings: list[ArtifactRef]) -> list[EmbeddingShard]:
    return [EmbeddingShard.open(work.store.folder(ref)) for ref in embeddings]


def _blocks(shards: list[EmbeddingShard]) -> Iterator[tuple[Int64, Float32]]:
    for shard in shards:
        yield shard.rows, normalised(shard.images)


def _pairs(work: Work, pairs: ArtifactRef, *, training: bool) -> tuple[Float32, Int64]:
    held_out = int(str(work.store.manifest(pairs).facts["held_out"]))
    texts = np.load(work.store.file(pairs, "texts.npy"), mmap_mode="r", allow_pickle=False)
    nearest = np.load(work.store.file(pairs, "nearest.npy"), allow_pickle=False)
    part = slice(None, -held_out) if training else slice(-held_out, None)
    return normalised(texts[part]), nearest[part]
