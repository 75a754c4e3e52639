"""Arithmetic with the same bits everywhere."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from mudg_core.index.exact import (
    exact_cosines,
    exact_cosines_by_row,
    float32_error,
    on_grid,
    same_exp,
    same_log,
    settle,
    sums_in_order,
)
from mudg_core.index.vectors import normalised
from tests.core.index.making import Int64

BITS = {-20.0: "0x1.1b48655f3726bp-29", -1 / 3: "0x1.6edd3122f2ea5p-1", 2.5: "0x1.85d6fd931e0bcp+3"}


def sphere(count: int, dim: int, seed: int) -> np.ndarray:
    return normalised(np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32))


@pytest.mark.parametrize("dim", [1, 2, 7, 64, 513, 1024])
def test_as_rational_numbers(dim: int) -> None:
    """Not nearly: equal. Also for vectors that are the same, whose partial sums are the largest."""
    left = sphere(3, dim, 1)
    right = np.concatenate([left, -left, sphere(2, dim, 2)])
    cosines = exact_cosines(left, right)
    for i, one in enumerate(on_grid(left)):
        for j, other in enumerate(on_grid(right)):
            assert Fraction(cosines[i, j]) == sum(
                (Fraction(a) * Fraction(b) for a, b in zip(one.tolist(), other.tolist(), strict=True)),
                Fraction(0),
            )


def test_any_order_block_and_shape_gives_the_same_bits() -> None:
    left, right = sphere(40, 513, 3), sphere(300, 513, 4)
    whole = exact_cosines(left, right)
    order = np.random.default_rng(5).permutation(513)
    assert (exact_cosines(left[:, order], right[:, order]) == whole).all()
    assert (
        np.concatenate([exact_cosines(left, part) for part in np.split(right, [1, 8, 200])], 1) == whole
    ).all()
    assert (exact_cosines_by_row(left[:, None], right[None]) == whole).all()


@pytest.mark.parametrize("dim", [2, 64, 768])
def test_float32_products_are_within_the_bound(dim: int) -> None:
    left, right = sphere(200, dim, 6), sphere(500, dim, 7)
    assert np.abs(exact_cosines(left, right) - left @ right.T).max() <= float32_error(dim)


def test_exp_is_right() -> None:
    values = np.linspace(-100, 50, 40_001)
    assert same_exp(values) == pytest.approx([math.exp(value) for value in values.tolist()], rel=2e-14)
    assert same_exp(np.array([[0.0], [-1e9]])).tolist() == [[1.0], same_exp(np.array([-700.0])).tolist()]
    assert same_exp(np.zeros((0, 3))).shape == (0, 3)


def test_f97_exp_to_the_last_bit() -> None:
    powers = same_exp(np.array(list(BITS)))
    assert [power.hex() for power in powers.tolist()] == list(BITS.values())


def test_log_is_right() -> None:
    values = np.exp(np.linspace(-600, 600, 4001))
    logs = [math.log(value) for value in values.tolist()]
    assert same_log(values) == pytest.approx(logs, rel=1e-14, abs=1e-14)


def test_sums_in_order() -> None:
    values = np.array([[1e16, 1.0, -1e16], [-1e16, 1e16, 1.0]])
    assert sums_in_order(values).tolist() == [0.0, 1.0]
    assert sums_in_order(values[:, :0]).tolist() == [0.0, 0.0]


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
