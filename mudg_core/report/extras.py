"""What only some runs have: warnings, hubness, a map; and the funnel, which takes facts from many places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mudg_core.dataset.fetch_filter_refill import DEAD, SPARE
from mudg_core.dataset.image_map import MAP, ClassMap
from mudg_core.dataset.pseudo_labels import HUBNESS, Hubness
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


def funnel_by_class(
    store: ArtifactStore, found: ArtifactRef, labels: ArtifactRef, dataset: ArtifactRef, classes: int
) -> dict[str, list[int]]:
    """The same for each class, by step. An image that several classes find is retrieved for all of them."""
    hits = pq.read_table(store.file(found, "hits.parquet"), columns=["label", "row"])
    each = hits.group_by(["label", "row"]).aggregate([])
    plan = _plan(store, dataset)
    places, fetched = _places(plan), ~np.isin(plan.column("outcome").to_pylist(), (SPARE, DEAD))
    of = plan.column("label").to_numpy()
    kept: Any = store.manifest(dataset).facts["per_label"]
    steps = {
        "retrieved": np.bincount(each.column("label"), minlength=classes),
        "labelled": store.manifest(labels).facts["per_label"],
        "selected": np.bincount(of, places, minlength=classes),
        "fetched": np.bincount(of[fetched], minlength=classes),
        "kept": np.pad(kept, (0, classes - len(kept))),
    }
    return {name: np.asarray(counts).astype(int).tolist() for name, counts in steps.items()}


def _selected(store: ArtifactStore, dataset: ArtifactRef) -> int:
    return int(_places(_plan(store, dataset)).sum())


def _plan(store: ArtifactStore, dataset: ArtifactRef) -> pa.Table:
    return pq.read_table(store.file(dataset, PROVENANCE), columns=["label", "group", "quota", "outcome"])


def _places(plan: pa.Table) -> NDArray[np.int64]:
    """Places to fill, told at the first line of each group: its quota, or its size where that is less."""
    _, first, sizes = np.unique(plan.column("group").to_numpy(), return_index=True, return_counts=True)
    places = np.zeros(plan.num_rows, np.int64)
    places[first] = np.minimum(plan.column("quota").to_numpy()[first], sizes)
    return places


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
