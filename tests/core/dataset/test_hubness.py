"""Counts by rank and by cosine, and what stands out in them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import skew

from mudg_core.dataset.pseudo_labels import Hubness, Retrieved, hubs, measure_hubness, skewness


def hub_hits() -> pa.Table:
    """Label 0's one query finds 12 images; each is also found by one of three other labels, ranked as well
    or better, at a lower cosine. Label 4 finds nothing."""
    lines = []
    for row in range(12):
        lines.append((0, 0, row + 1, 100 + row, 0.9 - row / 100))
        own = row % 3 + 1
        lines.append((own, own, row // 3 + 1, 100 + row, 0.5 - row / 100))
    lines.append((1, 1, 5, 50, 0.2))
    columns = [list(column) for column in zip(*lines, strict=True)]
    columns[4] = np.array(columns[4], np.float32)  # type: ignore[call-overload]
    return pa.table(dict(zip(("query", "label", "rank", "row", "cosine"), columns, strict=True)))


def test_a_hub_by_cosine_and_not_by_rank() -> None:
    found = measure_hubness(hub_hits(), labels=5)
    assert found.by_cosine == (12, 1, 0, 0, 0)
    assert found.by_rank == (1, 4, 4, 4, 0)
    assert found.cosine_hubs == (0,)
    assert found.skew_by_cosine > found.skew_by_rank
    assert found.most_retrieved[0] == Retrieved(row=100, queries=2, labels=2)
    assert found.most_retrieved[-1] == Retrieved(row=50, queries=1, labels=1)


def test_a_label_that_has_most_images_by_both_is_no_hub_of_cosines() -> None:
    labels = np.array([0] * 9 + [1])
    values = {"query": labels, "rank": np.arange(1, 11), "row": np.arange(10), "cosine": np.zeros(10, "f4")}
    found = measure_hubness(pa.table({"label": labels, **values}), labels=3)
    assert found.by_cosine == found.by_rank == (9, 1, 0)
    assert found.cosine_hubs == ()


def test_the_most_retrieved_come_first_and_are_few() -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        pairs = np.unique(np.stack([random.integers(0, 30, 300), random.zipf(1.5, 300) % 50], axis=1), axis=0)
        query, row = pairs.T
        values = {
            "label": query // 3,
            "rank": np.ones(len(row), np.int64),
            "cosine": np.zeros(len(row), "f4"),
        }
        found = measure_hubness(pa.table({"query": query, "row": row, **values}), labels=10, shown=5)
        counts = np.bincount(row)
        assert [image.queries for image in found.most_retrieved] == sorted(counts.tolist())[:-6:-1]
        for image in found.most_retrieved:
            own = query[row == image.row]
            assert (image.queries, image.labels) == (len(own), len(set((own // 3).tolist())))
        assert found.occurrence_skew == pytest.approx(float(skew(counts[counts > 0])))


def test_skewness_is_the_usual_one() -> None:
    for seed in range(10):
        counts = np.random.default_rng(seed).geometric(0.1, 40)
        assert skewness(counts) == pytest.approx(float(skew(counts)))
    assert skewness(np.full(4, 7)) == 0 and skewness(np.zeros(0, np.int64)) == 0


def test_hubs() -> None:
    assert hubs(np.array([16, 10, 4])).tolist() == [True, False, False]
    assert hubs(np.array([15, 10, 5])).tolist() == [False, False, False]
    assert not hubs(np.zeros(3, np.int64)).any()


def test_json_there_and_back() -> None:
    found = measure_hubness(hub_hits(), labels=5)
    assert Hubness.from_json(found.to_json()) == found
    assert json.loads(found.to_json())["by_cosine"] == [12, 1, 0, 0, 0]


def test_no_hits() -> None:
    found = measure_hubness(hub_hits().slice(0, 0), labels=3)
    assert found.by_rank == (0, 0, 0) and found.most_retrieved == () and found.cosine_hubs == ()
