"""What only some runs have: warnings, hubness, a map; and the funnel, which takes facts from many places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq

from mudg_core.dataset.build import DEAD, SPARE
from mudg_core.dataset.hubness import HUBNESS, Hubness
from mudg_core.dataset.map import MAP, ClassMap
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.dataset.warning import TargetWarning, read_warnings
from mudg_core.storage import ArtifactRef, ArtifactStore


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
    return (
        Hubness.from_json(store.file(labels, HUBNESS).read_text()) if _has(store, labels, HUBNESS) else None
    )


def warnings_of(store: ArtifactStore, found: ArtifactRef | None) -> tuple[TargetWarning, ...]:
    return tuple(read_warnings(store.folder(found))) if found else ()


def map_of(store: ArtifactStore, drawn: ArtifactRef | None) -> ClassMap | None:
    return ClassMap.read(store.file(drawn, MAP)) if drawn else None


def _has(store: ArtifactStore, ref: ArtifactRef, name: str) -> bool:
    """Whether an artifact is new enough to have a file."""
    return store.manifest(ref).entry(name) is not None
