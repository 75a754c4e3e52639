"""The stages that warn, on artifacts made by hand; the search is exact and in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.corpus.demo.targets import TARGETS, evaluation_images
from mudg_core.corpus.demo.world import DemoWorld
from mudg_core.corpus.shards import ShardSample, encode_jpeg
from mudg_core.dataset.leaks import LEAKS
from mudg_core.dataset.warning import TargetWarning, read_warnings
from mudg_core.encode.embed import embed_shard
from mudg_core.encode.models import load_clip
from mudg_core.encode.shard import EmbeddingShard
from mudg_core.evaluate.images import write_evaluation
from mudg_core.index.ivf import Hits
from mudg_core.index.training_data import Counts, draw
from mudg_core.index.vectors import Float32, normalised
from mudg_core.settings import DEMO_MODEL, Settings, load_settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from mudg_core.target.descriptor_selection import Scored
from mudg_core.target.prompts import of_descriptors
from mudg_core.target.queries import Queries, write_queries
from mudg_core.target.spec import Target
from tasks import checks
from tasks.policy import Stage, Work

SEED, ROWS = 0, 1200
KINDS = ("cat", "house", "car", "flower", "t-shirt")
PER_CLASS = 8


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    places = {"url": f"file://{tmp_path}", "cache_dir": str(tmp_path / "cache")}
    tree = {"storage": places, "encode": {"model": DEMO_MODEL}, "dataset": {"per_class": PER_CLASS}}
    return load_settings(overrides=tree, environ={})


@pytest.fixture
def store(settings: Settings) -> ArtifactStore:
    return ArtifactStore(settings.storage)


def made(store: ArtifactStore, name: str, make: Callable[[Path], object], facts: Any = None) -> ArtifactRef:
    def build(folder: Path) -> Facts:
        make(folder)
        return Facts(facts or {"rows": 1})

    return store.build(Recipe(stage=name, algorithm=1, settings={}, parents={}, weights={}), build)


def run(stage: Stage[...], settings: Settings, store: ArtifactStore, **inputs: Any) -> ArtifactRef:
    recipe = stage.recipe(settings, inputs)
    return store.build(
        recipe, lambda folder: stage.make(recipe, Work(store, settings, folder, store.checkpoints(recipe)))
    )


def embed(samples: list[ShardSample], out: Path) -> None:
    embed_shard((("file", sample) for sample in samples), load_clip("demo:index"), 0, out)


@pytest.fixture(scope="module")
def five_kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("five")
    embed(of_the_world(KINDS), out)
    return out


def of_the_world(kinds: tuple[str, ...]) -> list[ShardSample]:
    """Rows of the demo world that show some kinds only; popular copies and other dirt stay."""
    world = DemoWorld(seed=SEED)
    rows = [index for index in range(ROWS) if world.truth(index).kind in kinds]
    shown = [(index, world.row(index)) for index in rows]
    return [
        ShardSample(f"{i}", r.url, r.caption, encode_jpeg(r.image)) for i, r in shown if r.image is not None
    ]


def exact(shard: EmbeddingShard) -> Callable[..., Hits]:
    def search(_work: Work, _version: Any, queries: Float32, neighbors: int) -> Hits:
        cosines = queries @ normalised(shard.images).T
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :neighbors]
        return Hits(shard.rows[best], np.take_along_axis(cosines, best, 1).astype(np.float32))

    return search


@pytest.fixture
def checked(
    settings: Settings, store: ArtifactStore, five_kinds: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[TargetWarning]]:
    """Warnings of classes in a corpus of five kinds; `labelled` says how many candidates each class got."""

    def check(
        classes: tuple[str, ...], labelled: list[int], scored: tuple[Scored, ...] = (), **more: Any
    ) -> list[TargetWarning]:
        embedding = made(store, "embedding-shard", lambda out: copytree(five_kinds, out, dirs_exist_ok=True))
        shard = EmbeddingShard.open(store.folder(embedding))
        drawn = draw([shard], Counts(10, 10, 60, 60), 0)
        samples = made(store, "samples", drawn.write)
        version = SimpleNamespace(samples=samples)
        monkeypatch.setattr(checks, "load_version", lambda *_: version)
        monkeypatch.setattr(checks, "check_model", lambda *_: None)
        monkeypatch.setattr(checks, "search_parts", exact(shard))
        target = Target(name="t", classes=classes)
        encode = load_clip("demo:index").encode_texts
        said = replace(of_descriptors(target, "none", (None,)), scored=scored, clusters=(classes,))
        asked = Queries.of(target, said)
        queries = made(store, "queries", lambda out: write_queries(asked, said, out, encode))
        table = pa.table(
            {"row": np.arange(sum(labelled)), "label": np.repeat(np.arange(len(classes)), labelled)}
        )
        found = made(store, "candidates", lambda out: pq.write_table(table, out / "hits.parquet"))
        labels = made(store, "labels", lambda out: pq.write_table(table, out / "labels.parquet"))
        parents = {"queries": queries, "index": samples, "embeddings": [embedding], "found": found}
        return read_warnings(
            store.folder(run(checks.check_classes, settings, store, labels=labels, **parents, **more))
        )

    return check


def test_a_sound_target_has_no_warning(checked: Callable[..., list[TargetWarning]]) -> None:
    assert checked(("cat", "house", "car"), [8, 8, 8]) == []


def test_absent_twins_and_few_are_told(checked: Callable[..., list[TargetWarning]]) -> None:
    told = checked(("cat", "kitten", "house", "helicopter"), [8, 8, 3, 8])
    assert [(item.kind, item.classes) for item in told] == [
        ("absent", ("helicopter",)),
        ("twins", ("cat", "kitten")),
        ("few", ("house",)),
    ]


def test_descriptors_that_eq_4_could_not_choose_are_told(checked: Callable[..., list[TargetWarning]]) -> None:
    scored = tuple(Scored(f"which is {number}", 1, 0.5, (0,)) for number in range(3))
    (told,) = checked(("cat", "house", "car"), [8, 8, 8], scored)
    assert (told.kind, dict(told.numbers)) == ("descriptors", {"pool": 3, "loss": 1, "groups": 1})


def test_the_poorest_seed_and_leaks_are_told(
    checked: Callable[..., list[TargetWarning]], store: ArtifactStore
) -> None:
    sets = [
        made(store, f"dataset-{n}", lambda out: (out / "x").write_text("x"), {"per_label": counts})
        for n, counts in enumerate([[8, 8], [8, 3]])
    ]
    line = {"row": 1, "image": "000000001", "why": "copy", "cosine": 1.0, "bits": 0}
    leaks = pa.Table.from_pylist([line], checks.leaks.SCHEMA)
    leaked = made(store, "leaks", lambda out: pq.write_table(leaks, out / LEAKS))
    told = checked(("cat", "house"), [8, 8], datasets=sets, leaked=leaked)
    assert [(item.kind, dict(item.numbers)) for item in told] == [
        ("few", {"candidates": 8, "wanted": 8, "chosen": 3}),
        ("leaks", {"rows": 1, "images": 1}),
    ]


def test_leaks_are_found_among_candidates_only(settings: Settings, store: ArtifactStore) -> None:
    drawn = [encode_jpeg(image) for image, _ in evaluation_images(TARGETS[0], "sketch", 1, 7)]
    images = [("sketch", 0, data) for data in drawn[:6]]
    evaluation = made(store, "evaluation", lambda out: write_evaluation(images, out))
    planted = [ShardSample(str(n), "u", "c", data) for n, data in enumerate(drawn)]
    embedding = made(store, "embedding-shard", lambda out: embed(planted, out))
    candidates = EmbeddingShard.open(store.folder(embedding)).metadata().slice(2, 10)
    found = made(store, "candidates", lambda out: pq.write_table(candidates, out / "images.parquet"))
    prints = run(checks.fingerprint_evaluation, settings, store, evaluation=evaluation)
    ref = run(checks.find_leaks, settings, store, found=found, prints=prints, embeddings=[embedding])
    table = pq.read_table(store.file(ref, LEAKS))
    assert table.column("row").to_pylist() == [2, 3, 4, 5]
    assert table.column("image").to_pylist() == [f"{n:09d}" for n in (2, 3, 4, 5)]
    facts = store.manifest(ref).facts
    assert (facts["candidates"], facts["evaluation"], facts["same file"]) == (10, 6, 4)
