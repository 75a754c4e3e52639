"""What a classifier's answers are worth beyond accuracy: near misses, confusions, and honest confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.evaluate.accuracy import Score, score_of
from mudg_core.index.exact_powers import same_exp, sums_in_order
from mudg_core.index.exact_products import exact_cosines

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

BINS = 15
NEAR = 5
MAX_PAIRS = 200
BLOCK = 4096  # images whose scores for all classes are in memory at a time


@dataclass(frozen=True)
class Answers:
    """For each image: its class, the class it was taken for, with which probability, and how many classes
    were scored above its own."""

    truth: Int64
    predicted: Int64
    confidence: Float64
    above: Int64


@dataclass(frozen=True)
class Confusion:
    """Images of one class that were taken for another; the share is of the first class's images."""

    truth: int
    predicted: int
    images: int
    share: float


@dataclass(frozen=True)
class Bin:
    """Images answered with a like confidence. A calibrated classifier is right as often as it says."""

    low: float
    high: float
    images: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """`ece`: how far confidence and accuracy lie apart in a bin, weighted by its images; in percent."""

    ece: float
    confidence: float
    accuracy: float
    bins: list[Bin]


@dataclass(frozen=True)
class Measured(Score):
    """A score with all that the report shows beside it. `counts`: images of each class; `macro`: the mean
    over classes that have any; `top5`: only where there are more than five classes."""

    images: int
    counts: list[int]
    macro: float
    top5: float | None
    confusions: list[Confusion]
    calibration: Calibration


def answer(images: Float32, truth: Int64, texts: Float32, temperature: float) -> Answers:
    """Probabilities are softmax(temperature x cosine), as in training; ties go to the class listed first.

    Cosines are exact and powers the same on every CPU, so that an image falls into the same bin everywhere.
    """
    parts = [
        _answer(images[first : first + BLOCK], truth[first : first + BLOCK], texts, temperature)
        for first in range(0, len(images), BLOCK)
    ]
    predicted, confidence, above = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Answers(truth, predicted, confidence, above)


def _answer(
    images: Float32, truth: Int64, texts: Float32, temperature: float
) -> tuple[Int64, Float64, Int64]:
    scores = exact_cosines(images, texts)
    rows = np.arange(len(images))
    own, best = scores[rows, truth][:, None], scores.max(axis=1, keepdims=True)
    earlier = np.arange(len(texts)) < truth[:, None]
    above = ((scores > own) | ((scores == own) & earlier)).sum(axis=1)
    shares = same_exp(temperature * (scores - best))
    return scores.argmax(axis=1), 1 / sums_in_order(shares), above


def measure(answers: Mapping[str, Answers], classes: int) -> Measured:
    """Everything about the answers to the images of each domain."""
    found = score_of({domain: (given.predicted, given.truth) for domain, given in answers.items()}, classes)
    every = _together(answers)
    counts = np.bincount(every.truth, minlength=classes)
    near = [float(np.mean(given.above < NEAR)) for given in answers.values()]
    return Measured(
        **vars(found),
        images=len(every.truth),
        counts=counts.tolist(),
        macro=float(np.mean(np.asarray(found.classes)[counts > 0])),
        top5=100 * float(np.mean(near)) if classes > NEAR else None,
        confusions=confusions(every, counts),
        calibration=calibration(every),
    )


def _together(answers: Mapping[str, Answers]) -> Answers:
    columns = [vars(given).values() for given in answers.values()]
    return Answers(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def confusions(answers: Answers, counts: Int64) -> list[Confusion]:
    """The ordered pairs that go wrong most often; of pairs as frequent, the greater share first."""
    wrong = answers.truth != answers.predicted
    pairs = answers.truth[wrong] * len(counts) + answers.predicted[wrong]
    codes, often = np.unique(pairs, return_counts=True)
    truth, predicted = np.divmod(codes, len(counts))
    share = 100 * often / counts[truth]
    order = np.lexsort((codes, -share, -often))[:MAX_PAIRS]
    columns = (truth[order], predicted[order], often[order], share[order])
    return [Confusion(*line) for line in zip(*(column.tolist() for column in columns), strict=True)]


def calibration(answers: Answers) -> Calibration:
    """Bins of equal width, each without its lower end; empty ones are left out."""
    sure, right = np.minimum(answers.confidence, 1), answers.predicted == answers.truth
    place = np.clip(np.ceil(sure * BINS).astype(np.int64) - 1, 0, BINS - 1)
    images = np.bincount(place, minlength=BINS)
    there = np.flatnonzero(images)
    means = [
        100 * np.bincount(place, weights=of, minlength=BINS)[there] / images[there] for of in (sure, right)
    ]
    gap = float((np.abs(means[0] - means[1]) * images[there]).sum()) / len(sure)
    bins = [
        Bin(number / BINS, (number + 1) / BINS, int(images[number]), float(said), float(true))
        for number, said, true in zip(there.tolist(), *means, strict=True)
    ]
    return Calibration(gap, 100 * float(sure.mean()), 100 * float(right.mean()), bins)
