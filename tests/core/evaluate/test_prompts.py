"""What prompts alone are worth, on a world where the answer is known."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from mudg_core.evaluate.prompts import DRAWS, SPOTS, Examiner, PromptStudy, correlation, study
from mudg_core.settings import AugmentSettings
from mudg_core.target.descriptor_selection import random_choice
from mudg_core.target.prompts import augmentations, of_descriptors
from mudg_core.target.spec import Target
from tests.core.index.making import Float32, unit

CLASSES = tuple(f"thing {number}" for number in range(6))
TARGET = Target(name="things", classes=CLASSES)
POOL = [f"which is {strength}" for strength in range(300)]


def encode(texts: Sequence[str]) -> Float32:
    """A class has an axis; "which is 200" pulls them towards another axis, the last class furthest."""
    rows = np.zeros((len(texts), len(CLASSES) + 1))
    for row, text in zip(rows, texts, strict=True):
        label = int(text.split("thing ")[1].split(",")[0].strip("."))
        strength = int(text.split("which is ")[1].strip(".")) / 100 if "which is" in text else 0.0
        row[label] = 1
        row[-1] = strength * label
    return unit(rows)


def examiner() -> Examiner:
    random = np.random.default_rng(0)
    labels = {domain: random.integers(0, 6, size=60) for domain in ("drawn", "seen")}
    noise = {"drawn": 0.5, "seen": 0.8}
    images = {
        domain: unit(np.eye(7)[found] + noise[domain] * random.normal(size=(60, 7)))
        for domain, found in labels.items()
    }
    return Examiner(TARGET, images, labels, encode)


def naive(matrix: list[list[str]]) -> float:
    """Mean over domains of the accuracy by scores that are averaged over augmentations, image by image."""
    found = examiner()
    accuracies = []
    for domain, images in found.images.items():
        right = 0
        for image, label in zip(images, found.labels[domain], strict=True):
            scores = np.mean([encode(prompts) @ image for prompts in matrix], axis=0)
            right += int(np.argmax(scores)) == label
        accuracies.append(100 * right / len(images))
    return float(np.mean(accuracies))


def test_accuracies_are_of_averaged_scores() -> None:
    made = of_descriptors(TARGET, "random", [POOL[3], POOL[250], POOL[90]])
    found = examiner().ensemble(made)
    assert found.mean == pytest.approx(naive(made.prompts(TARGET)))
    assert (found.method, found.augmentations, list(found.domains)) == ("random", 3, ["drawn", "seen"])


def test_curves_are_of_the_first_few() -> None:
    points = examiner().curve(POOL[:100])
    assert [size for size, _ in points] == [1, 2, 4, 8, 16, 32, 64]
    for size, value in points[:3]:
        made = of_descriptors(TARGET, "", POOL[:size])
        assert value == pytest.approx(naive(made.prompts(TARGET)))
    assert [size for size, _ in examiner().curve(POOL[:3])] == [1, 2]


def test_variance_is_the_mean_squared_distance_from_the_mean() -> None:
    spot = examiner().spot(POOL[120])
    features = encode([f"thing {label}, {POOL[120]}." for label in range(6)])
    spread = ((features - features.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert spot.variance == pytest.approx(float(spread), abs=1e-6)


def test_the_whole_study() -> None:
    settings = AugmentSettings(count=8)
    plain = augmentations(TARGET, AugmentSettings(method="none"), encode)
    found = study(examiner(), [plain], POOL, POOL, settings)
    assert [item.method for item in found.methods] == ["none"]
    assert list(found.curves) == ["adaptive", "random"]
    assert found.curves["adaptive"] == examiner().curve(POOL)
    draws = [examiner().curve(random_choice(POOL, 64, seed)) for seed in range(DRAWS)]
    assert found.curves["random"][2] == (4, pytest.approx(np.mean([draw[2][1] for draw in draws])))
    assert len({spot.descriptor for spot in found.spots}) == len(found.spots) == SPOTS
    assert found.correlation is not None and found.correlation > 0.5
    assert study(examiner(), [plain], POOL, POOL, settings) == found
    assert PromptStudy.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_correlation() -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=50)
    y = 0.3 * x + random.normal(size=50)
    expected = np.mean((x - x.mean()) * (y - y.mean())) / (x.std() * y.std())
    assert correlation(list(zip(x, y, strict=True))) == pytest.approx(expected)
    assert correlation([(1.0, 2.0), (1.0, 3.0)]) is None
    assert correlation([(1.0, 2.0)]) is correlation([]) is None
