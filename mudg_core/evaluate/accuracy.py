"""Accuracy per domain: the only place where true labels meet predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.index.exact_products import exact_cosines

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class Score:
    """Accuracy in percent: per domain, over domains (each counts the same), and per class."""

    mean: float
    domains: dict[str, float]
    classes: list[float]


def score(images: Mapping[str, Float32], labels: Mapping[str, Int64], texts: Float32) -> Score:
    """Scores a classifier given as text features against images of each domain.

    Cosines are exact: what features say, no kernel changes; ties go to the class listed first.
    """
    given = {
        domain: (np.argmax(exact_cosines(features, texts), axis=1), labels[domain])
        for domain, features in images.items()
    }
    return score_of(given, len(texts))


def score_of(given: Mapping[str, tuple[Int64, Int64]], classes: int) -> Score:
    """The same of answers, as (predicted, true) labels of each domain."""
    right = {domain: predicted == truth for domain, (predicted, truth) in given.items()}
    domains = {domain: 100 * float(hits.mean()) for domain, hits in right.items()}
    hits, truth = np.concatenate(list(right.values())), np.concatenate([truth for _, truth in given.values()])
    counts = np.bincount(truth, minlength=classes)
    per_class = 100 * np.bincount(truth, weights=hits, minlength=classes) / np.maximum(counts, 1)
    return Score(mean=float(np.mean(list(domains.values()))), domains=domains, classes=per_class.tolist())


def summarise(scores: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Mean and standard deviation over seeds (or targets) of scores given as {"mean", "domains"}."""
    means = np.array([score["mean"] for score in scores], dtype=np.float64)
    by_domain: dict[str, list[float]] = {}
    for item in scores:
        domains = item["domains"]
        assert isinstance(domains, Mapping)
        for domain, value in domains.items():
            by_domain.setdefault(domain, []).append(value)
    return {
        "mean": round(float(means.mean()), 2),
        "std": round(float(means.std(ddof=1)) if len(means) > 1 else 0.0, 2),
        "domains": {domain: round(float(np.mean(values)), 2) for domain, values in sorted(by_domain.items())},
    }
