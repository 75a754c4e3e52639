"""Everything that a model is handed over with, in a store: six images of four shards of three sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.dataset.fetch_filter_refill import CHOSEN, DEAD
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tests.support.exported import QUERIES
from tests.support.training_sets import make

ROWS = (10, 11, 110, 210, 211, 310)  # ten rows a hundred: shards 0 and 1 are of one source
SHARDS = (0, 0, 1, 2, 2, 3)
SPEC = {
    "classes": QUERIES.target.classes,
    "template": QUERIES.target.template,
    "synonyms": {},
    "method": QUERIES.method,
    "descriptors": QUERIES.descriptors,
    "matrix": QUERIES.matrix,
    "prompts": QUERIES.texts,
    "labels": QUERIES.labels,
}


@dataclass(frozen=True)
class Made:
    store: ArtifactStore
    refs: dict[str, ArtifactRef]
    scores: list[ArtifactRef]
    warnings: ArtifactRef

    def verdict(self, alpha: float) -> ArtifactRef:
        body = {"alpha": alpha, "better": alpha > 0, "reasons": ["agreement"]}
        return make(self.store, "verdict", {"alpha": alpha}, {"verdict.json": body})


def make_all(store: ArtifactStore, write_model: Callable[[Path], Any] = lambda folder: None) -> Made:
    queries = make(store, "queries", {"augment.count": 2}, {"queries.json": SPEC})
    shards = _shards(store)
    embeddings = tuple(make(store, "embedding-shard", {"n": n}, {"x": {}}) for n in range(len(shards)))
    index = _artifact(store, "index", {"embeddings": embeddings}, facts={"rows": 500})
    found = _artifact(store, "candidates", {}, lambda folder: _places(folder / "images.parquet"))
    dataset = _artifact(
        store,
        "dataset",
        {"queries": queries, "found": found, "shards": shards},
        lambda folder: _provenance(folder / "provenance.parquet"),
        {"dataset.min_cosine": 0.25, "download.quality": 95},
        {"per_label": [4, 2], "images": 6},
    )
    model = _artifact(
        store,
        "model",
        {"dataset": dataset, "queries": queries},
        write_model,
        {"inputs": {"seed": 5}, "train.iterations": 4},
        weights={"train.model": "cd" * 32},
    )
    scores = [make(store, "scores", {"n": n}, {"scores.json": _scores(60.0 - 10 * n)}) for n in range(2)]
    told = [{"kind": "few", "classes": ["cat"], "message": "few images of cat", "numbers": {}}]
    warnings = make(store, "warnings", {}, {"warnings.json": told})
    refs = {"model": model, "queries": queries, "dataset": dataset, "index": index}
    return Made(store, refs, scores, warnings)


def _shards(store: ArtifactStore) -> tuple[ArtifactRef, ...]:
    def source(kind: str, url: str, number: int) -> ArtifactRef:
        return make(store, "source-shard", {"n": number}, {"x": {}}, {"kind": kind, "url": url})

    pool = [source("webdataset", "s3://bucket/pool", number) for number in range(2)]
    links = source("links", "file:///home/me/list.parquet", 2)
    downloaded = make(store, "downloaded-shard", {}, {"x": {}}, shard=links)
    return *pool, downloaded, make(store, "corpus-shard", {}, {"x": {}})


def _places(file: Path) -> None:
    pq.write_table(pa.table({"row": [5, *ROWS], "shard": [0, *SHARDS]}), file)


def _provenance(file: Path) -> None:
    outcomes = [CHOSEN] * len(ROWS)
    pq.write_table(pa.table({"row": [*ROWS, 5], "outcome": [*outcomes, DEAD]}), file)


def _scores(mean: float) -> dict[str, Any]:
    score = {"mean": mean, "domains": {"photo": mean}, "classes": [mean] * 3}
    return {
        "zero_shot": {"single": score | {"mean": 1.0}},
        "nearest_neighbours": {"single": score},
        "mudg": {"single": score, "averaged": score},
    }


def _artifact(
    store: ArtifactStore,
    stage: str,
    parents: dict[str, Any],
    write: Callable[[Path], Any] = lambda folder: None,
    settings: dict[str, Any] | None = None,
    facts: dict[str, Any] | None = None,
    weights: dict[str, str] | None = None,
) -> ArtifactRef:
    def made(folder: Path) -> Facts:
        (folder / "x").write_text("x")
        write(folder)
        return Facts(facts or {})

    recipe = Recipe(stage=stage, algorithm=1, settings=settings or {}, parents=parents, weights=weights or {})
    return store.build(recipe, made)
