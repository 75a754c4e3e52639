"""Corpus in, a searchable index out: the upper half of the diagram in the README."""

from __future__ import annotations

from dataclasses import dataclass

from prefect import flow

from flows.session import dask_runner
from mudg_core.index.version import IndexVersion, load_version, promote
from mudg_core.settings import Settings
from tasks.corpus import draw_shard
from tasks.embed import embed
from tasks.index import find_pairs, populate, train_centroids
from tasks.run import Run, StageRecord


@dataclass(frozen=True)
class IndexBuild:
    """An index version, and what this run did for it."""

    version: IndexVersion
    records: list[StageRecord]


@flow(
    name="build-index",
    description="Embeds the corpus, trains paired k-means centroids, populates the index and promotes it.",
    task_runner=dask_runner(),
    persist_result=False,
)
def build_index(settings: Settings) -> IndexBuild:
    """corpus shards → embeddings → pairs → centroids → index → current"""
    run = Run(settings)
    batch = settings.compute.shards_per_task
    shards = draw_shard.map(run, plan_shards(settings), per_task=batch)
    embeddings = embed.map(run, [{"shard": shard} for shard in shards], per_task=batch)
    pairs = find_pairs(run, embeddings=embeddings)
    centroids = train_centroids(run, pairs=pairs, embeddings=embeddings)
    index = populate(run, centroids=centroids, pairs=pairs, embeddings=embeddings)
    promote(run.store, index)
    return IndexBuild(load_version(run.store, index), run.records)


def plan_shards(settings: Settings) -> list[dict[str, int]]:
    """First row and number of rows of each corpus shard."""
    corpus = settings.corpus
    return [
        {"first_row": first, "rows": min(corpus.rows_per_shard, corpus.rows - first)}
        for first in range(0, corpus.rows, corpus.rows_per_shard)
    ]
