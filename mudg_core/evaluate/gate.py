"""Whether a student is better than zero-shot, estimated without labels; and which weights to export.

The evidence: candidates with pseudo-labels that were not trained on. The index model gave those labels, and
it is stronger than the student, so to agree with it more often than zero-shot does is a good sign. It is an
optimistic one: held-out images are from the same pool as the training images, and where the labels are wrong,
the student has learnt the same mistakes. docs/compare.md says how far to trust it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from mudg_core.settings import Json

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

VERDICT = "verdict.json"
MIN_IMAGES = 30  # held-out; with fewer no verdict is given
CONFIDENCE = 0.95
DRAWS = 10_000
MIN_KAPPA = 0.1  # agreement of student and zero-shot beyond chance; below it the labels are not trusted


@dataclass(frozen=True)
class Estimate:
    """One weight between zero-shot (0) and the finetuned student (1); all but alpha and kappa in percent.

    `gain` is over zero-shot, and `low` its 95 % lower bound. `kappa` is agreement beyond chance.
    """

    alpha: float
    accuracy: float
    gain: float
    low: float
    agreement: float
    kappa: float
    confidence: float


@dataclass(frozen=True)
class Verdict:
    """`alpha` is the weight to export: 1 where `better` is None, as there was too little to judge by."""

    alpha: float
    better: bool | None
    images: int
    estimates: tuple[Estimate, ...]  # of zero-shot and of every weight, rising
    reasons: tuple[str, ...]

    def to_json(self) -> Json:
        by_alpha = {f"{item.alpha:g}": asdict(item) for item in self.estimates}
        taken = by_alpha.get(f"{self.alpha:g}" if self.alpha else "1", {})
        return {
            "alpha": self.alpha,
            "better": self.better,
            "images": self.images,
            "estimate": by_alpha,
            "zero_shot": by_alpha.get("0"),
            "agreement": taken.get("agreement"),
            "confidence": taken.get("confidence"),
            "reasons": list(self.reasons),
        }

    @classmethod
    def from_json(cls, body: Json) -> Verdict:
        estimates = tuple(Estimate(**item) for item in body["estimate"].values())
        return cls(body["alpha"], body["better"], body["images"], estimates, tuple(body["reasons"]))


def judge(logits: Mapping[float, Float32], labels: Int64, margin: float) -> Verdict:
    """The verdict on `logits[alpha]`, one line for each held-out image; alpha 0 is zero-shot."""
    if len(labels) < MIN_IMAGES:
        return unjudged(len(labels), f"Only {len(labels)} labelled images are outside the training set.")
    estimates = tuple(_estimates(logits, labels))
    chosen = _chosen(estimates[1:])
    trusted = chosen.kappa >= MIN_KAPPA
    better = trusted and chosen.low > margin
    decision = _decision(chosen, margin, better) if trusted else _distrust(chosen)
    reasons = (*decision, *_evidence(estimates[0], chosen))
    return Verdict(chosen.alpha if better else 0.0, better, len(labels), estimates, reasons)


def unjudged(images: int, why: str) -> Verdict:
    """Where there is nothing to go by, the finetuned weights are exported, and the report says so."""
    reasons = (why, "The gain over zero-shot was not estimated; the finetuned weights are exported.")
    return Verdict(1.0, None, images, (), reasons)


def _chosen(estimates: Sequence[Estimate]) -> Estimate:
    """The weight with the highest accuracy; of equals the one that is nearer to zero-shot."""
    return max(estimates, key=lambda item: (item.accuracy, -item.alpha))


def _estimates(logits: Mapping[float, Float32], labels: Int64) -> Iterator[Estimate]:
    plain = logits[0.0].argmax(axis=1)
    for alpha, scores in sorted(logits.items()):
        predicted = scores.argmax(axis=1)
        gains = (predicted == labels).astype(np.int64) - (plain == labels)
        yield Estimate(
            alpha=alpha,
            accuracy=_percent(predicted == labels),
            gain=_percent(gains),
            low=_lower_bound(gains),
            agreement=_percent(predicted == plain),
            kappa=_kappa(predicted, plain, scores.shape[1]),
            confidence=_percent(_probabilities(scores).max(axis=1)),
        )


def _lower_bound(gains: Int64) -> float:
    """The gain that resampled sets of images exceed in 95 of 100 cases. Lost, equal and won images are all
    that counts, so their numbers are drawn and not the images."""
    shares = np.bincount(gains + 1, minlength=3) / len(gains)
    draws = np.random.default_rng(0).multinomial(len(gains), shares, size=DRAWS)
    return round(100 * float(np.quantile((draws[:, 2] - draws[:, 0]) / len(gains), 1 - CONFIDENCE)), 3)


def _kappa(one: Int64, other: Int64, classes: int) -> float:
    """Cohen's: 1 if two always say the same, 0 if no more often than by chance."""
    counts = (np.bincount(labels, minlength=classes) for labels in (one, other))
    chance = int(np.multiply(*counts).sum()) / len(one) ** 2
    if chance >= 1:
        return 0.0
    return round((float((one == other).mean()) - chance) / (1 - chance), 4)


def _probabilities(logits: Float32) -> Float64:
    raised = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    probabilities: Float64 = raised / raised.sum(axis=1, keepdims=True)
    return probabilities


def _percent(values: NDArray[np.bool_] | Int64 | Float64) -> float:
    return round(100 * float(values.mean()), 3)


def _decision(chosen: Estimate, margin: float, better: bool) -> Iterator[str]:
    gain = f"{chosen.gain:+.1f} points (95 % lower bound {chosen.low:+.1f})"
    if better:
        yield f"Estimated gain over zero-shot: {gain}, at alpha {chosen.alpha:g}."
        return
    yield (
        f"No gain over zero-shot is certain: the best estimate is {gain}, at alpha {chosen.alpha:g}; the "
        f"lower bound must exceed {margin:g}. The initial weights are kept."
    )


def _distrust(chosen: Estimate) -> Iterator[str]:
    yield (
        f"Student and zero-shot agree on {chosen.agreement:.1f} % of the images, hardly more than by chance: "
        "finetuning failed, or its pseudo-labels are wrong. The initial weights are kept."
    )


def _evidence(plain: Estimate, chosen: Estimate) -> Iterator[str]:
    yield (
        f"Agreement with the pseudo-labels of held-out images: student {chosen.accuracy:.1f} %, zero-shot "
        f"{plain.accuracy:.1f} %; with each other {chosen.agreement:.1f} %."
    )
    yield f"Mean confidence: student {chosen.confidence:.1f} %, zero-shot {plain.confidence:.1f} %."
