"""The funnel, and what only some runs have."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.dataset.pseudo_labels import Hubness, Retrieved
from mudg_core.report.funnel import funnel_by_class, funnel_of
from mudg_core.report.gather import hubness_of, min_cosine_of
from mudg_core.storage import ArtifactStore, Facts, Recipe
from tests.support.training_sets import IMAGES, make, make_dataset, store_at


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return store_at(tmp_path)


def test_the_funnel_has_every_step(store: ArtifactStore) -> None:
    found = make(store, "candidates", {}, {"x": 0}, {"hits": 90, "unique_rows": 60, "unique_images": 50})
    labels = make(store, "labels", {}, {"x": 0}, {"images": 50})
    steps = dict(funnel_of(store, found, labels, make_dataset(store)))
    assert list(steps) == [
        "hits",
        "different rows",
        "different images",
        "labelled",
        "selected",
        "fetched",
        "kept",
    ]
    assert list(steps.values()) == [90, 60, 50, 50, IMAGES + 1, IMAGES, IMAGES]  # one link is dead


def test_the_funnel_of_each_class_adds_up_to_the_funnel(store: ArtifactStore) -> None:
    hits = pa.table({"label": [0, 0, 0, 2], "row": [7, 7, 8, 7]})  # row 7 is found twice, and by two classes

    def write(folder: Path) -> Facts:
        pq.write_table(hits, folder / "hits.parquet")
        return Facts({"hits": 4, "unique_rows": 2, "unique_images": 2})

    found = store.build(Recipe(stage="candidates", algorithm=1), write)
    per_label = list(range(9))
    labels = make(store, "labels", {}, {"x": 0}, {"images": sum(per_label), "per_label": per_label})
    dataset = make_dataset(store)
    each = funnel_by_class(store, found, labels, dataset, classes=9)
    assert each["retrieved"] == [2, 0, 1, 0, 0, 0, 0, 0, 0]
    whole = dict(funnel_of(store, found, labels, dataset))
    for step in ("labelled", "selected", "fetched", "kept"):
        assert len(each[step]) == 9 and sum(each[step]) == whole[step], step


def test_the_threshold_of_the_filter_is_known(store: ArtifactStore) -> None:
    assert min_cosine_of(store.manifest(make_dataset(store))) == 0.25
    no_filter = make(store, "dataset", {"dataset.min_cosine": -1.0}, {"x": 0})
    assert min_cosine_of(store.manifest(no_filter)) is None


def test_hubness(store: ArtifactStore) -> None:
    known = Hubness((3, 4), (6, 1), 0.5, 2.5, (0,), 1.0, (Retrieved(7, 5, 2),))
    body = json.loads(known.to_json())
    assert hubness_of(store, make(store, "labels", {}, {"hubness.json": body})) == known


def test_older_artifacts_have_none_of_it(store: ArtifactStore) -> None:
    old = make(store, "labels", {}, {"labels.parquet": 0})
    assert hubness_of(store, old) is None
