"""Embeddings to the coarse level of an index: samples, nearest images, pairs, centroids, cells, router,
choice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial, reduce
from typing import Any

import numpy as np

from mudg_core.encode.shard import EmbeddingShard
from mudg_core.index import kmeans
from mudg_core.index.coarse import Coarse
from mudg_core.index.kmeans import Clustering, Objectives, PairShard
from mudg_core.index.neighbors import Neighbors, nearest
from mudg_core.index.part import CellsOfShard, Placement, assign_shard, join, spill
from mudg_core.index.training_data import (
    NEIGHBORS,
    Counts,
    Pairs,
    Samples,
    TrainingPairs,
    draw,
    image_sum,
    make_pairs,
)
from mudg_core.index.variants import VARIANTS, choose_variant, trial
from mudg_core.index.vectors import normalised
from mudg_core.index.version import COARSE, open_coarse
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts
from tasks.policy import Work, stage

KEEP = NEIGHBORS + 1  # the nearest image of an image is itself

Refs = list[ArtifactRef]


@stage(
    "samples",
    settings=(
        "index.training_texts",
        "index.tuning_queries",
        "index.report_queries",
        "index.image_queries",
        "index.seed",
    ),
)
def draw_samples(work: Work, *, embeddings: Refs) -> Facts:
    """Captions to train on, to choose with and to report on, and images to report on."""
    index = work.settings.index
    wanted = Counts(index.training_texts, index.tuning_queries, index.report_queries, index.image_queries)
    found = draw(open_shards(work, embeddings), wanted, index.seed)
    found.write(work.scratch)
    return Facts(asdict(found.counts) | {"dim": found.vectors.shape[1]})


@stage("neighbors", gpu=True)
def find_neighbors(work: Work, *, samples: ArtifactRef, embedding: ArtifactRef, texts: float) -> Facts:
    """q(p): the nearest images in one shard, exactly, of a share of the training texts and of all others."""
    found, shard = read_queries(work.store, samples), open_shards(work, [embedding])[0]
    training, queries = found.counts.training, found.vectors
    exact = np.r_[: int(training * texts), training : len(queries)]
    exact_queries = queries if len(exact) == len(queries) else queries[exact]
    where, progress = work.settings.compute.device, work.progress
    work.count(len(exact_queries), "queries")
    near = nearest(exact_queries, shard.images, shard.rows, KEEP, device=where, progress=progress)
    rows, cosines = _nothing(len(queries))
    rows[exact], cosines[exact] = near.rows, near.cosines
    total, usable = image_sum(shard)
    np.save(work.scratch / "sum.npy", total)
    _save(work, Neighbors(rows, cosines))
    return Facts({"queries": len(queries), "exact": len(exact), "rows": len(shard.rows), "usable": usable})


@stage("neighbors-guided", algorithm=2, settings=("index.bootstrap_probes",))
def complete_neighbors(
    work: Work, *, samples: ArtifactRef, embedding: ArtifactRef, exact: ArtifactRef, guide: ArtifactRef
) -> Facts:
    """The same for the texts that were left out, through an index that the others have trained."""
    from mudg_core.index.neighbors import nearest_through

    found, shard = read_queries(work.store, samples), open_shards(work, [embedding])[0]
    near, share = read_neighbors(work.store, exact), work.settings.index.bootstrap_probes
    left = np.flatnonzero((near.rows < 0).all(axis=1))
    texts = normalised(found.vectors[left])
    more = nearest_through(open_coarse(work.store, guide), texts, shard, KEEP, share)
    near.rows[left], near.cosines[left] = more.rows, more.cosines
    shutil.copyfile(work.store.file(exact, "sum.npy"), work.scratch / "sum.npy")
    _save(work, near)
    return Facts(work.store.manifest(exact).facts | {"guided": len(left)})


@stage("pairs", settings=("index.seed",))
def make_training_pairs(
    work: Work, *, samples: ArtifactRef, neighbors: Refs, embeddings: Refs, texts: float
) -> Facts:
    """Each training text (of the first `texts` of them) with the images nearest to it over all shards."""
    found = read_queries(work.store, samples)
    used = slice(0, int(found.counts.training * texts))
    near = merged_neighbors(work.store, neighbors)
    total = sum(np.load(work.store.file(ref, "sum.npy"), allow_pickle=False) for ref in neighbors)
    usable = sum(int(str(work.store.manifest(ref).facts["usable"])) for ref in neighbors)
    pairs = make_pairs(
        found.of("training")[used],
        near.rows[used, :NEIGHBORS],
        near.cosines[used, :NEIGHBORS],
        open_shards(work, embeddings),
        (total / usable).astype(np.float32),
        work.settings.index.seed,
    )
    pairs.write(work.scratch)
    return Facts(
        {
            "pairs": len(pairs.images),
            "mean_cosine": round(float(pairs.cosines[:, 0].mean(dtype=np.float64)), 6),
        }
    )


@stage("centroids", algorithm=3, settings=("index.cells", "index.iterations", "index.seed"))
def train_centroids(work: Work, *, variant: str, samples: ArtifactRef, pairs: ArtifactRef) -> Facts:
    """Paired k-means, centred or not, or plain k-means on images; spread over the cluster, resumable."""
    index, load = work.settings.index, partial(_training, work.store, variant, samples, pairs)
    training = load()
    start = _resume(work) or training.start(index.cells, index.seed)
    seconds = work.settings.compute.task_timeout_seconds
    with work.host.pair_pool(partial(_load, load), training.shards, seconds) as pool:
        done = kmeans.train(pool, start, index.iterations, partial(_checkpoint, work))
    Coarse.unrouted(training.centring, done.centroids).save(work.scratch / COARSE)
    history = kmeans.as_facts(done.history)
    (work.scratch / "history.json").write_text(json.dumps(history, indent=1))
    return Facts({"variant": variant, "cells": index.cells, "last": history[-1]})


@stage("cells", algorithm=3)
def assign_cells(work: Work, *, centroids: ArtifactRef, embedding: ArtifactRef) -> Facts:
    """The cell of every image of a shard. Rows that cannot be used are set aside by name."""
    shard = open_shards(work, [embedding])[0]
    found = assign_shard(open_coarse(work.store, centroids), shard, work.progress)
    found.write(work.scratch)
    np.save(work.scratch / "refused.npy", found.refused)
    objectives = {"kmeans": round(found.kmeans, 6), "cross_modal": round(found.cross_modal, 6)}
    return Facts({"rows": len(found.rows), "refused": len(found.refused), **objectives})


@stage("router", algorithm=2, settings=("index.spill", "index.seed"))
def train_router(
    work: Work,
    *,
    centroids: ArtifactRef,
    samples: ArtifactRef,
    pairs: ArtifactRef,
    cells: Refs,
    spilled: bool,
) -> Facts:
    """The query side, fitted to where the neighbours of training texts are; if images are to be spilled, once
    more to where they are then. With it, where each training text will look first."""
    from mudg_core.index.router import first_cells, fit

    index, found = work.settings.index, Pairs.read(work.store.folder(pairs))
    texts, home = read_queries(work.store, samples).of("training"), read_placement(work.store, cells)
    fitted = fit(open_coarse(work.store, centroids), texts, home.homes(found.neighbors), index.seed)
    first, sure = first_cells(fitted.coarse, texts)
    losses = list(fitted.losses)
    if spilled:
        wider = spill(home, np.asarray(found.neighbors), first, sure, index.spill)
        fitted = fit(fitted.coarse, texts, wider.homes(found.neighbors), index.seed)
        first, sure = first_cells(fitted.coarse, texts)
        losses += fitted.losses
    fitted.coarse.save(work.scratch / COARSE)
    np.save(work.scratch / "first.npy", first)
    np.save(work.scratch / "sure.npy", sure)
    (work.scratch / "losses.json").write_text(json.dumps(losses))
    return Facts({"before": round(losses[0], 6), "after": round(min(fitted.losses), 6), "spilled": spilled})


@stage("choice", algorithm=2, settings=("index.spill", "index.gain"))
def choose(
    work: Work,
    *,
    variants: list[str],
    coarse: Refs,
    samples: ArtifactRef,
    neighbors: Refs,
    cells_kmeans: Refs,
    cells_paired: Refs,
    cells_centred: Refs,
    cells_routed: Refs,
    cells_spilled: Refs,
) -> Facts:
    """Every variant on tuning queries, and the one that reads least; each with the cells of its centroids."""
    cells = dict(
        zip(VARIANTS, (cells_kmeans, cells_paired, cells_centred, cells_routed, cells_spilled), strict=True)
    )
    index, found = work.settings.index, read_queries(work.store, samples)
    near = merged_neighbors(work.store, neighbors)
    truth = near.rows[found.counts.part("tuning"), :NEIGHBORS]
    training = near.rows[found.counts.part("training"), :NEIGHBORS]
    trials = []
    for variant, ref in zip(variants, coarse, strict=True):
        placed = read_placement(work.store, cells[variant])
        if variant == "spilled":
            placed = spill(placed, training, *read_votes(work.store, ref), index.spill)
        trials.append(
            trial(variant, open_coarse(work.store, ref), placed, found.of("tuning"), truth, index.gain)
        )
    best = choose_variant(trials)
    (work.scratch / "trials.json").write_text(json.dumps([asdict(t) for t in trials], indent=1))
    read = {t.variant: [t.read_for_recall_at_1, t.read_for_recall_at_10, t.stored] for t in trials}
    return Facts({"variant": best.variant, "read": read, "queries": len(truth)})


def open_shards(work: Work, embeddings: Refs) -> list[EmbeddingShard]:
    return [EmbeddingShard.open(work.store.folder(ref)) for ref in embeddings]


def read_queries(store: ArtifactStore, samples: ArtifactRef) -> Samples:
    return Samples.read(store.folder(samples))


def read_votes(store: ArtifactStore, router: ArtifactRef) -> tuple[Any, Any]:
    """The first cell of each training text, and how sure the router is of it."""
    files = (store.file(router, name) for name in ("first.npy", "sure.npy"))
    first, sure = (np.load(file, allow_pickle=False) for file in files)
    return first, sure


def read_placement(store: ArtifactStore, cells: Sequence[ArtifactRef]) -> Placement:
    return join([CellsOfShard.read(store.folder(ref)) for ref in cells])


def read_neighbors(store: ArtifactStore, ref: ArtifactRef) -> Neighbors:
    files = (store.file(ref, name) for name in ("rows.npy", "cosines.npy"))
    return Neighbors(*(np.load(file, allow_pickle=False) for file in files))


def merged_neighbors(store: ArtifactStore, refs: Sequence[ArtifactRef]) -> Neighbors:
    """Over all shards, two at a time in memory."""
    return reduce(Neighbors.merge, (read_neighbors(store, ref) for ref in refs))


def _save(work: Work, found: Neighbors) -> None:
    np.save(work.scratch / "rows.npy", found.rows)
    np.save(work.scratch / "cosines.npy", found.cosines)


def _nothing(queries: int) -> tuple[Any, Any]:
    return np.full((queries, KEEP), -1, np.int64), np.full((queries, KEEP), -np.inf, np.float32)


def _training(store: ArtifactStore, variant: str, samples: ArtifactRef, pairs: ArtifactRef) -> TrainingPairs:
    return TrainingPairs(variant, Pairs.read(store.folder(pairs)), Samples.read(store.folder(samples)))


def _load(training: Callable[[], TrainingPairs], part: slice) -> PairShard:
    """Runs on a worker, which opens the files itself: pairs never travel through the scheduler."""
    return training().load(part)


def _checkpoint(work: Work, state: Clustering) -> None:
    history: Any = kmeans.as_facts(state.history)
    work.checkpoints.save(len(state.history), {"centroids": state.centroids}, {"history": history})
    work.count(work.settings.index.iterations, "iterations")
    work.progress(len(state.history) / work.settings.index.iterations)


def _resume(work: Work) -> Clustering | None:
    found = work.checkpoints.latest()
    if found is None:
        return None
    history: Any = found.facts["history"]
    return Clustering(found.arrays["centroids"], tuple(Objectives(**step) for step in history))
