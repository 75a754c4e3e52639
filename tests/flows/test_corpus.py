"""A corpus of everything that strangers can do to us, from `corpus add` to a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mudg_core.corpus.sources import registry
from mudg_core.encode.shard import REFUSED, EmbeddingShard
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore
from tests.core.corpus.sources import making
from tests.support.demo_runs import digests
from tests.support.hostile import hostile_images, hostile_tar
from tests.support.hostile_web import HostileWeb, hostile_web
from tests.support.places import Place

pytestmark = pytest.mark.timeout(1200)  # a machine may be busy

GOOD = ("good/red", "good/blue", "png/x", "big/", "chunks/", "good-chain/2", "turned/")
BAD = {
    "missing/": "HTTP 404",
    "endless/": "refused: too large",
    "gzip-bomb/": "refused: content encoding",
    "to/canary": "refused: loopback address",
    "chain/2": "refused: loopback address",
    "to/file": "refused: scheme",
    "robots/noai": "opted out",
    "html/x.jpg": "image: not an image (html)",
}


@dataclass(frozen=True)
class Corpus:
    place: Place
    canary: HostileWeb
    expected: Counter[str]  # refusals by reason

    @property
    def folder(self) -> Path:
        return self.place.folder

    @property
    def store(self) -> ArtifactStore:
        return ArtifactStore(StorageSettings(url=f"file://{self.folder}/.mudg", cache_dir=str(self.folder)))


def hostile_sources(folder: Path, web: HostileWeb, canary: HostileWeb) -> Counter[str]:
    """Four sources below `folder`, and the refusals that they must lead to."""
    expected: Counter[str] = Counter()
    making.tars(folder / "tars", 2, 40)
    (folder / "tars/00000.parquet").unlink()
    expected.update(reason for _, reason in hostile_tar(folder / "tars/00009.tar") if reason)
    making.images(folder / "images", 6)
    for number, case in enumerate(hostile_images().values()):
        (folder / f"images/hostile-{number:03d}.jpg").write_bytes(case.data)
        expected[case.reason] += 1
    links = {f"{web.url}/{path}": None for path in GOOD} | {
        f"{web.url}/{path}": why for path, why in BAD.items()
    }
    links |= {"file:///etc/passwd": "refused: scheme", canary.url: "refused: loopback address"}
    links[f"http://169.254.169.254:{web.port}/latest"] = "refused: metadata address"
    (folder / "links").mkdir()
    table = pa.table({"URL": list(links), "TEXT": [f"a picture, number {n}" for n in range(len(links))]})
    pq.write_table(table, folder / "links/part.parquet")
    expected.update(reason for reason in links.values() if reason)
    return expected


@pytest.fixture(scope="module")
def corpus(local: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    folder = tmp_path_factory.mktemp("corpus")
    with hostile_web("127.0.0.1") as canary, hostile_web(port=canary.port, canary=canary.netloc) as web:
        expected = hostile_sources(folder, web, canary)
        chosen = {
            "encode.model": "demo:index",
            "index.variant": "paired",
            "index.cells": 4,
            "index.iterations": 2,
            "download.allow_networks": "[127.0.0.2/32]",
            "download.ports": f"[{web.port}]",
            "download.max_bytes": 300_000,
            "download.retries": 0,
        }
        flags = [part for name, value in chosen.items() for part in ("--set", f"{name}={value}")]
        place = replace(local, folder=folder, flags=flags)
        for name in ("tars", "images", "links"):
            place.run("corpus", "add", name)
        place.run("index", "build")
        yield Corpus(place, canary, expected)


def test_f60_to_f71_a_hostile_corpus_is_embedded_to_its_end(corpus: Corpus) -> None:
    """Every good sample is there, and every bad one is told with its reason."""
    status = corpus.place.run("corpus", "status")
    sources = {source["kind"]: source for source in status["sources"]}
    refused = sum((Counter(source["refused"]) for source in sources.values()), Counter())
    assert refused == corpus.expected
    assert sources["links"]["images"] == sources["links"]["usable"] == len(GOOD)
    assert sources["folder"]["usable"] >= 6
    alive = sum(sample.image is not None for sample in making.rows(0, 80))
    assert sources["webdataset"]["usable"] >= alive


def test_f61_f62_nothing_was_fetched_from_inside(corpus: Corpus) -> None:
    assert not corpus.canary.hits


def test_rows_are_unique_and_refusals_have_rows_of_their_own(corpus: Corpus) -> None:
    store = corpus.store
    keys = [key for key in digests(corpus.folder) if key.startswith("embedding-shard/")]
    folders = [store.folder(store.resolve(key)) for key in keys]
    rows = [int(row) for folder in folders for row in EmbeddingShard.open(folder).rows]
    refused = [row for folder in folders for row in pq.read_table(folder / REFUSED).column("row").to_pylist()]
    assert len({*rows, *refused}) == len(rows) + len(refused)
    first = [store.manifest(ref).facts["first_row"] for ref in registry.refs(store)]
    assert first == sorted(first) and rows


def test_a_search_shows_images_from_every_kind_of_source(corpus: Corpus) -> None:
    found = corpus.place.run("search", "a photo of a boat", "-n", "200", "--save", "found.png")
    files = {hit["file"].rpartition(".")[2] for hit in found["hits"]}
    assert files == {"tar", "jpg"} and (corpus.folder / "found.png").stat().st_size > 1000
    assert {hit["shard"] for hit in found["hits"]} == {0, 1, 2}


def test_building_again_computes_nothing_and_new_files_only_themselves(corpus: Corpus) -> None:
    before = digests(corpus.folder)
    assert corpus.place.run("index", "build")["computed"] == 0
    assert digests(corpus.folder) == before
    making.tars(corpus.folder / "more", 1, 30)
    assert corpus.place.run("corpus", "add", "more")["new_shards"] == 1
    corpus.place.run("index", "build")
    made = Counter(key.split("/")[0] for key in digests(corpus.folder).keys() - before.keys())
    assert made["embedding-shard"] == made["source-shard"] == 1 and not made["downloaded-shard"]


def test_status_as_people_read_it(corpus: Corpus) -> None:
    shown = corpus.place.says("corpus", "status")
    assert "refused because" in shown and "image: too many pixels" in shown and "webdataset" in shown


def test_nothing_added_yet(local: Place, tmp_path: Path) -> None:
    place = replace(local, folder=tmp_path)
    assert "nothing was added yet" in place.says("corpus", "status")
    refused = place.run("index", "build", ends=2)
    assert refused["what"] == "the corpus is empty"
    assert "mudg corpus add" in refused["fix"] and "mudg demo" in refused["fix"]
    assert not place.digests(), "nothing was drawn in its place"


def test_status_and_the_question_before_the_first_build(local: Place, tmp_path: Path) -> None:
    place = replace(local, folder=tmp_path, flags=[])
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (64, 64), "red").save(tmp_path / "photos/a red square.png")
    place.run("corpus", "add", "photos")
    assert place.run("corpus", "add", "photos/../photos")["new_shards"] == 0
    [source] = place.run("corpus", "status")["sources"]
    assert (source["shards"], source["embedded"]) == (1, 0)
    assert "which model" in place.run("index", "build", ends=2)["what"]
