"""The stages of the gate: images are held out as training images are fetched, and judged if there are any."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mudg_core.corpus.shard_reader import TABLE, TAR
from mudg_core.corpus.shards import ShardSample, encode_jpeg, write_shard
from mudg_core.dataset.fetch_filter_refill import CHOSEN, SPARE
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.encode.shard import IMAGES, METADATA, TEXTS
from mudg_core.evaluate.gate import VERDICT
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from mudg_core.target.prompts import of_descriptors
from mudg_core.target.queries import Queries, write_queries
from mudg_core.target.spec import Target
from tasks.gate import gate, hold_out
from tasks.policy import Work

ROWS = 40  # every fourth was trained on; classes take turns; no image of the first spare ones is there
TARGET = Target(name="two", classes=("cat", "dog"))
GONE = (1, 2)


class Eye:
    """Every image is like every text, but for row 3, which is unlike all."""

    def pixels(self, image: Image.Image) -> Any:
        return np.array(image.getpixel((0, 0)))

    def encode_images(self, pixels: Any, batch_size: int | None) -> Any:
        return np.where(pixels[:, :1] > 100, 1.0, 0.0) * np.array([[1, 0]], np.float32)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    storage = {"url": f"file://{tmp_path}/store", "cache_dir": str(tmp_path / "cache")}
    settings = Settings().replace({"storage": storage, "gate": {"per_class": 6}})
    store = ArtifactStore(settings.storage)
    (tmp_path / "out").mkdir()
    checkpoints = store.checkpoints(Recipe(stage="held-out", algorithm=1))
    return Work(store, settings, tmp_path / "out", checkpoints, {settings.encode.model: Eye()})  # type: ignore[dict-item]


def artifact(work: Work, stage: str, write: Callable[[Path], Any], **facts: int) -> ArtifactRef:
    def make(folder: Path) -> Facts:
        write(folder)
        return Facts(dict(facts))

    return work.store.build(Recipe(stage=stage, algorithm=1, settings={"facts": facts}), make)


def shard(folder: Path) -> None:
    def image(row: int) -> bytes | None:
        shade = 0 if row == 3 else 200
        return None if row in GONE else encode_jpeg(Image.new("RGB", (8, 8), (shade, shade, shade)))

    samples = [ShardSample(f"{row}", f"u{row}", "c", image(row)) for row in range(ROWS)]
    write_shard(samples, folder / TAR, folder / TABLE)


def embeddings(folder: Path) -> None:
    features = np.random.default_rng(0).normal(size=(ROWS, 2)).astype(np.float16)
    for name in (IMAGES, TEXTS, METADATA):
        (folder / name).parent.mkdir(exist_ok=True)
    np.save(folder / IMAGES, features)
    np.save(folder / TEXTS, features)
    pq.write_table(pa.table({"row": np.arange(ROWS)}), folder / METADATA)


def queries(folder: Path) -> None:
    made = of_descriptors(TARGET, "none", [None])
    texts = np.array([[1, 0], [1, 0]], np.float32)
    write_queries(Queries.of(TARGET, made), made, folder, lambda asked: texts[: len(asked)])


def inputs(work: Work, outcome: Callable[[int], str]) -> dict[str, Any]:
    rows = np.arange(ROWS)
    tried = pa.table(
        {
            "row": rows,
            "label": rows % 2,
            "query": rows % 2,
            "rank": rows + 1,
            "cosine": np.full(ROWS, 0.5, np.float32),
            "outcome": [outcome(row) for row in rows.tolist()],
        }
    )
    lines = [
        {
            "row": n,
            "shard": 0,
            "file": TAR,
            "key": f"{n}",
            "url": f"u{n}",
            "sha256": f"{n}",
            "phash": n * 2**40,
        }
        for n in range(ROWS)
    ]
    images = pa.Table.from_pylist([line | {"caption": "c", "opt_out": False} for line in lines])
    return {
        "dataset": artifact(work, "dataset", lambda folder: pq.write_table(tried, folder / PROVENANCE)),
        "found": artifact(work, "found", lambda folder: pq.write_table(images, folder / "images.parquet")),
        "queries": artifact(work, "queries", queries),
        "shards": [artifact(work, "corpus-shard", shard, first_row=0, rows=ROWS)],
        "embeddings": [artifact(work, "embedding-shard", embeddings, rows=ROWS)],
    }


def test_spare_images_are_fetched_and_filtered_as_training_images_are(work: Work) -> None:
    given = inputs(work, lambda row: CHOSEN if row % 4 == 0 else SPARE)
    facts = hold_out.function(work, **given, seed=0).facts
    kept = [
        line for line in pq.read_table(work.scratch / PROVENANCE).to_pylist() if line["outcome"] == CHOSEN
    ]
    assert facts["images"] == len(kept) > 6 and facts["classes"] == 2
    assert all(line["row"] % 4 and line["row"] not in (*GONE, 3) for line in kept)
    assert all(line["label"] == line["row"] % 2 for line in kept)


def test_without_a_spare_image_the_model_is_handed_over_unjudged(work: Work) -> None:
    given = inputs(work, lambda row: CHOSEN)
    facts = hold_out.function(work, **given, seed=0).facts
    assert facts["images"] == 0
    held = artifact(work, "held-out", lambda folder: (folder / "empty").touch(), images=0)
    told = gate.function(work, model=held, queries=given["queries"], held_out=held).facts
    body = json.loads((work.scratch / VERDICT).read_text())
    assert told["better"] is None and body["alpha"] == 1.0
    assert "No labelled image" in body["reasons"][0]
