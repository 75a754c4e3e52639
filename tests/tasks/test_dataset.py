"""The stages `labels` and `picks` on small artifacts, without a cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.build_classifier import label_candidates
from mudg_core.dataset.leaks import LEAKS
from mudg_core.dataset.pseudo_labels import HUBNESS, Hubness
from mudg_core.dataset.selection_rules import UNCERTAIN
from mudg_core.settings import Settings, StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tasks.dataset import select, select_queries
from tasks.executors.in_process import ThreadHost
from tasks.policy import Stage, Work
from tasks.run import Run
from tests.core.index.making import modality_gap, shard_of

ROWS, CLASSES, PER_LABEL, NEIGHBORS = 200, 5, 2, 12


class World:
    """Two shards, ten queries, and what an index that misses every third image finds for them."""

    def __init__(self, folder: Path) -> None:
        self.store = ArtifactStore(StorageSettings(url=f"file://{folder}", cache_dir=str(folder / "cache")))
        images, texts = modality_gap(ROWS)
        halves = np.array_split(np.arange(ROWS), 2)
        self.embeddings = [
            self._made("embeddings", lambda out, h=half: shard_of(out, h, images[h], texts[h]), n)
            for n, half in enumerate(halves)
        ]
        queries = texts[:: ROWS // (CLASSES * PER_LABEL)][: CLASSES * PER_LABEL]
        seen = np.flatnonzero(np.arange(ROWS) % 3 > 0)
        cosines = queries @ images[seen].T
        best = np.argsort(-cosines, axis=1)[:, :NEIGHBORS]
        query = np.repeat(np.arange(CLASSES * PER_LABEL), NEIGHBORS)
        hits = {
            "query": query,
            "label": query // PER_LABEL,
            "rank": np.tile(np.arange(1, NEIGHBORS + 1), CLASSES * PER_LABEL),
            "row": seen[best].ravel(),
            "cosine": np.take_along_axis(cosines, best, axis=1).ravel(),
        }
        self.found = self._made(
            "candidates", lambda out: pq.write_table(pa.table(hits), out / "hits.parquet")
        )

        def write_queries(out: Path) -> None:
            np.save(out / "queries.npy", queries)
            np.save(out / "labels.npy", queries[::PER_LABEL])

        self.queries = self._made("queries", write_queries)

    def _made(self, stage: str, write: Callable[[Path], object], number: int = 0) -> ArtifactRef:
        def make(scratch: Path) -> Facts:
            write(scratch)
            return Facts({})

        return self.store.build(Recipe(stage=stage, algorithm=1, settings={"n": number}), make)

    def run(self, stage: Stage[...], settings: Settings, **inputs: Any) -> ArtifactRef:
        recipe = stage.recipe(settings, inputs)
        points = self.store.checkpoints(recipe)
        return self.store.build(
            recipe, lambda scratch: stage.make(recipe, Work(self.store, settings, scratch, points))
        )

    def leaks(self, rows: list[int]) -> ArtifactRef:
        return self._made("leaks", lambda out: pq.write_table(pa.table({"row": rows}), out / LEAKS))

    def label(self, leaked: ArtifactRef | None = None, device: str = "cpu", **dataset: Any) -> ArtifactRef:
        changes = {"compute": {"device": device}, "dataset": {"neighbors": NEIGHBORS, **dataset}}
        settings = Settings().replace(changes | {"storage": self.store.settings.model_dump()})
        known = (self.found, self.queries, self.embeddings, leaked)
        return label_candidates(Run(settings), CLASSES + 1, *known)

    def select(self, method: str, seed: int = 0) -> pa.Table:
        settings = Settings().replace({"dataset": {"select": method, "per_class": 4}})
        prompts = select_queries(settings, self.queries)
        more = {"queries": prompts} if prompts else {}
        picks = self.run(select, settings, labels=self.label(), embeddings=self.embeddings, seed=seed, **more)
        assert set(self.store.manifest(picks).recipe.parents) == {"labels", "embeddings", *more}
        return pq.read_table(self.store.file(picks, "picks.parquet"))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_labels_and_their_hubness(world: World) -> None:
    made = world.label()
    manifest = world.store.manifest(made)
    labels = pq.read_table(world.store.file(made, "labels.parquet")).column("label").to_numpy()
    hubness = Hubness.from_json(world.store.file(made, HUBNESS).read_text())
    per_label = np.bincount(labels, minlength=CLASSES + 1).tolist()
    assert manifest.facts == {"images": len(labels), "per_label": per_label}
    assert list(hubness.by_rank) == per_label and per_label[-1] == 0
    assert set(manifest.recipe.parents) == {"found"}


@pytest.mark.parametrize("ranks", ["retrieved", "exact"])
def test_leaks_are_left_out_unless_the_switch_is_off(world: World, ranks: str) -> None:
    """Off, labels are those of a target without evaluation images: the same key, and so all that follows."""
    plain = world.label(ranks=ranks)
    rows = pq.read_table(world.store.file(plain, "labels.parquet")).column("row").to_pylist()
    leaked = world.leaks(rows[:3])
    assert world.label(leaked, ranks=ranks, exclude_leaks=False) == plain
    without = world.label(leaked, ranks=ranks)
    assert without.key != plain.key
    left = pq.read_table(world.store.file(without, "labels.parquet")).column("row").to_pylist()
    assert sorted(left) == sorted(rows[3:])


def test_exact_ranks_take_more_and_tell_the_difference(world: World) -> None:
    fast, made = world.label(), world.label(ranks="exact")
    facts = world.store.manifest(made).facts
    assert set(world.store.manifest(made).recipe.parents) == {"found", "queries", "embeddings"}
    tables = [pq.read_table(world.store.file(ref, "labels.parquet")).sort_by("row") for ref in (fast, made)]
    one, other = (table.column("label").to_numpy() for table in tables)
    assert tables[0].column("row").equals(tables[1].column("row"))
    assert facts["relabelled"] == int((one != other).sum())
    assert int(str(facts["depth"])) >= NEIGHBORS


def test_f98_exact_ranks_are_counted_on_a_cpu(world: World) -> None:
    """The stage asks for no GPU, so a worker without one may get it; and its key names no precision."""
    assert world.label(ranks="exact", device="cuda") == world.label(ranks="exact")


def test_every_way_to_select(world: World) -> None:
    for method in ("cluster", "none", "random", "herding", "k-centre", "nearest", *UNCERTAIN):
        plan = world.select(method)
        labels, counts = np.unique(plan.column("label").to_numpy(), return_counts=True)
        assert plan.column_names[-3:] == ["group", "quota", "turn"]
        firsts = plan.filter(pa.array(plan.column("turn").to_numpy() < plan.column("quota").to_numpy()))
        taken = np.bincount(firsts.column("label").to_numpy())[labels]
        assert (taken == (counts if method == "none" else np.minimum(counts, 4))).all()


@pytest.mark.parametrize("method", ["cluster", "entropy"])
def test_spans_that_travel_to_other_workers_give_the_same(
    method: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, asked = world.select(method), []

    def spread(function: Any, spans: Any, seconds: float) -> Any:
        asked.extend(spans)
        return [pickle.loads(pickle.dumps(function))(span) for span in spans]

    monkeypatch.setattr(ThreadHost, "spread", lambda self, *asked_for: spread(*asked_for))
    monkeypatch.setattr("mudg_core.dataset.cluster_selection.IMAGES_AT_ONCE", 20)
    assert World(tmp_path / "elsewhere").select(method).equals(here)
    assert len(asked) > 1


def test_seeds_and_methods_have_artifacts_of_their_own(world: World) -> None:
    assert not world.select("cluster").equals(world.select("cluster", seed=1))
    assert not world.select("random").equals(world.select("none"))
