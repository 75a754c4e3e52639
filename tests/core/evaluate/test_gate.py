"""The verdict on a student, from logits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mudg_core.evaluate.gate import MIN_IMAGES, Verdict, _kappa, _lower_bound, judge, unjudged

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
CLASSES, IMAGES = 6, 300


def labels(images: int = IMAGES) -> Int64:
    return np.arange(images) % CLASSES


def saying(said: Int64, sure: float = 4.0) -> Float32:
    return np.eye(CLASSES, dtype=np.float32)[said] * sure


def right(share: float, seed: int = 0, images: int = IMAGES) -> Float32:
    """Logits of a model that has this share right; where it errs it says the next class."""
    truth, order = labels(images), np.random.default_rng(seed).permutation(images)
    wrong = order[round(share * images) :]
    said = truth.copy()
    said[wrong] = (said[wrong] + 1) % CLASSES
    return saying(said)


def test_a_better_student_is_passed_with_its_best_weight() -> None:
    found = judge({0.0: right(0.6), 0.5: right(0.9), 1.0: right(0.8)}, labels(), margin=0)
    assert (found.alpha, found.better) == (0.5, True)
    assert [item.accuracy for item in found.estimates] == pytest.approx([60, 90, 80])
    assert found.estimates[1].gain == pytest.approx(30) and 20 < found.estimates[1].low < 30


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_one_that_is_no_better_is_refused(share: float) -> None:
    found = judge({0.0: right(0.6), 1.0: right(share)}, labels(), margin=0)
    assert (found.alpha, found.better) == (0.0, False)
    assert "initial weights are kept" in found.reasons[0]


def test_a_gain_that_could_be_chance_is_refused() -> None:
    few = judge({0.0: right(0.60, 0, 60), 1.0: right(0.65, 1, 60)}, labels(60), margin=0)
    assert few.estimates[1].gain > 0 > few.estimates[1].low
    assert few.better is False
    many = judge({0.0: right(0.60, 0, 6000), 1.0: right(0.65, 1, 6000)}, labels(6000), margin=0)
    assert many.better is True


def test_the_margin_must_be_certain() -> None:
    logits = {0.0: right(0.6), 1.0: right(0.9)}
    assert judge(logits, labels(), margin=15).better is True
    assert judge(logits, labels(), margin=29.9).better is False


def test_of_equals_the_one_nearer_to_zero_shot_is_taken() -> None:
    assert judge({0.0: right(0.5), 0.25: right(0.8), 1.0: right(0.8)}, labels(), margin=0).alpha == 0.25


def test_labels_that_zero_shot_does_not_know_at_all_are_not_trusted() -> None:
    """Trained and judged by permuted labels, a student looks perfect; that it never agrees with zero-shot
    gives it away."""
    truth = labels()
    permuted = (truth + 3) % CLASSES
    found = judge({0.0: right(0.7), 1.0: saying(permuted)}, permuted, margin=0)
    assert found.estimates[1].accuracy == 100 and found.better is False
    assert "by chance" in found.reasons[0]


def test_too_few_images_are_no_ground() -> None:
    few = MIN_IMAGES - 1
    found = judge({0.0: right(0.1, 0, few), 1.0: right(0.9, 0, few)}, labels(few), margin=0)
    assert found.better is None and found.alpha == 1.0
    assert found == unjudged(few, found.reasons[0])


def test_what_is_certain_is_a_quantile_of_resampled_images() -> None:
    random = np.random.default_rng(3)
    gains = random.choice([-1, 0, 1], size=200, p=[0.1, 0.6, 0.3])
    draws = [100 * random.choice(gains, size=200).mean() for _ in range(20_000)]
    assert _lower_bound(gains) == pytest.approx(np.quantile(draws, 0.05), abs=0.6)
    assert _lower_bound(np.zeros(50, np.int64)) == 0


def test_kappa_is_agreement_beyond_chance() -> None:
    random = np.random.default_rng(0)
    one, other = random.integers(0, CLASSES, (2, 20_000))
    assert _kappa(one, one, CLASSES) == 1
    assert _kappa(one, other, CLASSES) == pytest.approx(0, abs=0.02)
    assert _kappa(np.zeros(9, np.int64), np.zeros(9, np.int64), CLASSES) == 0


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_json_keeps_all(share: float) -> None:
    found = judge({0.0: right(0.6), 1.0: right(share)}, labels(), margin=0)
    body = found.to_json()
    assert Verdict.from_json(body) == found
    assert body["zero_shot"]["accuracy"] == pytest.approx(60)
    assert body["agreement"] == body["estimate"]["1"]["agreement"]
    assert Verdict.from_json(unjudged(0, "x").to_json()) == unjudged(0, "x")
