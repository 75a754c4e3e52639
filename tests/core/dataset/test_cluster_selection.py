"""The selection plan: groups, quotas and turns, for every method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_limits

from mudg_core.dataset import cluster_selection
from mudg_core.dataset.cluster_selection import Features, label_spans, plan_selection
from mudg_core.dataset.selection_rules import ORDERS, Rule
from mudg_core.settings import DatasetSettings
from tests.core.index.making import Float32, Int64, sphere, unit

METHODS = ["cluster", *ORDERS]
LABELS = [3] * 20 + [0] * 4 + [7] * 5 + [1] * 6
PROMPTS = sphere(8, 8, seed=9)
FEATURES = sphere(1000, 8)


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


def by_row(rows: Int64) -> Float32:
    return FEATURES[rows]


def by_line(images: pa.Table, features: Float32) -> Features:
    place = {row: line for line, row in enumerate(images.column("row").to_pylist())}
    return lambda rows: features[[place[row] for row in rows.tolist()]]


def rule(method: str = "cluster", per_class: int = 5, seed: int = 0) -> Rule:
    return Rule(method, per_class, seed, PROMPTS)


def groups_of(plan: pa.Table) -> dict[int, list[dict[str, Any]]]:
    groups: dict[int, list[dict[str, Any]]] = {}
    for line in plan.to_pylist():
        groups.setdefault(line["group"], []).append(line)
    return groups


def test_every_method_of_the_settings_is_there() -> None:
    assert sorted(get_args(DatasetSettings.model_fields["select"].annotation)) == sorted(METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_is_whole(method: str) -> None:
    """Every image in one group of its own label, with a turn of its own; at most k1 can be taken of each."""
    for seed in range(5):
        images = labelled(LABELS, seed)
        plan = plan_selection(images, by_row, rule(method, seed=seed))
        assert plan.select(images.column_names).equals(images)
        groups = groups_of(plan)
        assert sorted(groups) == list(range(len(groups)))
        taken: dict[int, int] = {}
        for lines in groups.values():
            assert len({(line["label"], line["quota"]) for line in lines}) == 1
            assert sorted(line["turn"] for line in lines) == list(range(len(lines)))
            label = lines[0]["label"]
            taken[label] = taken.get(label, 0) + min(lines[0]["quota"], len(lines))
        assert taken == ({0: 4, 1: 6, 3: 20, 7: 5} if method == "none" else {0: 4, 1: 5, 3: 5, 7: 5})
        assert (len(groups) == 4) == (method != "cluster")


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_bytes_whatever_the_spans_and_threads(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = labelled([n % 9 for n in range(600)])
    features: Float32 = sphere(1000, 33)
    made = replace(rule(method), prompts=sphere(9, 33, seed=1))
    plans = [plan_selection(images, features.__getitem__, made)]
    monkeypatch.setattr(cluster_selection, "IMAGES_AT_ONCE", 100)
    assert len(label_spans(images)) == 9
    with threadpool_limits(2):
        plans += [plan_selection(images, features.__getitem__, made, threads) for threads in (1, 3)]
    assert plans[0].equals(plans[1]) and plans[0].equals(plans[2])
    other = plan_selection(images, features.__getitem__, replace(made, seed=1))
    by_chance = ("cluster", "none", "random", "k-centre")
    assert plans[0].equals(other) == (method not in by_chance)


@pytest.mark.parametrize("method", METHODS)
def test_permuting_labels_permutes_the_plan_and_nothing_else(method: str) -> None:
    for seed in range(8):
        random = np.random.default_rng(seed)
        images = labelled(random.integers(0, 8, 120).tolist(), seed)
        new = random.permutation(8)
        lines = random.permutation(images.num_rows)
        column = images.column_names.index("label")
        renamed = images.set_column(column, "label", pa.array(new[images.column("label")])).take(lines)
        before = plan_selection(images, by_row, rule(method)).sort_by("row")
        made = replace(rule(method), prompts=PROMPTS[np.argsort(new)])
        after = plan_selection(renamed, by_row, made).sort_by("row")
        for name in ("row", "quota", "turn"):
            assert before.column(name).equals(after.column(name))
        both = set(zip(before.column("group").to_pylist(), after.column("group").to_pylist(), strict=True))
        assert len(both) == len(groups_of(before)) == len(groups_of(after))


@pytest.mark.parametrize("method", ["cluster", "none", "random", "herding", "k-centre", "nearest"])
def test_another_label_changes_nothing(method: str) -> None:
    images = labelled([4] * 40 + [2] * 30)
    alone = plan_selection(images.slice(0, 40), by_row, rule(method))
    beside = plan_selection(images, by_row, rule(method)).slice(0, 40)
    assert alone.column("turn").equals(beside.column("turn"))
    assert (
        len({b - a for a, b in zip(alone["group"].to_pylist(), beside["group"].to_pylist(), strict=True)})
        == 1
    )


def test_chance_differs_between_labels() -> None:
    """Two labels of equally many images must not be shuffled alike."""
    images = labelled([0] * 30 + [1] * 30)
    images = images.set_column(0, "row", pa.array(np.arange(60)))
    turns = plan_selection(images, by_row, rule("random")).column("turn").to_pylist()
    assert turns[:30] != turns[30:]


def test_spans_hold_whole_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_selection, "IMAGES_AT_ONCE", 10)
    images = labelled([0] * 4 + [2] * 6 + [3] * 1 + [5] * 25 + [6] * 2)
    assert label_spans(images) == [(0, 2), (3, 3), (5, 5), (6, 6)]
    asked: list[int] = []

    def features(rows: Int64) -> Float32:
        asked.append(len(rows))
        return FEATURES[rows]

    plan_selection(images, features, rule())
    assert asked == [10, 1, 25, 2]


@pytest.mark.parametrize("method", ["none", "random", "nearest"])
def test_features_are_read_only_where_needed(method: str) -> None:
    def features(rows: Int64) -> Float32:
        raise AssertionError

    assert plan_selection(labelled(LABELS), features, rule(method)).num_rows == 35


@pytest.mark.parametrize("method", METHODS)
def test_no_images(method: str) -> None:
    plan = plan_selection(labelled([]), by_row, rule(method))
    assert plan.num_rows == 0 and plan.column_names[-3:] == ["group", "quota", "turn"]


def test_who_comes_first_is_random() -> None:
    """One group of ten: over many seeds each image is first about equally often."""
    images = labelled([0] * 10)
    plans = [plan_selection(images, by_row, rule(per_class=1, seed=seed)) for seed in range(100)]
    first = [plan.column("turn").to_pylist().index(0) for plan in plans]
    assert set(first) == set(range(10))
    assert max(np.bincount(first)) < 30


def test_clusters_are_clusters() -> None:
    random = np.random.default_rng(0)
    truth = np.tile(np.arange(3), 10)
    images, features = labelled([0] * 30), unit(np.eye(3)[truth] + 0.05 * random.normal(size=(30, 3)))
    plan = plan_selection(images, by_line(images, features), rule(per_class=3))
    group = plan.column("group").to_pylist()
    assert len(set(zip(truth.tolist(), group, strict=True))) == 3


def test_as_many_images_as_asked_for_are_all_kept_even_if_equal() -> None:
    images, features = labelled([0] * 5), np.repeat(sphere(1, 8), 5, axis=0)
    plan = plan_selection(images, by_line(images, features), rule(per_class=5))
    assert sorted(plan.column("group").to_pylist()) == [0, 1, 2, 3, 4]
