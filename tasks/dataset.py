"""Queries to a selection plan: search, label, select."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.dataset import candidates
from mudg_core.dataset.cluster_selection import Span, SpanPlan, join_plans, label_spans, plan_span
from mudg_core.dataset.leaks import LEAKS, without_rows
from mudg_core.dataset.pseudo_labels import (
    HUBNESS,
    ExactLabels,
    label_exactly,
    measure_hubness,
    pseudo_label,
    relabelled,
)
from mudg_core.dataset.selection_rules import UNCERTAIN, Rule
from mudg_core.encode.shard import EmbeddingShard, gather_images, gather_metadata
from mudg_core.encode.weights import weights_digest
from mudg_core.index.ivf import Hits
from mudg_core.index.vectors import Float32, Int64
from mudg_core.index.version import check_model, load_version
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts
from mudg_core.target.queries import read_queries
from tasks.coarse import open_shards
from tasks.policy import Work, stage
from tasks.search import search_parts


@stage(
    "candidates",
    algorithm=2,
    settings=("dataset.neighbors", "index.probes", "index.mass", "index.gain", "index.rerank"),
)
def retrieve(
    work: Work,
    *,
    queries: ArtifactRef,
    index: ArtifactRef,
    embeddings: list[ArtifactRef],
    without: list[int] | None = None,
) -> Facts:
    """What every query finds, each image once. `without`: rows taken down that an older version still has."""
    version = load_version(work.store, index)
    check_model(work.store, version, weights_digest(work.settings.encode.model))
    features = np.load(work.store.file(queries, "queries.npy"), allow_pickle=False)
    found = search_parts(work, version, features, work.settings.dataset.neighbors)
    if without:
        found = Hits(np.where(np.isin(found.rows, without), -1, found.rows), found.cosines)
    asked = read_queries(work.store.folder(queries))
    hits = candidates.flatten(found, np.array(asked.labels, dtype=np.int64))
    rows = np.unique(hits.column("row").to_numpy())
    metadata = gather_metadata(open_shards(work, embeddings), rows)
    merged = candidates.merge_duplicates(hits, metadata)
    kept = np.isin(rows, merged.column("row").to_numpy())
    pq.write_table(merged, work.scratch / "hits.parquet")
    pq.write_table(metadata.filter(pa.array(kept)), work.scratch / "images.parquet")
    return Facts(
        {
            "queries": len(features),
            "hits": hits.num_rows,
            "missing": int((found.rows < 0).sum()),
            "unique_rows": len(rows),
            "unique_images": int(kept.sum()),
        }
    )


@stage(
    "labels",
    algorithm=3,
    settings=("dataset.label", "dataset.ranks", "dataset.neighbors", "augment.seed"),
)
def label(
    work: Work,
    *,
    found: ArtifactRef,
    classes: int,
    leaked: ArtifactRef | None = None,
    queries: ArtifactRef | None = None,
    embeddings: list[ArtifactRef] | None = None,
) -> Facts:
    """A pseudo-label for every candidate that is no evaluation image (`leaked`). Exact ranks (see
    flows/build_classifier.py) take queries and embeddings too."""
    hits = pq.read_table(work.store.file(found, "hits.parquet"))
    if leaked is not None:
        rows = pq.read_table(work.store.file(leaked, LEAKS), columns=["row"]).column(0).to_numpy()
        hits = without_rows(hits, rows)
    settings, facts = work.settings.dataset, {}
    labelled = pseudo_label(hits, settings.label, settings.neighbors, work.settings.augment.seed)
    if queries is not None and embeddings is not None:
        exact = _label_exactly(work, hits, queries, embeddings)
        facts = {"relabelled": relabelled(labelled, exact.labelled), "depth": exact.depth}
        labelled = exact.labelled
    pq.write_table(labelled, work.scratch / "labels.parquet")
    (work.scratch / HUBNESS).write_text(measure_hubness(hits, classes).to_json())
    per_label = np.bincount(labelled.column("label"), minlength=classes).tolist()
    return Facts({"images": labelled.num_rows, "per_label": per_label, **facts})


def _label_exactly(
    work: Work, hits: pa.Table, queries: ArtifactRef, embeddings: list[ArtifactRef]
) -> ExactLabels:
    features = np.load(work.store.file(queries, "queries.npy"), allow_pickle=False)
    gather = partial(gather_images, open_shards(work, embeddings))
    return label_exactly(hits, features, gather, work.settings.dataset.neighbors)


@stage("picks", algorithm=3, settings=("dataset.select", "dataset.per_class"))
def select(
    work: Work,
    *,
    labels: ArtifactRef,
    embeddings: list[ArtifactRef],
    seed: int,
    queries: ArtifactRef | None = None,
) -> Facts:
    """Which images to take, and who stands in when one is gone; labels are planned on all free workers."""
    labelled = pq.read_table(work.store.file(labels, "labels.parquet"))
    settings, seconds = work.settings.dataset, work.settings.compute.task_timeout_seconds
    prompts = np.load(work.store.file(queries, "labels.npy"), allow_pickle=False) if queries else None
    rule = Rule(settings.select, settings.per_class, seed, prompts)
    spans = label_spans(labelled)
    plan_one = partial(_plan_span, work.store, labels, embeddings, rule)
    plan = join_plans(labelled, work.host.spread(plan_one, spans, seconds))
    pq.write_table(plan, work.scratch / "picks.parquet")
    groups = int(plan.column("group").to_numpy().max(initial=-1)) + 1
    return Facts({"images": plan.num_rows, "groups": groups})


def select_queries(settings: Settings, queries: ArtifactRef) -> ArtifactRef | None:
    """For `select`, which takes the labels' prompts where it asks how sure a label is."""
    return queries if settings.dataset.select in UNCERTAIN else None


def _plan_span(
    store: ArtifactStore, labels: ArtifactRef, embeddings: list[ArtifactRef], rule: Rule, span: Span
) -> SpanPlan:
    """On whichever worker: features are read there, those of one span at a time."""
    labelled = pq.read_table(store.file(labels, "labels.parquet"))

    def gather(rows: Int64) -> Float32:
        return gather_images([EmbeddingShard.open(store.folder(ref)) for ref in embeddings], rows)

    return plan_span(labelled, gather, rule, span)
