"""How peers are measured, with an exact search in place of a peer."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import TypeAdapter

from benchmarks.index.curves import Point
from benchmarks.index.peers.measure import (
    Built,
    Float32,
    Ids,
    Params,
    Problem,
    Time,
    Tried,
    front,
    measure,
    recall,
)


def test_recall_counts_the_first_and_the_ten() -> None:
    truth = np.arange(20).reshape(2, 10)
    found = truth.copy()
    found[1] = [*range(11, 16), *range(100, 105)]
    assert recall(found, truth) == {"recall_at_1": 0.5, "recall_at_10": 0.75}
    assert recall(truth[:, ::-1], truth) == {"recall_at_1": 0.0, "recall_at_10": 1.0}


def test_missing_answers_count_as_wrong() -> None:
    truth = np.arange(10)[None]
    found = np.array([[3, 3, 3, 3, 3, -1, -1, -1, -1, -1]])
    assert recall(found, truth)["recall_at_10"] == pytest.approx(0.1)


def test_settings_that_others_beat_are_left_out() -> None:
    tried = [
        Tried({"ef": ef}, {"recall_at_10": r}, s) for ef, r, s in [(1, 0.5, 1), (2, 0.4, 2), (3, 0.9, 3)]
    ]
    assert [one.params["ef"] for one in front(reversed(tried))] == [1, 3]


def test_a_measurement_is_a_list_of_points() -> None:
    rows = np.random.default_rng(0).standard_normal((200, 8), np.float32)
    truth = np.argsort(-(rows @ rows.T), axis=1)[:, :10]
    counted = [0]

    def search(queries: Float32, params: Params) -> Ids:
        counted[0] += len(queries) * len(rows)
        return np.argsort(-(queries @ rows.T), axis=1)[:, : params["keep"]]

    def read() -> int:
        count, counted[0] = counted[0], 0
        return count

    built = Built({"made": "exactly"}, Time(1, 2), 30, [{"keep": 5}, {"keep": 10}], search, read)
    raw = list(measure(built, Problem(rows, rows, truth, rows, truth)))
    points = TypeAdapter(list[Point]).validate_python(raw)
    best = max(points, key=lambda point: point.tuning.recall_at_10)
    assert best.params == {"made": "exactly", "keep": 10}
    assert best.report.recall_at_1 == best.report.recall_at_10 == 1
    assert best.vectors_read == len(rows) and best.index_bytes == 30 and best.build_wall_seconds == 2
