"""The parts of the benchmark that need a corpus: the demo's, whose truth is known."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.dataset import arms
from benchmarks.dataset.absent import absent_concept_auc
from benchmarks.dataset.hubs import WAYS, fewer, made_hubs
from benchmarks.dataset.truth import Oracle, coverage, drawn_as
from flows.build_classifier import Dataset
from flows.demo import as_target
from mudg_core.corpus.demo.kinds import KINDS
from mudg_core.corpus.demo.targets import TARGETS, DemoTarget
from mudg_core.corpus.demo.world import DemoWorld
from mudg_core.dataset.fetch_filter_refill import CHOSEN
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.encode.shard import EmbeddingShard, gather_images
from mudg_core.index.version import current_version
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactStore
from mudg_core.target.queries import QUERIES, read_queries
from mudg_core.target.spec import Target

Found = dict[str, Any]
# What everything in a target is called.
GENERIC = {"animals": "animal", "vehicles-and-buildings": "vehicle", "market": "thing"}
METHODS = (
    "cluster",
    "none",
    "random",
    "nearest",
    "margin",
    "least-confident",
    "entropy",
    "herding",
    "k-centre",
)
STRANGERS = ("violin", "submarine", "volcano", "bicycle pump", "chess board", "telescope", "blorf", "quizzle")


def oracle(settings: Settings, target: DemoTarget) -> Oracle:
    world = DemoWorld(seed=settings.corpus.seed, size=settings.corpus.image_size)
    return Oracle(world, drawn_as(_shards(settings)), target.kinds)


def against_truth(settings: Settings) -> Found:
    """Every demo target as the demo builds it: what its labels are worth, before and after selection."""
    made = arms.made(settings, [as_target(t, (0,)) for t in TARGETS], {"mudg": {}}, trained=False)["mudg"]
    store = ArtifactStore(settings.storage)
    return {
        target.name: _judged(store, oracle(settings, target), one.data)
        for target, one in zip(TARGETS, made, strict=True)
    }


def _judged(store: ArtifactStore, truth: Oracle, data: Dataset) -> Found:
    labelled = pq.read_table(store.file(data.labels, "labels.parquet"))
    kept = _kept(store, data)
    rows, labels = (kept.column(name).to_numpy() for name in ("row", "label"))
    return {
        "labelled": truth.precision(*(labelled.column(name).to_numpy() for name in ("row", "label"))),
        "chosen": truth.precision(rows, labels),
        "duplicate_rate": truth.duplicate_rate(rows, labels),
        "images": len(rows),
    }


def _kept(store: ArtifactStore, data: Dataset) -> pa.Table:
    table = pq.read_table(store.file(data.by_seed[0], PROVENANCE))
    return table.filter(pa.array(table.column("outcome").to_numpy(zero_copy_only=False) == CHOSEN))


def labels_as_hubs(settings: Settings) -> Found:
    """Every label of every target once made into a hub; means over labels, and over targets."""
    targets = [as_target(target, (0,)) for target in TARGETS]
    made = arms.made(settings, targets, {"mudg": {}}, trained=False)["mudg"]
    store = ArtifactStore(settings.storage)
    images = np.concatenate([shard.images for shard in _shards(settings)]).astype(np.float32)
    found: Found = {}
    for one in made:
        folder = store.folder(one.data.queries)
        labels = np.array(read_queries(folder).labels)
        excess = made_hubs(images, np.load(folder / QUERIES), labels, settings.dataset.neighbors)
        found[one.target.name] = {way: float(np.mean(excess[way])) for way in WAYS} | {"fewer": fewer(excess)}
    means = {name: float(np.mean([one[name] for one in found.values()])) for name in (*WAYS, "fewer")}
    return found | {"mean": means}


def generic_classes(settings: Settings) -> Found:
    """Each target once more with a class that says what all the others are: what it gets over an even share,
    less one, by rank and by cosine."""
    targets = [_with_generic(target) for target in TARGETS]
    ways = {way: {"dataset": {"label": way}} for way in WAYS}
    made = arms.made(settings, targets, ways, trained=False)
    store = ArtifactStore(settings.storage)
    found = {
        target.name: {way: _excess(store, made[way][number].data) for way in ways}
        for number, target in enumerate(targets)
    }
    return found | {"mean": {way: float(np.mean([one[way] for one in found.values()])) for way in ways}}


def _with_generic(target: DemoTarget) -> Target:
    classes = (*target.classes, GENERIC[target.name])
    return Target(name=f"{target.name}-generic", classes=classes, template=target.template)


def _excess(store: ArtifactStore, data: Dataset) -> float:
    counts: Any = store.manifest(data.labels).facts["per_label"]
    return float(counts[-1] * len(counts) / sum(counts) - 1)


def selection_methods(settings: Settings, steps: int) -> Found:
    """On `animals`: what each method chooses from the same labelled images, and the student it gives."""
    target = TARGETS[0]
    ways = {name: {"dataset": {"select": name}, "train": {"iterations": steps}} for name in METHODS}
    made = arms.made(settings, [as_target(target, (0,))], ways, trained=True)
    store = ArtifactStore(settings.storage)
    shards = _shards(settings)
    return {
        name: _selected(store, shards, oracle(settings, target), one[0].data) | {"accuracy": one[0].accuracy}
        for name, one in made.items()
    }


def _selected(store: ArtifactStore, shards: list[EmbeddingShard], truth: Oracle, data: Dataset) -> Found:
    labelled = pq.read_table(store.file(data.labels, "labels.parquet"))
    rows, labels = (labelled.column(name).to_numpy() for name in ("row", "label"))
    kept = _kept(store, data)
    own = kept.column("row").to_numpy(), kept.column("label").to_numpy()
    return {
        "images": kept.num_rows,
        "precision": truth.precision(*own)["all"],
        "duplicate_rate": truth.duplicate_rate(*own),
        "coverage": coverage(gather_images(shards, rows), labels, np.isin(rows, own[0])),
        "styles": truth.styles(*own),
    }


def absent_concepts(settings: Settings) -> Found:
    """Every kind of the demo world, there and taken away, and names of things that it never had."""
    from mudg_core.encode.models import load_clip

    shards = _shards(settings)
    clip, truth = load_clip(settings.encode.model), oracle(settings, TARGETS[0])
    rows = np.concatenate([shard.rows for shard in shards])
    kinds = np.array([found.kind or "" for found in truth.truths(rows)])
    names = [kind.name for kind in KINDS]
    images, texts = (np.concatenate([getattr(s, side) for s in shards]) for side in ("images", "texts"))
    sides = images.astype(np.float32), texts.astype(np.float32)
    prompts = [clip.encode_texts([f"a photo of a {name}." for name in some]) for some in (names, STRANGERS)]
    return asdict(absent_concept_auc(*sides, kinds, names, *prompts))


def _shards(settings: Settings) -> list[EmbeddingShard]:
    store = ArtifactStore(settings.storage)
    return [EmbeddingShard.open(store.folder(ref)) for ref in current_version(store).embeddings]
