"""What only some runs have is read where it is, and missed nowhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mudg_core.dataset.map import MAP
from mudg_core.report.extras import funnel_of, hubness_of, map_of, min_cosine_of, notices_of
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tests.core.report.fake import fake_map
from tests.support.training_sets import CLASSES, IMAGES, make, make_dataset, store_at


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


def test_the_threshold_of_the_filter_is_known(store: ArtifactStore) -> None:
    assert min_cosine_of(store, make_dataset(store)) == 0.25
    assert min_cosine_of(store, make(store, "dataset", {"dataset.min_cosine": -1.0}, {"x": 0})) is None


@pytest.mark.parametrize(
    "names", [("skew_rank", "skew_cosine", "hubs"), ("skew_by_rank", "skew_by_cosine", "cosine_hubs")]
)
def test_hubness(store: ArtifactStore, names: tuple[str, str, str]) -> None:
    body = {"by_rank": [3, 4], "by_cosine": [6, 1]} | dict(zip(names, (0.5, 2.5, [0]), strict=True))
    found = hubness_of(store, make(store, "labels", {"new": names[0]}, {"hubness.json": body}))
    assert found and (found.by_rank, found.by_cosine, found.hubs) == ((3, 4), (6, 1), (0,))
    assert (found.skew_rank, found.skew_cosine) == (0.5, 2.5)


def test_older_artifacts_have_none_of_it(store: ArtifactStore) -> None:
    old = make(store, "labels", {}, {"labels.parquet": 0})
    assert hubness_of(store, old) is None and notices_of(store, old, CLASSES) == ()
    assert notices_of(store, None, CLASSES) == () and map_of(store, None) is None


def test_warnings_name_classes_by_name_or_number(store: ArtifactStore) -> None:
    lines = [
        {"kind": "twins", "classes": ["cat", 3], "message": "m", "numbers": {"cosine": 0.9}},
        {"kind": "leak", "message": "n"},
    ]
    first, second = notices_of(store, make(store, "warnings", {}, {"warnings.json": lines}), CLASSES)
    assert first.classes == ("cat", CLASSES[3]) and first.numbers == {"cosine": 0.9}
    assert (second.kind, second.classes, second.message, second.numbers) == ("leak", (), "n", {})


def test_the_map_is_read_from_its_artifact(store: ArtifactStore) -> None:
    drawn = fake_map(5, points=30)

    def write(folder: Path) -> Facts:
        drawn.write(folder / MAP)
        return Facts()

    ref: ArtifactRef = store.build(Recipe(stage="map", algorithm=1), write)
    found = map_of(store, ref)
    assert found is not None and np.array_equal(found.row, drawn.row) and found.images == drawn.images
