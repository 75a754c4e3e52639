"""The coarse level and embeddings to a searchable index: its fine code, its parts, the version, its
recall."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np

from mudg_core.index import ivf, recall
from mudg_core.index.part import CellsOfShard, Votes, drift, placed_images, plan_part
from mudg_core.index.recall import own_rows, truth_of
from mudg_core.index.training_data import NEIGHBORS, Pairs
from mudg_core.index.vectors import normalised
from mudg_core.index.version import PART, REMOVED, load_version, open_coarse, open_searcher
from mudg_core.report.charts.curves import objective_curves, recall_curves
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts
from tasks.coarse import (
    Refs,
    merged_neighbors,
    open_shards,
    read_neighbors,
    read_queries,
    read_votes,
)
from tasks.policy import Work, stage
from tasks.run import Progress, counted

BLANK = "blank.faiss"
CODE_SAMPLE = 65_536


@stage("code", settings=("index.code", "index.cells"))
def train_code(work: Work, *, pairs: ArtifactRef) -> Facts:
    """An empty index whose fine code is trained; every part starts as a copy of it."""
    index = work.settings.index
    sample = normalised(Pairs.read(work.store.folder(pairs)).gallery[:CODE_SAMPLE])
    ivf.write(ivf.blank(index.code, index.cells, sample), work.scratch / BLANK)
    return Facts({"code": index.code, "dim": sample.shape[1], "cells": index.cells})


@stage("index-part", settings=("index.spill",))
def populate(
    work: Work,
    *,
    code: ArtifactRef,
    embeddings: Refs,
    cells: Refs,
    removed: list[int],
    router: ArtifactRef | None = None,
    pairs: ArtifactRef | None = None,
    neighbors: Refs | None = None,
) -> Facts:
    """One file of the index, over some shards. With a router, images also go where texts look first."""
    votes = None
    if router and pairs and neighbors:
        found = Pairs.read(work.store.folder(pairs))
        near = [read_neighbors(work.store, ref) for ref in neighbors]
        texts = slice(0, len(found.neighbors))
        votes = Votes.of(
            found,
            [(n.rows[texts, :NEIGHBORS], n.cosines[texts, :NEIGHBORS]) for n in near],
            *read_votes(work.store, router),
        )
    homes = [CellsOfShard.read(work.store.folder(ref)) for ref in cells]
    placement = plan_part(homes, votes, work.settings.index.spill, np.array(removed, np.int64))
    facts = work.store.manifest(code).facts
    blank = ivf.load(work.store.file(code, BLANK), rows=0, dim=int(str(facts["dim"])))
    index = ivf.populate(blank, placed_images(placement, open_shards(work, embeddings), work.progress))
    ivf.write(index, work.scratch / PART)
    return Facts({"vectors": int(index.ntotal), "rows": len(np.unique(placement.rows)), "dim": int(index.d)})


@stage("index")
def assemble(
    work: Work,
    *,
    variant: str,
    coarse: ArtifactRef,
    centroids: ArtifactRef,
    pairs: ArtifactRef,
    code: ArtifactRef,
    parts: Refs,
    embeddings: Refs,
    cells: Refs,
    samples: ArtifactRef,
    neighbors: Refs,
    training: int,
    removed: list[int],
    choice: ArtifactRef | None = None,
) -> Facts:
    """A version: everything a search needs, by name. The first `training` shards are those it was trained
    on."""
    manifests = [work.store.manifest(ref) for ref in parts]
    rows, vectors = (sum(int(str(m.facts[name])) for m in manifests) for name in ("rows", "vectors"))
    facts = {"variant": variant, "code": work.store.manifest(code).facts["code"], "rows": rows}
    level = open_coarse(work.store, coarse)
    facts |= {"vectors": vectors, "dim": level.dim, "cells": level.cells, "training_shards": training}
    facts |= {"removed": len(removed), "drift": _drift(work, cells, training)}
    np.save(work.scratch / REMOVED, np.array(removed, np.int64))
    return Facts(facts)


def _drift(work: Work, cells: Refs, training: int) -> dict[str, Any] | None:
    """Objectives on the shards that came after training, against those on the shards of training."""
    manifests = [work.store.manifest(ref).facts for ref in cells]
    if len(manifests) == training:
        return None

    def mean(part: list[Any]) -> tuple[float, float]:
        rows = [facts["rows"] for facts in part]
        names = ("kmeans", "cross_modal")
        kmeans, cross = (float(np.average([facts[n] for facts in part], weights=rows)) for n in names)
        return kmeans, cross

    found = drift(mean(manifests[:training]), mean(manifests[training:]))
    return {"retrain": found.retrain, "words": str(found)}


@stage("recall", algorithm=3, settings=("index.probes", "index.mass", "index.gain", "index.rerank"))
def measure_recall(work: Work, *, index: ArtifactRef) -> Facts:
    """Recall against vectors read, of held-out captions and of images. The first point has the configured
    cost."""
    version, settings = load_version(work.store, index), work.settings.index
    samples = read_queries(work.store, version.samples)
    removed = removed_from(work.store, index)
    near = merged_neighbors(work.store, version.neighbors)
    points = {}
    kinds = {"text queries": "report", "image queries": "images"}
    for number, (name, kind) in enumerate(kinds.items()):
        truth = truth_of(near, samples, kind, removed)
        searcher = open_searcher(work.store, version, image_queries=kind == "images")
        costs = [(settings.probes, settings.mass), *recall.costs(searcher)]
        how = settings.gain, settings.rerank, own_rows(samples, kind)
        watched = counted(costs, len(costs), partial(_tell_half, work.progress, number))
        points[name] = recall.curves(searcher, samples.of(kind), truth, watched, *how)
    (work.scratch / "recall.json").write_text(
        json.dumps({name: [point.to_json() for point in found] for name, found in points.items()}, indent=1)
    )
    (work.scratch / "qps.json").write_text(
        json.dumps({name: [point.qps for point in found] for name, found in points.items()})
    )
    (work.scratch / "recall.svg").write_text(recall_curves(points))
    history = json.loads(work.store.file(version.centroids, "history.json").read_text())
    lines = ([step[name] for step in history] for name in ("kmeans", "cross_modal"))
    (work.scratch / "objectives.svg").write_text(objective_curves(*lines))
    facts = {"configured": points["text queries"][0].to_json(), "queries": samples.counts.report}
    return Facts(facts, volatile=frozenset({"qps.json"}))


def _tell_half(progress: Progress, number: int, share: float) -> None:
    progress((number + share) / 2)


def removed_from(store: ArtifactStore, index: ArtifactRef) -> list[int]:
    """Rows that a version leaves out on request."""
    return [int(row) for row in np.load(store.file(index, REMOVED), allow_pickle=False)]


def rows_among(store: ArtifactStore, cells: Refs, wanted: list[int]) -> list[int]:
    """Which of the wanted rows are in these shards."""
    if not wanted:
        return []
    here = [np.load(store.file(ref, "rows.npy"), mmap_mode="r", allow_pickle=False) for ref in cells]
    return [int(row) for rows in here for row in np.intersect1d(rows, wanted)]


def inputs_of(store: ArtifactStore, ref: ArtifactRef) -> dict[str, Any]:
    """What a stage was given to make an artifact: to make it again with one thing changed."""
    recipe = store.manifest(ref).recipe
    values = recipe.settings["inputs"]
    assert isinstance(values, dict)
    return {**recipe.parents, **values}
