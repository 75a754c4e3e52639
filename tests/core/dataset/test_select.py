"""The selection plan: groups, quotas and turns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mudg_core.dataset.select import plan_selection
from tests.core.index.making import Float32, sphere, unit


def labelled(labels: list[int], seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    count = len(labels)
    return pa.table(
        {
            "row": random.permutation(1000)[:count],
            "label": np.array(labels, np.int64),
            "rank": random.integers(1, 6, count),
            "cosine": (random.integers(0, 8, count) / 8).astype(np.float32),
        }
    )


def groups_of(plan: pa.Table) -> dict[int, list[dict[str, int]]]:
    groups: dict[int, list[dict[str, int]]] = {}
    for line in plan.to_pylist():
        groups.setdefault(line["group"], []).append(line)
    return groups


LABELS = [3] * 20 + [0] * 4 + [7] * 5 + [1] * 6


def test_cluster_plan() -> None:
    images = labelled(LABELS)
    plan = plan_selection(images, sphere(35, 8), method="cluster", per_class=5, seed=0)
    assert plan.select(images.column_names).equals(images)
    groups = groups_of(plan)
    assert sorted(groups) == list(range(len(groups)))
    for lines in groups.values():
        assert len({line["label"] for line in lines}) == 1
        assert {line["quota"] for line in lines} == {1}
        assert sorted(line["turn"] for line in lines) == list(range(len(lines)))
    per_label = {
        label: sum(lines[0]["label"] == label for lines in groups.values()) for label in (0, 1, 3, 7)
    }
    assert per_label == {0: 4, 1: 5, 3: 5, 7: 5}  # 4 and 5 images: all of them, each alone


def test_clusters_are_clusters() -> None:
    random = np.random.default_rng(0)
    truth = np.tile(np.arange(3), 10)
    features = unit(np.eye(3)[truth] + 0.05 * random.normal(size=(30, 3)))
    plan = plan_selection(labelled([0] * 30), features, method="cluster", per_class=3, seed=0)
    group = plan.column("group").to_pylist()
    assert len(set(zip(truth.tolist(), group, strict=True))) == 3


def test_seeds() -> None:
    images, features = labelled([0] * 30 + [1] * 30), sphere(60, 8)
    plans = [plan_selection(images, features, method="cluster", per_class=4, seed=s) for s in (1, 1, 2)]
    assert plans[0].equals(plans[1])
    assert not plans[0].equals(plans[2])


def test_who_comes_first_is_random() -> None:
    """One group of ten: over many seeds each image is first about equally often."""
    features = sphere(10, 4)
    first = [
        plan_selection(labelled([0] * 10), features, method="cluster", per_class=1, seed=seed)
        .column("turn")
        .to_pylist()
        .index(0)
        for seed in range(100)
    ]
    assert set(first) == set(range(10))
    assert max(np.bincount(first)) < 30


def test_copies_leave_fewer_groups_and_no_warning() -> None:
    features: Float32 = np.repeat(sphere(2, 8), 10, axis=0)
    plan = plan_selection(labelled([0] * 20), features, method="cluster", per_class=5, seed=0)
    groups = groups_of(plan)
    assert len(groups) == 2 and sorted(groups) == [0, 1]


def test_as_many_images_as_asked_for_are_all_kept_even_if_equal() -> None:
    features: Float32 = np.repeat(sphere(1, 8), 5, axis=0)
    plan = plan_selection(labelled([0] * 5), features, method="cluster", per_class=5, seed=0)
    assert plan.column("group").to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(5))
def test_nearest_baseline(seed: int) -> None:
    images = labelled(LABELS, seed)
    plan = plan_selection(images, sphere(35, 8), method="nearest", per_class=5, seed=0)
    groups = groups_of(plan)
    assert len(groups) == 4
    for lines in groups.values():
        assert {line["quota"] for line in lines} == {5}
        assert len({line["label"] for line in lines}) == 1
        in_turn = sorted(lines, key=lambda line: line["turn"])
        assert [line["turn"] for line in in_turn] == list(range(len(lines)))
        order = [(line["rank"], -line["cosine"]) for line in in_turn]
        assert order == sorted(order)
