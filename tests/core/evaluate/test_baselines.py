"""Cache models, against their formulas written as loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from mudg_core.evaluate import baselines
from mudg_core.evaluate.baselines import Cache, Weights, choose_weights, default_weights
from mudg_core.index.vectors import normalised

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
CLASSES, DIM, T = 5, 8, 20.0


def world(seed: int, cached: int = 30, images: int = 12) -> tuple[Float32, Int64, Float32, Float32]:
    random = np.random.default_rng(seed)
    texts, keys, tests = (
        normalised(random.normal(size=(n, DIM)).astype(np.float32)) for n in (CLASSES, cached, images)
    )
    return keys, random.integers(0, CLASSES - 1, cached), texts, tests  # nothing is cached of the last class


def signature(image: Float32, texts: Float32) -> list[float]:
    raised = [math.exp(T * float(image @ text)) for text in texts]
    return [value / sum(raised) for value in raised]


def divergence(one: Float32, other: Float32, texts: Float32) -> float:
    pairs = zip(signature(one, texts), signature(other, texts), strict=True)
    return sum(p * math.log(p / q) for p, q in pairs)


def by_definition(
    keys: Float32, labels: Int64, texts: Float32, image: Float32, weights: Weights
) -> list[float]:
    different = [(a, b) for a in range(len(keys)) for b in range(len(keys)) if a != b]
    divergences = [divergence(keys[a], keys[b], texts) for a, b in different]
    affinities = [math.exp(-weights.beta * (1 - float(keys[a] @ keys[b]))) for a, b in different]
    logits = [T * float(image @ text) for text in texts]
    for key, label in zip(keys, labels, strict=True):
        logits[label] += weights.alpha * math.exp(-weights.beta * (1 - float(image @ key)))
        share = (divergence(image, key, texts) - min(divergences)) / (max(divergences) - min(divergences))
        scaled = max(affinities) - share * (max(affinities) - min(affinities))
        logits[label] += weights.gamma * scaled
    return logits


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weights", [Weights(1.3, 5.5, 0.0), Weights(0.0, 3.0, 2.0), Weights(0.7, 2.0, 1.5)])
def test_logits_are_those_of_the_formulas(seed: int, weights: Weights) -> None:
    keys, labels, texts, images = world(seed)
    found = Cache.of(keys, labels, texts, T).logits(images, weights)
    for image, logits in zip(images, found, strict=True):
        assert logits == pytest.approx(by_definition(keys, labels, texts, image, weights), rel=1e-3, abs=2e-3)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, labels, texts, images = world(1, images=50)
    cache, weights = Cache.of(keys, labels, texts, T), Weights(1.0, 5.5, 1.0)
    whole = cache.logits(images, weights)
    monkeypatch.setattr(baselines, "ELEMENTS", 3 * len(keys))
    assert cache.logits(images, weights) == pytest.approx(whole, abs=1e-5)
    assert cache.predict(images, weights).tolist() == whole.argmax(axis=1).tolist()
    assert cache.predict(images[:0], weights).shape == (0,)


def test_an_image_is_judged_alone() -> None:
    """The published code rescales over all test images; then one image's class would depend on others."""
    keys, labels, texts, images = world(2)
    cache, weights = Cache.of(keys, labels, texts, T), Weights(1.0, 5.5, 3.0)
    alone = np.concatenate([cache.logits(image[None], weights) for image in images])
    assert alone == pytest.approx(cache.logits(images, weights), abs=1e-4)


def test_without_weights_it_is_zero_shot() -> None:
    keys, labels, texts, images = world(3)
    found = Cache.of(keys, labels, texts, T).logits(images, Weights(0.0, 5.5, 0.0))
    assert found == pytest.approx(T * images @ texts.T, abs=1e-5)


def test_the_choice_follows_the_labels() -> None:
    """Labels that only the cache knows ask for it; labels of zero-shot itself leave it out."""
    keys, labels, texts, images = world(4, cached=200, images=40)
    cache = Cache.of(keys, labels, texts, T)
    likely = labels[(images @ keys.T).argmax(axis=1)]
    chosen = choose_weights(cache, images, likely)
    own = (cache.predict(images, chosen) == likely).mean()
    assert chosen.alpha > 0 and own > ((images @ texts.T).argmax(axis=1) == likely).mean()
    plain = choose_weights(cache, images, (images @ texts.T).argmax(axis=1))
    assert (plain.alpha, plain.gamma) == (0.0, 0.0)
    assert choose_weights(cache, images, likely, gammas=(0.0,)).gamma == default_weights((0.0,)).gamma == 0.0


def test_a_cache_of_one_image_has_no_ranges() -> None:
    keys, labels, texts, images = world(5, cached=1)
    assert np.isfinite(Cache.of(keys, labels, texts, T).logits(images, Weights(1.0, 5.5, 1.0))).all()
