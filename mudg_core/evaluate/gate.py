"""Whether a student is better than zero-shot, estimated without labels; and how much of it to take.

What there is to go by: candidates that were labelled by the search and not trained on. The index model gave
those labels, and it is stronger than the student, so to agree with it more often than zero-shot does is a
good sign. It is an optimistic one: held-out images are from the same pool as the training images, and where
the labels are wrong, the student has learnt the same mistakes. docs/compare.md says how far to trust it.
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
LEAST = 30  # held-out images, below which nothing is said
CERTAIN = 0.95
DRAWS = 10_000
STRANGERS = 0.1  # agreement beyond chance (kappa), below which two models do not speak of the same classes


@dataclass(frozen=True)
class Estimate:
    """One weight between zero-shot (0) and the finetuned student (1); all but alpha and kappa in percent.

    `gain` is over zero-shot, and at least `low` of it is certain. `kappa` is agreement beyond chance.
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
    """`alpha` is what to hand over. `better` is None where there was too little to judge by; then it is 1."""

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
    if len(labels) < LEAST:
        return unjudged(len(labels), f"Only {len(labels)} labelled images were left beside the training set.")
    estimates = tuple(_estimates(logits, labels))
    chosen = _chosen(estimates[1:])
    if chosen.kappa < STRANGERS:
        reasons = [_distrust(chosen), *_evidence(estimates[0], chosen)]
        return Verdict(0.0, False, len(labels), estimates, tuple(reasons))
    better = chosen.low > margin
    reasons = [_decision(chosen, margin, better), *_evidence(estimates[0], chosen)]
    return Verdict(chosen.alpha if better else 0.0, better, len(labels), estimates, tuple(reasons))


def unjudged(images: int, why: str) -> Verdict:
    """Where there is nothing to go by, what was asked for is handed over, and the report says so."""
    said = (why, "So whether the student is better than zero-shot was not estimated.")
    return Verdict(1.0, None, images, (), said)


def _chosen(estimates: Sequence[Estimate]) -> Estimate:
    """The weight with the highest accuracy; of equals the one that is nearer to zero-shot."""
    return max(estimates, key=lambda item: (item.accuracy, -item.alpha))


def _estimates(logits: Mapping[float, Float32], labels: Int64) -> Iterator[Estimate]:
    plain = logits[0.0].argmax(axis=1)
    for alpha, found in sorted(logits.items()):
        said = found.argmax(axis=1)
        gains = (said == labels).astype(np.int64) - (plain == labels)
        yield Estimate(
            alpha=alpha,
            accuracy=_percent(said == labels),
            gain=_percent(gains),
            low=_certain(gains),
            agreement=_percent(said == plain),
            kappa=_kappa(said, plain, found.shape[1]),
            confidence=_percent(_probabilities(found).max(axis=1)),
        )


def _certain(gains: Int64) -> float:
    """The gain that resampled sets of images exceed in 95 of 100 cases. Lost, equal and won images are all
    that counts, so their numbers are drawn and not the images."""
    shares = np.bincount(gains + 1, minlength=3) / len(gains)
    drawn = np.random.default_rng(0).multinomial(len(gains), shares, size=DRAWS)
    return round(100 * float(np.quantile((drawn[:, 2] - drawn[:, 0]) / len(gains), 1 - CERTAIN)), 3)


def _kappa(one: Int64, other: Int64, classes: int) -> float:
    """Cohen's: 1 if two always say the same, 0 if no more often than by chance."""
    counts = (np.bincount(said, minlength=classes) for said in (one, other))
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


def _decision(chosen: Estimate, margin: float, better: bool) -> str:
    said = f"{chosen.gain:+.1f} points over zero-shot, of which {chosen.low:+.1f} are certain"
    if better:
        return f"With {chosen.alpha:g} of the way from the initial weights, the estimate is {said}."
    return (
        f"No weight is surely more than {margin:g} points better than zero-shot; the best, {chosen.alpha:g}, "
        f"is estimated at {said}. So the weights before finetuning are handed over."
    )


def _distrust(chosen: Estimate) -> str:
    return (
        f"The student agrees with zero-shot on {chosen.agreement:.1f} % of the images, hardly more than by "
        "chance: it is spoilt, or the labels it was trained on are. So the weights before finetuning are "
        "handed over."
    )


def _evidence(plain: Estimate, chosen: Estimate) -> Iterator[str]:
    yield (
        f"Of held-out images, the student puts {chosen.accuracy:.1f} % where the search did, and zero-shot "
        f"{plain.accuracy:.1f} %; the two agree on {chosen.agreement:.1f} %."
    )
    yield (
        f"The student is sure of itself by {chosen.confidence:.1f} %, and zero-shot by "
        f"{plain.confidence:.1f} %."
    )
