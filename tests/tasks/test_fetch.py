"""The stage that fetches a training set, on a corpus with images in one shard and only links in the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mudg_core.corpus.shard_reader import NOT_THERE, TABLE, TAR, has_images
from mudg_core.corpus.shards import ShardSample, encode_jpeg, write_shard
from mudg_core.corpus.sources import shard as registered
from mudg_core.corpus.sources.shard import SourceFile, SourceShard
from mudg_core.dataset.fetch_filter_refill import CHOSEN
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.errors import DataError
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tasks.fetch import fetch
from tasks.policy import Work
from tests.support import fake_img2dataset

HALF = 5  # rows in each shard; the first two of each are dead


class Eye:
    """Every image is like every query."""

    def pixels(self, image: Image.Image) -> Any:
        return np.zeros(3)

    def encode_images(self, pixels: Any, batch_size: int | None) -> Any:
        return np.tile(np.array([1, 0], np.float32), (len(pixels), 1))


@pytest.fixture
def work(tmp_path: Path) -> Work:
    storage = {"url": f"file://{tmp_path}/store", "cache_dir": str(tmp_path / "cache")}
    download = {"command": fake_img2dataset.install(tmp_path), "backoff_seconds": 0}
    settings = Settings().replace({"storage": storage, "download": download})
    store = ArtifactStore(settings.storage)
    checkpoints = store.checkpoints(Recipe(stage="dataset", algorithm=1))
    (tmp_path / "out").mkdir()
    return Work(store, settings, tmp_path / "out", checkpoints, {settings.encode.model: Eye()})  # type: ignore[dict-item]


def artifact(work: Work, stage: str, write: Callable[[Path], Any], **facts: int) -> ArtifactRef:
    def make(folder: Path) -> Facts:
        write(folder)
        return Facts(dict(facts))

    return work.store.build(Recipe(stage=stage, algorithm=1), make)


def inputs(work: Work, links: list[str]) -> dict[str, Any]:
    """Label 0 has its images in a tar, label 1 behind links; of each, two are wanted and five are there."""
    image = encode_jpeg(Image.new("RGB", (8, 8), "red"))
    samples = [ShardSample(f"{n}", "u", "c", image if n > 1 else None) for n in range(HALF)]
    tar = artifact(
        work,
        "corpus-shard",
        lambda folder: write_shard(samples, folder / TAR, folder / TABLE),
        first_row=0,
        rows=HALF,
    )
    file = SourceFile(name="img_emb/img_emb_0.npy", size=1, rows=HALF, fingerprint="")
    pool = registered.save(
        work.store, SourceShard(kind="embeddings", url="file:///pool", first_row=HALF, files=(file,))
    )
    rows = [{"row": n, "shard": 0, "file": TAR, "key": f"{n}", "url": f"u{n}"} for n in range(HALF)]
    rows += [
        {"row": HALF + n, "shard": 1, "file": file.name, "key": "", "url": u} for n, u in enumerate(links)
    ]
    lines = [{"row": n, "label": n // HALF, "query": 0, "turn": n % HALF} for n in range(2 * HALF)]
    plan = pa.Table.from_pylist([line | {"group": line["label"], "quota": 2} for line in lines])
    images = pa.Table.from_pylist([row | {"caption": "c", "sha256": None, "opt_out": False} for row in rows])
    return {
        "picks": artifact(work, "picks", lambda folder: pq.write_table(plan, folder / "picks.parquet")),
        "found": artifact(work, "found", lambda folder: pq.write_table(images, folder / "images.parquet")),
        "queries": artifact(
            work, "queries", lambda folder: np.save(folder / "queries.npy", np.eye(2, dtype=np.float32))
        ),
        "shards": [tar, pool],
    }


def test_images_come_from_shards_and_by_links(work: Work) -> None:
    dead = "http://fake.example/fail/HTTP%20Error%20404:%20x"
    good = [f"http://fake.example/ok/{color}" for color in ("red", "green", "blue")]
    given = inputs(work, [dead, "file:///etc/passwd", *good])
    assert [has_images(work.store, ref) for ref in given["shards"]] == [True, False]
    facts = fetch.function(work, **given).facts
    assert facts["per_label"] == [2, 2]
    assert facts["dead"] == {NOT_THERE: 2, "HTTP 404": 1, "refused: scheme": 1}
    assert facts["tried"] == facts["alive"] + 4
    told = {line["row"]: line for line in pq.read_table(work.scratch / PROVENANCE).to_pylist()}
    assert [row for row, line in told.items() if line["outcome"] == CHOSEN] == [2, 3, 7, 8]
    assert [told[row]["detail"] for row in (0, 2, 5, 6, 9)] == [
        NOT_THERE,
        None,
        "HTTP 404",
        "refused: scheme",
        None,
    ]
    calls = fake_img2dataset.calls(Path(str(work.settings.download.command)).parent)
    assert calls[0]["urls"] == [dead] and len(calls) == 2
    assert not list(work.scratch.glob("links-*"))


def test_it_tells_how_far_it_is_round_by_round(work: Work) -> None:
    """Of the first round's four images none is there, so the second asks for the other six."""
    shares = list[float]()
    dead, good = ["file:///etc/passwd"] * 2, [f"http://fake.example/ok/{n}" for n in ("red", "lime", "blue")]
    given = inputs(work, dead + good)
    telling = Work(
        work.store, work.settings, work.scratch, work.checkpoints, work.encoders, progress=shares.append
    )
    fetch.function(telling, **given)
    assert [share for share, _ in groupby(shares)] == [0, 1 / 2, 4 / 10, 7 / 10]


def test_f69_the_floor_is_a_setting(work: Work) -> None:
    given = inputs(work, ["file:///etc/passwd"] * HALF)
    changed = work.settings.replace({"dataset": {"min_yield": 0.9}})
    with pytest.raises(DataError, match=r"3 of 10 images .*: refused: scheme 5, not in its shard 2"):
        fetch.function(Work(work.store, changed, work.scratch, work.checkpoints, work.encoders), **given)
