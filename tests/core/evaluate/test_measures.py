"""Measures against loops, on answers whose numbers are small enough to count."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from mudg_core.evaluate import measures
from mudg_core.evaluate.measures import BINS, Answers, answer, calibration, confusions, measure, score
from tests.core.index.making import Float32, sphere

Labels = dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]


def world(seed: int, classes: int = 8) -> tuple[dict[str, Float32], Labels, Float32]:
    random = np.random.default_rng(seed)
    texts = sphere(classes, 6, seed)
    labels = {name: random.integers(0, classes - 1, size) for name, size in (("photo", 60), ("sketch", 25))}
    images = {name: sphere(len(found), 6, seed + len(found)) for name, found in labels.items()}
    return images, labels, texts


def answered(seed: int) -> dict[str, Answers]:
    images, labels, texts = world(seed)
    return {name: answer(images[name], labels[name], texts, 25.0) for name in images}


@pytest.mark.parametrize("seed", range(5))
def test_answers_equal_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "BLOCK", 7)
    images, labels, texts = world(seed)
    found = answer(images["photo"], labels["photo"], texts, 25.0)
    for place, (image, label) in enumerate(zip(images["photo"], labels["photo"].tolist(), strict=True)):
        logits = [25.0 * float(image @ text) for text in texts]
        total = sum(math.exp(value) for value in logits)
        assert found.predicted[place] == logits.index(max(logits))
        assert found.confidence[place] == pytest.approx(math.exp(max(logits)) / total, rel=1e-4)
        assert found.above[place] == sum(value > logits[label] for value in logits)
    assert (found.truth == labels["photo"]).all()


def test_ties_go_to_the_first() -> None:
    texts = np.ones((7, 2), np.float32)
    found = answer(np.ones((7, 2), np.float32), np.arange(7), texts, 25.0)
    assert found.predicted.tolist() == [0] * 7 and found.above.tolist() == list(range(7))
    assert found.confidence == pytest.approx(np.full(7, 1 / 7))
    assert measure({"one": found}, 7).top5 == pytest.approx(100 * 5 / 7)


@pytest.mark.parametrize("seed", range(5))
def test_measures_equal_loops(seed: int) -> None:
    images, labels, texts = world(seed)
    given = answered(seed)
    found, plain = measure(given, len(texts)), score(images, labels, texts)
    assert (found.mean, found.domains, found.classes) == (plain.mean, plain.domains, plain.classes)
    truth = np.concatenate(list(labels.values())).tolist()
    assert found.images == 85 and found.counts == [truth.count(label) for label in range(len(texts))]
    there = [label for label in range(len(texts)) if label in truth]
    assert found.counts[-1] == 0 and found.macro == pytest.approx(np.mean([plain.classes[i] for i in there]))
    near = [np.mean([above < 5 for above in one.above]) for one in given.values()]
    assert found.top5 == pytest.approx(100 * np.mean(near))
    json.dumps(asdict(found), allow_nan=False)


@pytest.mark.parametrize("seed", range(5))
def test_confusions_equal_loops(seed: int) -> None:
    given = answered(seed)
    pairs: dict[tuple[int, int], int] = {}
    every: dict[int, int] = {}
    for one in given.values():
        for truth, predicted in zip(one.truth.tolist(), one.predicted.tolist(), strict=True):
            every[truth] = every.get(truth, 0) + 1
            if truth != predicted:
                pairs[truth, predicted] = pairs.get((truth, predicted), 0) + 1
    order = sorted(pairs, key=lambda pair: (-pairs[pair], -pairs[pair] / every[pair[0]], pair))
    found = measure(given, 8).confusions
    assert [(one.truth, one.predicted, one.images) for one in found] == [(*p, pairs[p]) for p in order]
    assert [one.share for one in found] == pytest.approx([100 * pairs[p] / every[p[0]] for p in order])


def test_no_confusion_and_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Answers(np.arange(3), np.arange(3), np.ones(3), np.zeros(3, np.int64))
    assert confusions(right, np.ones(3, np.int64)) == []
    monkeypatch.setattr(measures, "MAX_PAIRS", 2)
    assert len(measure(answered(0), 8).confusions) == 2


@pytest.mark.parametrize("seed", range(5))
def test_calibration_equals_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    sure = np.concatenate([random.random(200), [0.0, 1.0, 1 / BINS, 2 / BINS, 1 + 1e-9]])
    right = random.random(len(sure)) < sure**2
    found = calibration(Answers(np.zeros(len(sure), np.int64), (~right).astype(np.int64), sure, sure))  # type: ignore[arg-type]
    gap = 0.0
    bins = []
    for number in range(BINS):
        low, high = number / BINS, (number + 1) / BINS
        inside = [i for i, value in enumerate(sure) if low < value <= high or (number == 0 and value == 0)]
        inside += [i for i, value in enumerate(sure) if number == BINS - 1 and value > 1]
        if inside:
            said, true = np.mean(np.minimum(sure[inside], 1)), np.mean(right[inside])
            bins.append((len(inside), 100 * said, 100 * true))
            gap += len(inside) / len(sure) * abs(said - true)
    assert found.ece == pytest.approx(100 * gap)
    assert [one.images for one in found.bins] == [images for images, _, _ in bins]
    assert [(one.confidence, one.accuracy) for one in found.bins] == [pytest.approx(b[1:]) for b in bins]
    assert found.accuracy == pytest.approx(100 * right.mean())
    assert found.confidence == pytest.approx(100 * np.minimum(sure, 1).mean())


def test_a_calibrated_classifier_has_no_error() -> None:
    sure = np.repeat([0.25, 0.75], [400, 400])
    right = np.concatenate([np.arange(400) < 100, np.arange(400) < 300])
    given = Answers(np.zeros(800, np.int64), (~right).astype(np.int64), sure, np.zeros(800, np.int64))
    assert calibration(given).ece == pytest.approx(0)
