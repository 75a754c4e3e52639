"""Accuracy against loops."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.evaluate.measures import score, summarise
from tests.core.index.making import sphere


@pytest.mark.parametrize("seed", range(10))
def test_score_equals_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    texts = sphere(5, 6, seed)
    images = {name: sphere(size, 6, seed + size) for name, size in (("photo", 30), ("sketch", 7))}
    labels = {name: random.integers(0, 4, len(features)) for name, features in images.items()}
    found = score(images, labels, texts)
    right: dict[int, list[bool]] = {}
    shares = {}
    for name, features in images.items():
        hits = []
        for feature, label in zip(features, labels[name].tolist(), strict=True):
            cosines = [float(feature @ text) for text in texts]
            hits.append(cosines.index(max(cosines)) == label)
            right.setdefault(label, []).append(hits[-1])
        shares[name] = 100 * sum(hits) / len(hits)
    assert found.domains == pytest.approx(shares)
    assert found.mean == pytest.approx((shares["photo"] + shares["sketch"]) / 2)
    for label in range(5):
        hits = right.get(label, [False])  # a class without images scores nothing
        assert found.classes[label] == pytest.approx(100 * sum(hits) / len(hits))


def test_domains_weigh_the_same() -> None:
    texts = np.eye(2, dtype=np.float32)
    images = {"big": np.tile(texts[0], (98, 1)), "small": np.tile(texts[0], (2, 1))}
    labels = {"big": np.zeros(98, np.int64), "small": np.ones(2, np.int64)}
    assert score(images, labels, texts).mean == 50.0


def test_summarise() -> None:
    scores = [
        {"mean": 50.0, "domains": {"b": 40.0, "a": 60.0}},
        {"mean": 53.0, "domains": {"b": 46.0, "a": 60.0}},
        {"mean": 59.0, "domains": {"b": 55.0, "a": 63.0}},
    ]
    mean = (50 + 53 + 59) / 3
    spread = (sum((value - mean) ** 2 for value in (50, 53, 59)) / 2) ** 0.5
    found = summarise(scores)
    assert found == {"mean": 54.0, "std": round(spread, 2), "domains": {"a": 61.0, "b": 47.0}}
    assert list(found["domains"]) == ["a", "b"]  # type: ignore[call-overload]
    assert summarise(scores[:1])["std"] == 0.0
