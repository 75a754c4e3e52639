"""Scores that float32 cannot tell apart, settled by exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.index.settle import settle
from tests.core.index.making import Int64


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_error_the_order_is_that_of_exact_scores(seed: int) -> None:
    """Scores of a coarse grid, so that many tie, and errors as large as they may be."""
    random, error = np.random.default_rng(seed), 0.01
    exact = np.round(random.random((40, 30)), 2)
    noisy = exact + random.choice([-error, 0, error], exact.shape)
    ids = np.argsort(-noisy, axis=1)
    scores = np.take_along_axis(noisy, ids, 1)[:, :12]
    ids = ids[:, :12]
    found = settle(
        scores, ids, 5, 2.001 * error, lambda line, column: exact[line, ids[line, column]], complete=False
    )
    best = np.take_along_axis(ids, found.columns, 1)[:, :5]
    truth = [sorted(range(30), key=lambda cell: (-line[cell], cell))[:5] for line in exact]
    assert not found.unsure.all()
    for line in np.flatnonzero(~found.unsure):
        assert best[line].tolist() == truth[line]


def test_nobody_stays_last_and_is_not_scored() -> None:
    scores, ids = np.array([[0.5, 0.5, -1e38, -1e38]]), np.array([[7, 3, -1, -1]])

    def exact(lines: Int64, columns: Int64) -> np.ndarray:
        assert (ids[lines, columns] >= 0).all()
        return np.full(len(lines), 0.5)

    found = settle(scores, ids, 2, 0.01, exact, complete=False)
    assert found.columns.tolist() == [[1, 0, 2, 3]]
    assert not found.unsure.any(), "there are no more"


def test_scores_that_are_far_apart_are_left_alone() -> None:
    scores, ids = np.array([[0.9, 0.5, 0.1]]), np.array([[7, 3, 1]])
    found = settle(scores, ids, 2, 0.01, lambda lines, columns: scores[:0, 0], complete=False)
    assert found.columns.tolist() == [[0, 1, 2]] and found.scores is scores
