"""A selection plan to a training set: images fetched, looked at again, and refilled where one is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image

from mudg_core.corpus.shard_reader import CorpusImages, Link, ShardImages, has_images, open_images
from mudg_core.corpus.web.download import LinkedImages
from mudg_core.corpus.web.rules import PASSING
from mudg_core.dataset.fetch_filter_refill import Embed, FetchResult, fetch_filter_refill
from mudg_core.dataset.training_set import write_training_set
from mudg_core.storage import ArtifactRef, Facts
from tasks.policy import Work, stage
from tasks.run import Progress

FETCH = (
    "dataset.min_cosine",
    "dataset.filter_reference",
    "dataset.refill",
    "dataset.verify_hashes",
    "corpus.opt_out",
    "download.image_size",
    "download.quality",
    "download.max_pixels",
    "download.opt_out_directives",
    "encode.batch_size",
)


@stage("dataset", algorithm=3, settings=FETCH, weights=("encode.model",), gpu=True)
def fetch(
    work: Work, *, picks: ArtifactRef, found: ArtifactRef, queries: ArtifactRef, shards: list[ArtifactRef]
) -> Facts:
    """The training set: images that are there and fit, as a WebDataset shard with their provenance.

    Links that are dead now stay so in this training set.
    """
    plan = pq.read_table(work.store.file(picks, "picks.parquet"))
    filled = fill_plan(work, plan, found, queries, shards)
    chosen = filled.chosen()
    outcomes = pc.value_counts(filled.table.column("outcome")).to_pylist()
    per_label = np.bincount(chosen.column("label"), minlength=int(np.max(plan.column("label"))) + 1)
    return Facts(
        {
            "images": chosen.num_rows,
            "per_label": per_label.tolist(),
            "outcomes": {item["values"]: item["counts"] for item in outcomes},
            "tried": filled.tried,
            "alive": filled.alive,
            "dead": filled.dead,
            "rounds": filled.rounds,
        }
    )


def fill_plan(
    work: Work,
    plan: pa.Table,
    found: ArtifactRef,
    queries: ArtifactRef,
    shards: list[ArtifactRef],
    *,
    required: bool = True,
) -> FetchResult:
    """What a plan gives, written as a training set."""
    images = pq.read_table(work.store.file(found, "images.parquet"))
    links: dict[int, Link] = {line["row"]: line for line in images.to_pylist()}
    rounds, asking = _progress_by_round(work.progress)
    with work.store.temporary() as folder:
        corpus = _images(work, links, shards, folder, asking)
        filled = fetch_filter_refill(
            plan,
            _references(work, plan, queries),
            corpus,
            _embedder(work),
            work.settings.dataset,
            eager=bool(corpus.linked),
            again=PASSING if work.settings.download.retries else (),
            required=required,
            progress=rounds,
            count=lambda images: work.count(images, "images"),
        )
    write_training_set(filled, links, work.scratch)
    return filled


def _progress_by_round(progress: Progress) -> tuple[Progress, Progress]:
    """For `fetch_filter_refill`, and for downloads in between, which know of one round only: see there."""
    reached = 0.0

    def rounds(share: float) -> None:
        nonlocal reached
        reached = share
        progress(share)

    def asking(share: float) -> None:
        progress(reached + share * (1 - reached) / 2)

    return rounds, asking


def _images(
    work: Work, links: dict[int, Link], shards: list[ArtifactRef], folder: Path, asking: Progress
) -> CorpusImages:
    """From corpus shards where they lie there, else by their links."""
    bare = {n for n in {link["shard"] for link in links.values()} if not has_images(work.store, shards[n])}
    settings = work.settings
    by_link = LinkedImages(
        links,
        settings.download,
        folder,
        keep_opted_out=settings.corpus.opt_out == "keep",
        verify_hashes=settings.dataset.verify_hashes,
        on_progress=asking,
    )
    stored = ShardImages(lambda number: open_images(work.store, shards[number]), links)
    return CorpusImages(stored, {row for row, link in links.items() if link["shard"] in bare}, by_link)


def _embedder(work: Work) -> Embed:
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
