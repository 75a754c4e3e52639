"""Intervals by bootstrap: against theory, paired, and wide enough for few seeds."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.evaluate.resampling import Bool, interval, replicates


def coin(seed: int, images: int, rate: float, seeds: int = 1) -> Bool:
    return np.random.default_rng(seed).random((seeds, images)) < rate


def test_an_interval_is_as_wide_as_theory_says() -> None:
    hits = coin(0, 1000, 0.4)
    low, high = interval(replicates([{"photo": hits}], seed=1)[0])
    rate = hits.mean()
    expected = 2 * 1.96 * 100 * np.sqrt(rate * (1 - rate) / 1000)
    assert high - low == pytest.approx(expected, rel=0.08)
    assert low < 100 * rate < high


def test_domains_count_the_same_whatever_their_size() -> None:
    row = {"small": np.ones((1, 10), bool), "large": np.zeros((1, 990), bool)}
    assert (replicates([row], seed=0) == 50).all()


def test_rows_are_compared_on_the_same_images_and_seeds() -> None:
    """One row is right wherever the other is, and on a tenth more: a gain surer than either accuracy."""
    images = coin(1, 500, 0.5, seeds=3)
    better = images | coin(2, 500, 0.2, seeds=3)
    worse_means, better_means = replicates([{"d": images}, {"d": better}], seed=0)
    low, high = interval(better_means - worse_means)
    assert low > 0
    alone = interval(better_means)
    assert high - low < 0.75 * (alone[1] - alone[0])


def test_seeds_are_drawn_and_few_of_them_widen_the_interval() -> None:
    """Seeds at 40, 50 and 60 %: the deviation of their mean is 10 / sqrt(3), images hardly count."""
    images = 20_000
    by_seed = np.stack([np.arange(images) % 10 < tenths for tenths in (4, 5, 6)])
    drawn = replicates([{"d": by_seed}], seed=0)[0]
    assert drawn.std() == pytest.approx(10 / np.sqrt(3), rel=0.05)


def test_a_row_without_seeds_is_the_same_for_all_of_them() -> None:
    one, three = coin(3, 200, 0.5), coin(4, 200, 0.5, seeds=3)
    alone = replicates([{"d": np.repeat(one, 3, axis=0)}, {"d": three}], seed=0)
    assert np.allclose(replicates([{"d": one}, {"d": three}], seed=0), alone)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"d": coin(5, 300, 0.5, seeds=2)}]
    whole = replicates(rows, seed=0, count=50)
    monkeypatch.setattr("mudg_core.evaluate.resampling.BLOCK_BYTES", 1)
    assert np.array_equal(replicates(rows, seed=0, count=50), whole)
