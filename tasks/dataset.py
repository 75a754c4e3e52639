"""Queries to a training set: search, label, select, fetch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image

from mudg_core.corpus.images import Link, ShardImages, is_dead
from mudg_core.corpus.opened import open_shard
from mudg_core.dataset import build, candidates
from mudg_core.dataset.label import pseudo_label
from mudg_core.dataset.select import plan_selection
from mudg_core.dataset.training_set import write_training_set
from mudg_core.encode.shard import gather_images, gather_metadata
from mudg_core.encode.weights import weights_digest
from mudg_core.index.opened import check_model
from mudg_core.index.version import load_version
from mudg_core.storage import ArtifactRef, Facts
from tasks.coarse import open_shards
from tasks.policy import Work, stage
from tasks.search import search_parts


@stage(
    "candidates",
    settings=("dataset.neighbors", "index.probes", "index.mass", "index.gain", "index.rerank"),
)
def retrieve(work: Work, *, queries: ArtifactRef, index: ArtifactRef, embeddings: list[ArtifactRef]) -> Facts:
    """What every query finds, each image once."""
    version = load_version(work.store, index)
    check_model(work.store, version, weights_digest(work.settings.encode.model))
    features = np.load(work.store.file(queries, "queries.npy"), allow_pickle=False)
    found = search_parts(work, version, features, work.settings.dataset.neighbors)
    per_label = _int(work.store.manifest(queries).facts["per_label"])
    hits = candidates.flatten(found, per_label)
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


@stage("labels", settings=("dataset.label", "dataset.neighbors", "augment.seed"))
def label(work: Work, *, found: ArtifactRef) -> Facts:
    """A pseudo-label for every candidate."""
    hits = pq.read_table(work.store.file(found, "hits.parquet"))
    settings = work.settings.dataset
    labelled = pseudo_label(hits, settings.label, settings.neighbors, work.settings.augment.seed)
    pq.write_table(labelled, work.scratch / "labels.parquet")
    return Facts({"images": labelled.num_rows, "per_label": np.bincount(labelled.column("label")).tolist()})


@stage("picks", settings=("dataset.select", "dataset.per_class"))
def select(work: Work, *, labels: ArtifactRef, embeddings: list[ArtifactRef], seed: int) -> Facts:
    """Which images to take, and who stands in when one is gone."""
    labelled = pq.read_table(work.store.file(labels, "labels.parquet"))
    features = gather_images(open_shards(work, embeddings), labelled.column("row").to_numpy())
    settings = work.settings.dataset
    plan = plan_selection(labelled, features, method=settings.select, per_class=settings.per_class, seed=seed)
    pq.write_table(plan, work.scratch / "picks.parquet")
    return Facts({"images": plan.num_rows, "groups": int(np.max(plan.column("group"))) + 1})


@stage(
    "dataset",
    settings=("dataset.min_cosine", "dataset.filter_reference", "encode.batch_size"),
    weights=("encode.model",),
    gpu=True,
)
def fetch(
    work: Work, *, picks: ArtifactRef, found: ArtifactRef, queries: ArtifactRef, shards: list[ArtifactRef]
) -> Facts:
    """The training set: images that are there and fit, as a WebDataset shard with their provenance."""
    plan = pq.read_table(work.store.file(picks, "picks.parquet"))
    images = pq.read_table(work.store.file(found, "images.parquet"))
    links: dict[int, Link] = {line["row"]: line for line in images.to_pylist()}
    settings = work.settings.dataset
    filled = build.fill(
        plan,
        _references(work, plan, queries),
        _fetcher(work, links, shards),
        _embedder(work),
        settings.min_cosine,
    )
    chosen = filled.chosen()
    write_training_set(filled, links, work.scratch)
    outcomes = pc.value_counts(filled.table.column("outcome")).to_pylist()
    per_label = np.bincount(chosen.column("label"), minlength=int(np.max(plan.column("label"))) + 1)
    return Facts(
        {
            "images": chosen.num_rows,
            "per_label": per_label.tolist(),
            "outcomes": {item["values"]: item["counts"] for item in outcomes},
        }
    )


def _fetcher(work: Work, links: dict[int, Link], shards: list[ArtifactRef]) -> build.Fetch:
    """Images from the corpus shards; a link that has died gives nothing."""
    images = ShardImages(lambda number: open_shard(work.store, shards[number]), links)
    return lambda rows: images.read(row for row in rows if not is_dead(links[row]))


def _embedder(work: Work) -> build.Embed:
    clip = work.encoder(work.settings.encode.model)

    def embed(images: list[Image.Image]) -> Any:
        return clip.encode_images(
            np.stack([clip.pixels(image) for image in images]), work.settings.encode.batch_size
        )

    return embed


def _references(work: Work, plan: pa.Table, queries: ArtifactRef) -> Any:
    """The text that each image must resemble: its query (paper) or its label's plain prompt (author-code)."""
    column, file = (
        ("query", "queries.npy")
        if work.settings.dataset.filter_reference == "query"
        else ("label", "labels.npy")
    )
    return np.load(work.store.file(queries, file), allow_pickle=False)[plan.column(column).to_numpy()]


def _int(value: object) -> int:
    return int(str(value))
