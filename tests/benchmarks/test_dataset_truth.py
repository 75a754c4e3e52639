"""What the dataset benchmark says about a training set, on rows whose truth is looked up by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.dataset.__main__ import PARTS
from benchmarks.dataset.measure import GENERIC, METHODS
from benchmarks.dataset.truth import Oracle, coverage, drawn_as
from mudg_core.corpus.demo.targets import TARGETS
from mudg_core.corpus.demo.world import DemoWorld, write_demo_shard
from mudg_core.corpus.shards import read_shard
from mudg_core.settings import DatasetSettings

WORLD = DemoWorld(seed=0)
AS_THEY_ARE = {number: number for number in range(100_000)}


def rows_where(count: int, wanted: object) -> list[int]:
    found = (row for row in range(100_000) if wanted(WORLD.truth(row)))  # type: ignore[operator]
    return [next(found) for _ in range(count)]


def test_precision_by_class_and_in_all() -> None:
    cats = rows_where(3, lambda truth: truth.kind == "cat")
    dogs = rows_where(2, lambda truth: truth.kind == "dog")
    hub = rows_where(1, lambda truth: truth.hub)
    oracle = Oracle(WORLD, AS_THEY_ARE, ("cat", "dog"))
    rows = np.array([*cats, *dogs, *hub])
    labels = np.array([0, 0, 1, 1, 1, 0])
    assert oracle.precision(rows, labels) == pytest.approx({"all": 4 / 6, "cat": 2 / 3, "dog": 2 / 3})


def test_copies_count_once_for_every_further_one() -> None:
    copies = rows_where(3, lambda truth: truth.duplicate_of == 0)
    single = rows_where(1, lambda truth: truth.duplicate_of is None)
    oracle = Oracle(WORLD, AS_THEY_ARE, (WORLD.truth(copies[0]).kind or "",) * 2)
    assert oracle.duplicate_rate(np.array(copies + single), np.zeros(4, int)) == 0.5
    assert oracle.duplicate_rate(np.array(copies + single), np.array([0, 0, 1, 1])) == 0.25


def test_rows_are_told_from_pictures_by_their_address(tmp_path: Path) -> None:
    """A dead link takes a picture's number and no row."""
    write_demo_shard(WORLD, 0, 200, tmp_path / "s.tar", tmp_path / "s.parquet")
    alive = [sample for sample in read_shard(tmp_path / "s.tar") if sample.image]
    lines = pa.table({"row": range(len(alive)), "url": [sample.url for sample in alive]})
    shard = SimpleNamespace(rows=np.arange(len(alive)), metadata=lambda: lines)
    drawn = drawn_as([shard])  # type: ignore[list-item]
    assert drawn[len(alive) - 1] > len(alive) - 1
    assert all(WORLD.row(drawn[row]).url == sample.url for row, sample in enumerate(alive[:20]))


def test_styles_are_a_mean_over_classes() -> None:
    photos = rows_where(2, lambda truth: truth.style == "photo")
    sketch = rows_where(1, lambda truth: truth.style == "sketch")
    oracle = Oracle(WORLD, AS_THEY_ARE, ("a", "b"))
    assert oracle.styles(np.array([photos[0], *sketch, photos[1]]), np.array([0, 0, 1])) == 1.5


def test_coverage_is_by_the_nearest_of_the_same_label() -> None:
    features = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], np.float32)
    labels, chosen = np.array([0, 0, 1, 1]), np.array([True, False, True, True])
    assert coverage(features, labels, chosen) == pytest.approx(0.75)
    assert coverage(features, labels, np.zeros(4, bool)) == 0


def test_every_method_and_target_is_measured() -> None:
    asked = DatasetSettings.model_fields["select"].annotation
    assert set(METHODS) == set(asked.__args__)  # type: ignore[union-attr]
    assert set(GENERIC) == {target.name for target in TARGETS}
    assert set(PARTS) == {"truth", "hubs", "selection", "absent", "speed"}
