"""A target on published embeddings: no image is in the corpus, and a third of the links lead nowhere."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.corpus.decode import decode
from mudg_core.dataset.fetch_filter_refill import CHOSEN, DEAD
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.encode.models import load_clip
from tests.core.corpus.sources import making
from tests.support.demo_runs import SMALL
from tests.support.hostile_web import HostileWeb, hostile_web
from tests.support.places import Place

pytestmark = pytest.mark.timeout(1200)  # a machine may be busy

ROWS = 400
SPEC = "name: {name}\nclasses: [cat, car]\nseeds: [{seed}]\nsettings: {{dataset: {{per_class: 6}}}}\n"


@dataclass(frozen=True)
class Pool:
    place: Place
    web: HostileWeb
    canary: HostileWeb

    def target(self, name: str, seed: int, ends: int = 0) -> dict[str, Any]:
        (self.place.folder / f"{name}.yaml").write_text(SPEC.format(name=name, seed=seed))
        """Without the gate, which would fetch images of its own to judge by."""
        return self.place.run("target", "run", f"{name}.yaml", "--set", "gate.enabled=false", ends=ends)

    def datasets(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Facts and provenance of every training set."""
        for manifest in self.place.folder.glob(".mudg/artifacts/dataset/*/manifest.json"):
            lines = pq.read_table(next(manifest.parent.rglob(PROVENANCE))).to_pylist()
            yield json.loads(manifest.read_text())["facts"], lines


def publish(folder: Path, web: HostileWeb, canary: HostileWeb) -> None:
    """Embeddings of images that only `web` has: of ten links two are dead and one leads inside, and some
    give something else by now."""
    for name in ("img_emb", "text_emb", "metadata"):
        (folder / name).mkdir(parents=True)
    samples = [sample for sample in making.rows(0, ROWS) if sample.image]
    clip = load_clip("demo:index")
    pixels = np.stack([clip.pixels(decode(sample.image or b"")) for sample in samples])
    np.save(folder / "img_emb/img_emb_0.npy", clip.encode_images(pixels).astype(np.float16))
    texts = clip.encode_texts([sample.caption for sample in samples])
    np.save(folder / "text_emb/text_emb_0.npy", texts.astype(np.float16))
    urls, hashes = [], []
    for number, sample in enumerate(samples):
        if number % 10 >= 2:
            web.stored[f"{number}.jpg"] = sample.image or b""
        urls.append(f"{canary.url if number % 10 == 2 else web.url}/stored/{number}.jpg")
        hashes.append(hashlib.sha256(sample.image or b"").hexdigest() if number % 20 != 8 else "0" * 64)
    captions = [sample.caption for sample in samples]
    table = pa.table({"url": urls, "caption": captions, "sha256": hashes})
    pq.write_table(table, folder / "metadata/metadata_0.parquet")


@pytest.fixture(scope="module")
def pool(local: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    folder = tmp_path_factory.mktemp("links")
    with hostile_web("127.0.0.1") as canary, hostile_web(port=canary.port) as web:
        publish(folder / "pool", web, canary)
        chosen = {
            name: value for name, value in SMALL.items() if not name.startswith(("corpus.", "compute."))
        }
        chosen |= {"download.allow_networks": "[127.0.0.2/32]", "download.ports": f"[{web.port}]"}
        chosen |= {"download.backoff_seconds": 0, "dataset.neighbors": 48}
        chosen |= {"index.variant": "paired", "index.cells": 4, "index.iterations": 2}
        flags = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]
        place = replace(local, folder=folder, flags=flags)
        place.run("corpus", "add", "pool")
        place.run("index", "build")
        yield Pool(place, web, canary)


def test_f69_30_percent_dead_links_give_full_and_balanced_classes(pool: Pool) -> None:
    result = pool.target("third-dead", seed=0)
    assert Path(result["report"]).is_file()
    ((facts, lines),) = pool.datasets()
    assert facts["per_label"] == [6, 6] and facts["images"] == 12
    assert facts["tried"] == facts["alive"] + sum(facts["dead"].values())
    assert facts["dead"].keys() >= {"HTTP 404", "refused: loopback address"} and facts["rounds"] <= 5
    details = Counter(line["detail"] for line in lines if line["outcome"] == DEAD)
    assert details and all(count <= facts["dead"][reason] for reason, count in details.items())
    chosen = {line["url"] for line in lines if line["outcome"] == CHOSEN}
    assert {url.removeprefix(pool.web.url) for url in chosen} <= pool.web.hits.keys()
    assert pool.web.hits.total() <= facts["tried"] < len(lines)  # what nobody needs is left alone


def test_f61_nothing_was_fetched_from_inside(pool: Pool) -> None:
    assert not pool.canary.hits


def test_f69_all_links_dead_fails_and_says_why(pool: Pool) -> None:
    pool.web.stored.clear()
    failed = pool.target("all-dead", seed=1, ends=3)
    assert "images that were tried could be fetched and read" in failed["what"], failed
    assert "0 of " in failed["what"] and "HTTP 404" in failed["what"] and "dataset.min_yield" in failed["fix"]


def test_results_without_images_are_told(pool: Pool) -> None:
    failed = pool.place.run("search", "a photo of a boat", "-n", "1", "--save", "found.png", ends=3)
    assert "no image of these results" in failed["what"]
