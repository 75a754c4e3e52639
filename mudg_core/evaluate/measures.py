"""What predictions are worth: accuracy per domain, near misses, confusions and calibration, and the file that
keeps the prediction for each image.

An accuracy alone cannot say whether two classifiers differ by more than chance. Which images each of them
gets right can: `uncertainty.py` compares them image by image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mudg_core.errors import DataError
from mudg_core.index.exact import exact_cosines, same_exp, sums_in_order

Bool = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
ByDomain = Mapping[str, Int64]

BINS = 15
NEAR = 5
MAX_PAIRS = 200
BLOCK = 4096  # images whose scores for all classes are in memory at a time
ANSWERS = "answers.parquet"
DOMAIN, LABEL = "domain", "label"


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
    predicted = {domain: np.argmax(exact_cosines(own, texts), axis=1) for domain, own in images.items()}
    return score_of({domain: (own, labels[domain]) for domain, own in predicted.items()}, len(texts))


def score_of(answers: Mapping[str, tuple[Int64, Int64]], classes: int) -> Score:
    """The same of (predicted, true) labels of each domain."""
    right = {domain: predicted == truth for domain, (predicted, truth) in answers.items()}
    domains = {domain: 100 * float(hits.mean()) for domain, hits in right.items()}
    hits = np.concatenate(list(right.values()))
    truth = np.concatenate([truth for _, truth in answers.values()])
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
class Metrics(Score):
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


def measure(answers: Mapping[str, Answers], classes: int) -> Metrics:
    """Everything about the answers to the images of each domain."""
    scored = score_of({domain: (own.predicted, own.truth) for domain, own in answers.items()}, classes)
    columns = zip(*(vars(own).values() for own in answers.values()), strict=True)
    every = Answers(*(np.concatenate(column) for column in columns))
    counts = np.bincount(every.truth, minlength=classes)
    near = [float(np.mean(own.above < NEAR)) for own in answers.values()]
    return Metrics(
        **vars(scored),
        images=len(every.truth),
        counts=counts.tolist(),
        macro=float(np.mean(np.asarray(scored.classes)[counts > 0])),
        top5=100 * float(np.mean(near)) if classes > NEAR else None,
        confusions=confusions(every, counts),
        calibration=calibration(every),
    )


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
        Bin(number / BINS, (number + 1) / BINS, int(images[number]), float(confidence), float(accuracy))
        for number, confidence, accuracy in zip(there.tolist(), *means, strict=True)
    ]
    return Calibration(gap, 100 * float(sure.mean()), 100 * float(right.mean()), bins)


def column_name(arm: str, way: str) -> str:
    """Of the answers of one arm (`mudg`, `zero_shot`) with single or averaged prompts."""
    return f"{arm}/{way}"


def write_answers(folder: Path, labels: ByDomain, predicted: Mapping[str, ByDomain]) -> None:
    """A row an image, in the order of the evaluation set; `predicted` has the columns."""
    domains = [name for name, truth in labels.items() for _ in truth]
    columns: dict[str, object] = {
        DOMAIN: pa.array(domains).dictionary_encode(),
        LABEL: _joined(labels, labels),
    }
    columns |= {name: _joined(answers, labels) for name, answers in predicted.items()}
    pq.write_table(pa.table(columns), folder / ANSWERS)


def read_hits(file: Path, column: str) -> dict[str, Bool]:
    """Which images were taken for what they are, by domain."""
    table = pq.read_table(file)
    if column not in table.column_names:
        raise DataError(
            what=f"no answers of {column}", where=str(file), fix="delete the artifact and run again"
        )
    hits = table[column].to_numpy() == table[LABEL].to_numpy()
    domains = np.asarray(table[DOMAIN].to_pylist())
    return {name: hits[domains == name] for name in dict.fromkeys(domains.tolist())}


def _joined(answers: ByDomain, labels: ByDomain) -> NDArray[np.int32]:
    return np.concatenate([answers[domain] for domain in labels]).astype(np.int32)
