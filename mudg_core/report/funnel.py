"""The funnel from hits to training set: as a whole, and for each class. It takes facts from many places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mudg_core.dataset.fetch_filter_refill import DEAD, SPARE
from mudg_core.dataset.training_set import PROVENANCE
from mudg_core.storage import ArtifactRef, ArtifactStore


def funnel_of(
    store: ArtifactStore, candidates: ArtifactRef, labels: ArtifactRef, dataset: ArtifactRef
) -> tuple[tuple[str, int], ...]:
    """From hits to training images. `selected` are places to fill: a link that is dead gives its place to
    another image, so more may be fetched than were selected."""
    searched, facts = store.manifest(candidates).facts, store.manifest(dataset).facts
    outcomes: Any = facts["outcomes"]
    steps = [
        ("hits", searched["hits"]),
        ("different rows", searched["unique_rows"]),
        ("different images", searched["unique_images"]),
        ("labelled", store.manifest(labels).facts["images"]),
        ("selected", int(_places(_plan(store, dataset)).sum())),
        ("fetched", sum(outcomes.values()) - outcomes.get(SPARE, 0) - outcomes.get(DEAD, 0)),
        ("kept", facts["images"]),
    ]
    return tuple((name, int(str(count))) for name, count in steps)


def funnel_by_class(
    store: ArtifactStore, candidates: ArtifactRef, labels: ArtifactRef, dataset: ArtifactRef, classes: int
) -> dict[str, list[int]]:
    """The same for each class, by step. An image that several classes retrieve counts for all of them."""
    hits = pq.read_table(store.file(candidates, "hits.parquet"), columns=["label", "row"])
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


def _plan(store: ArtifactStore, dataset: ArtifactRef) -> pa.Table:
    return pq.read_table(store.file(dataset, PROVENANCE), columns=["label", "group", "quota", "outcome"])


def _places(plan: pa.Table) -> NDArray[np.int64]:
    """Places to fill, at the first line of each group: its quota, or its size where that is less."""
    _, first, sizes = np.unique(plan.column("group").to_numpy(), return_index=True, return_counts=True)
    places = np.zeros(plan.num_rows, np.int64)
    places[first] = np.minimum(plan.column("quota").to_numpy()[first], sizes)
    return places
