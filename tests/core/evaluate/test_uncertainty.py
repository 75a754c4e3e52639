"""Intervals over images and seeds: against theory, paired, and right for few seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mudg_core.evaluate.uncertainty import Estimate, Float64, difference, estimate, mean_of


def hits(seed: int, images: int, rate: float, seeds: int = 1) -> Float64:
    return 100.0 * (np.random.default_rng(seed).random((seeds, images)) < rate)


def test_images_alone_are_a_binomial() -> None:
    own = hits(0, 1000, 0.4)
    found, rate = estimate({"photo": own}), own.mean() / 100
    assert found.margin == pytest.approx(100 * 1.96 * math.sqrt(rate * (1 - rate) / 1000), rel=1e-3)
    assert found.low < found.mean < found.high


def test_the_variance_of_images_is_that_of_a_bootstrap() -> None:
    values, random = {"a": hits(1, 60, 0.3), "b": hits(2, 90, 0.8)}, np.random.default_rng(0)
    drawn = [
        np.mean([own[0, random.integers(0, own.shape[1], own.shape[1])].mean() for own in values.values()])
        for _ in range(4000)
    ]
    assert estimate(values).image_variance == pytest.approx(np.var(drawn), rel=0.06)


def test_domains_count_the_same_whatever_their_size() -> None:
    assert estimate({"small": np.full((1, 10), 100.0), "large": np.zeros((1, 990))}).mean == 50


def test_a_difference_is_paired_by_image_and_seed() -> None:
    """One is right wherever the other is, and on a tenth more: a gain surer than either accuracy."""
    worse = hits(1, 500, 0.5, seeds=3)
    better = np.maximum(worse, hits(2, 500, 0.2, seeds=3))
    gain = estimate(difference({"d": better}, {"d": worse}))
    assert gain.certain and gain.mean == pytest.approx(better.mean() - worse.mean())
    assert gain.image_variance < 0.5 * estimate({"d": better}).image_variance


def test_a_classifier_without_seeds_is_the_same_for_all() -> None:
    ours, plain = {"d": hits(3, 200, 0.6, seeds=3)}, {"d": hits(4, 200, 0.5)}
    repeated = {"d": np.repeat(plain["d"], 3, axis=0)}
    assert estimate(difference(ours, plain)) == estimate(difference(ours, repeated))


@pytest.mark.parametrize("targets", [1, 3])
def test_intervals_of_three_seeds_hold_the_truth_95_times_in_100(targets: int) -> None:
    """Seeds are all that varies here: shares of images are 50 % and a normal draw."""
    random, trials, images = np.random.default_rng(0), 3000, 1000
    held = 0
    for _ in range(trials):
        shares = np.clip(random.normal(50, 3, (targets, 3)), 0, 100)
        parts = [
            estimate({"d": 100.0 * (np.arange(images) < shares[t][:, None] * images / 100)})
            for t in range(targets)
        ]
        found = mean_of([Estimate(p.mean, 0.0, p.seed_variance, p.freedom) for p in parts])
        held += found.low <= 50 <= found.high
    assert 0.93 < held / trials < 0.985


def test_a_mean_over_targets_lies_within_its_interval_whatever_their_seeds() -> None:
    one, other = estimate({"d": hits(5, 100, 0.5, seeds=3)}), estimate({"d": hits(6, 100, 0.5)})
    both = mean_of([one, other])
    assert both.mean == pytest.approx((one.mean + other.mean) / 2)
    assert both.low < both.mean < both.high
    assert both.freedom == pytest.approx(2)


def test_what_never_varies_has_no_margin() -> None:
    assert estimate({"d": np.full((3, 10), 100.0)}).margin == 0
    assert not Estimate(0.0, 0.0).certain and Estimate(1.0, 0.0).certain
