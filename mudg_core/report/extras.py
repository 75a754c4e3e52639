"""What only some runs have: warnings, hubness, a map; and the funnel, which takes facts from many places."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from mudg_core.dataset.build import DEAD, SPARE
from mudg_core.dataset.map import MAP, ClassMap
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.report.data import Hubness, Notice
from mudg_core.storage import ArtifactRef, ArtifactStore

HUBNESS = "hubness.json"
WARNINGS = "warnings.json"


def funnel_of(
    store: ArtifactStore, found: ArtifactRef, labels: ArtifactRef, dataset: ArtifactRef
) -> tuple[tuple[str, int], ...]:
    """From what the queries found to what is trained on. `selected` are places to fill: a link that is dead
    gives its place to another image, so more may be fetched than were selected."""
    candidates, made = store.manifest(found).facts, store.manifest(dataset).facts
    outcomes: Any = made["outcomes"]
    steps = [
        ("hits", candidates["hits"]),
        ("different rows", candidates["unique_rows"]),
        ("different images", candidates["unique_images"]),
        ("labelled", store.manifest(labels).facts["images"]),
        ("selected", _selected(store, dataset)),
        ("fetched", sum(outcomes.values()) - outcomes.get(SPARE, 0) - outcomes.get(DEAD, 0)),
        ("kept", made["images"]),
    ]
    return tuple((name, int(str(count))) for name, count in steps)


def _selected(store: ArtifactStore, dataset: ArtifactRef) -> int:
    """Places that the plan has: the quota of each group, or its size where that is less."""
    plan = pq.read_table(store.file(dataset, PROVENANCE), columns=["group", "quota"])
    _, first, sizes = np.unique(plan.column("group").to_numpy(), return_index=True, return_counts=True)
    return int(np.minimum(plan.column("quota").to_numpy()[first], sizes).sum())


def min_cosine_of(store: ArtifactStore, dataset: ArtifactRef) -> float | None:
    """The threshold of the filter, if it can refuse anything."""
    value = store.manifest(dataset).recipe.settings.get("dataset.min_cosine")
    return value if isinstance(value, float) and value > -1 else None


def hubness_of(store: ArtifactStore, labels: ArtifactRef) -> Hubness | None:
    body = _optional(store, labels, HUBNESS)
    if body is None:
        return None
    return Hubness(
        by_rank=tuple(body["by_rank"]),
        by_cosine=tuple(body["by_cosine"]),
        skew_rank=float(_either(body, "skew_rank", "skew_by_rank")),
        skew_cosine=float(_either(body, "skew_cosine", "skew_by_cosine")),
        hubs=tuple(_either(body, "hubs", "cosine_hubs")),
    )


def _either(body: Any, name: str, other: str) -> Any:
    return body[name] if name in body else body[other]


def notices_of(
    store: ArtifactStore, warnings: ArtifactRef | None, classes: tuple[str, ...]
) -> tuple[Notice, ...]:
    lines = _optional(store, warnings, WARNINGS) or []
    return tuple(
        Notice(
            kind=str(line["kind"]),
            classes=tuple(classes[c] if isinstance(c, int) else str(c) for c in line.get("classes", ())),
            message=str(line["message"]),
            numbers={str(name): float(value) for name, value in line.get("numbers", {}).items()},
        )
        for line in lines
    )


def map_of(store: ArtifactStore, drawn: ArtifactRef | None) -> ClassMap | None:
    return ClassMap.read(store.file(drawn, MAP)) if drawn else None


def _optional(store: ArtifactStore, ref: ArtifactRef | None, name: str) -> Any:
    """The content of a JSON file, or None if the artifact is older than that file."""
    if ref is None or store.manifest(ref).entry(name) is None:
        return None
    return json.loads(store.file(ref, name).read_text())
