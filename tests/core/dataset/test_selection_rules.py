"""Each order against its definition, written out as slowly as it reads."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mudg_core.dataset.selection_rules import ORDERS, Images, Rule
from tests.core.index.making import Float32, sphere

SCALE = 25.0


def images_of(features: Float32, seed: int = 0) -> Images:
    random = np.random.default_rng(seed)
    count = len(features)
    rows = np.sort(random.permutation(1000)[:count])
    cosines = (random.integers(0, 8, count) / 8).astype(np.float32)
    return Images(rows, random.integers(1, 6, count), cosines, features)


def probabilities(image: list[float], prompts: list[list[float]]) -> list[float]:
    logits = [SCALE * sum(a * b for a, b in zip(image, prompt, strict=True)) for prompt in prompts]
    total = sum(math.exp(logit) for logit in logits)
    return [math.exp(logit) / total for logit in logits]


def margin(p: list[float]) -> float:
    first, second = sorted(p)[-1:-3:-1]
    return first - second


def least_confident(p: list[float]) -> float:
    return max(p)


def entropy(p: list[float]) -> float:
    return sum(share * math.log(share) for share in p if share > 0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("method", "certainty"), [("margin", margin), ("least-confident", least_confident), ("entropy", entropy)]
)
def test_most_uncertain_first(method: str, certainty: Any, seed: int) -> None:
    features, prompts = sphere(60, 6, seed), sphere(7, 6, seed + 100)
    order = ORDERS[method](images_of(features), Rule(method, 5, 0, prompts))
    certain = [certainty(probabilities(image, prompts.tolist())) for image in features.tolist()]
    assert sorted(order.tolist()) == list(range(60))
    in_turn = [certain[place] for place in order]
    assert all(later >= earlier - 1e-5 for earlier, later in pairwise(in_turn))


def test_the_three_differ() -> None:
    """Images made so that their probabilities are these, by a fifth dimension that no prompt looks at."""
    wanted = np.array([[0.499, 0.49, 0.01, 0.001], [0.42, 0.399, 0.18, 0.001], [0.45, 0.19, 0.18, 0.18]])
    seen = np.log(wanted) / SCALE
    features = np.concatenate([seen, np.sqrt(1 - (seen**2).sum(axis=1, keepdims=True))], axis=1)
    images, prompts = images_of(features.astype(np.float32)), np.eye(5, dtype=np.float32)[:4]
    orders = {
        method: ORDERS[method](images, Rule(method, 1, 0, prompts)).tolist()
        for method in ("margin", "least-confident", "entropy")
    }
    assert orders == {"margin": [0, 1, 2], "least-confident": [1, 2, 0], "entropy": [2, 1, 0]}


def test_more_images_than_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    features, rule = sphere(50, 6), Rule("entropy", 5, 0, sphere(7, 6, 1))
    whole = ORDERS["entropy"](images_of(features), rule)
    monkeypatch.setattr("mudg_core.dataset.selection_rules.IMAGES_AT_ONCE", 7)
    assert (ORDERS["entropy"](images_of(features), rule) == whole).all()


def test_sure_images_are_still_told_apart() -> None:
    """Probabilities that round to 1 keep their order."""
    angles = np.array([0.3, 0.1, 0.2], dtype=np.float32)
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    prompts = np.array([[1, 0], [-1, 0]], np.float32)
    for method in ("margin", "least-confident", "entropy"):
        assert ORDERS[method](images_of(features), Rule(method, 1, 0, prompts)).tolist() == [0, 2, 1]


def test_equals_by_row_and_prompts_are_needed() -> None:
    features = np.repeat(sphere(1, 6), 9, axis=0)
    rule = Rule("margin", 5, 0, sphere(4, 6, 1))
    assert ORDERS["margin"](images_of(features), rule).tolist() == list(range(9))
    with pytest.raises(ValueError, match="margin needs"):
        ORDERS["margin"](images_of(features), Rule("margin", 5, 0))


@pytest.mark.parametrize("seed", range(10))
def test_herding(seed: int) -> None:
    """At each turn no other image would bring the mean of those taken nearer to the mean of all."""
    features = sphere(40, 6, seed)
    order = ORDERS["herding"](images_of(features), Rule("herding", 5, 0))
    assert sorted(order.tolist()) == list(range(40))
    mean = features.mean(axis=0)
    for turn in range(40):
        before = features[order[:turn]].sum(axis=0)
        away = [np.linalg.norm((before + features[i]) / (turn + 1) - mean) for i in order[turn:]]
        assert away[0] <= min(away) + 1e-5


@pytest.mark.parametrize("seed", range(10))
def test_k_centre(seed: int) -> None:
    """At each turn no other image is farther from the nearest of those taken."""
    features = sphere(40, 6, seed)
    order = ORDERS["k-centre"](images_of(features), Rule("k-centre", 5, seed))
    assert sorted(order.tolist()) == list(range(40))
    for turn in range(1, 40):
        away = [
            min(float(np.linalg.norm(features[i] - features[j])) for j in order[:turn]) for i in order[turn:]
        ]
        assert away[0] >= max(away) - 1e-4


def test_the_first_centre_is_random() -> None:
    features = sphere(8, 6)
    firsts = {
        int(ORDERS["k-centre"](images_of(features), Rule("k-centre", 5, seed))[0]) for seed in range(60)
    }
    assert firsts == set(range(8))


@pytest.mark.parametrize("seed", range(5))
def test_nearest(seed: int) -> None:
    images = images_of(sphere(50, 6), seed)
    order = ORDERS["nearest"](images, Rule("nearest", 5, 0))
    expected = sorted(
        range(50), key=lambda i: (int(images.ranks[i]), -float(images.cosines[i]), int(images.rows[i]))
    )
    assert order.tolist() == expected


def test_copies_do_not_stop_anything() -> None:
    features = np.repeat(sphere(2, 6), 10, axis=0)
    for method in ("herding", "k-centre"):
        order = ORDERS[method](images_of(features), Rule(method, 5, 0)).tolist()
        assert sorted(order) == list(range(20))
        assert {place // 10 for place in order[:2]} == {0, 1}
