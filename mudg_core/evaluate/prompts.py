"""What prompts alone are worth: zero-shot accuracy by prompts, before any training.

Three questions: which way is best, how many augmentations are enough, and whether descriptors that keep the
features of the labels apart (what Eq. 4 selects for) are the ones that classify well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from mudg_core.evaluate.measures import Score, score
from mudg_core.settings import AugmentSettings, Json
from mudg_core.target.descriptor_selection import Encoder, random_choice
from mudg_core.target.prompts import Augmentations, of_descriptors
from mudg_core.target.spec import Target

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]

LARGEST = 64  # ensemble
DRAWS = 3  # of random ensembles, whose accuracies are averaged
SPOTS = 200


@dataclass(frozen=True)
class MethodScore:
    """A method of making prompts; accuracies in percent, the mean is over domains."""

    method: str
    augmentations: int
    mean: float
    domains: dict[str, float]


@dataclass(frozen=True)
class Spot:
    """One descriptor alone: how far apart it holds the label features, and how well it classifies."""

    descriptor: str
    variance: float
    accuracy: float


@dataclass(frozen=True)
class PromptStudy:
    methods: tuple[MethodScore, ...]
    curves: dict[str, tuple[tuple[int, float], ...]]  # method -> (augmentations, accuracy)
    spots: tuple[Spot, ...]
    correlation: float | None  # of variance and accuracy; none if either is the same everywhere

    def to_json(self) -> Json:
        return asdict(self)

    @classmethod
    def from_json(cls, body: Json) -> PromptStudy:
        return TypeAdapter(cls).validate_python(body)


@dataclass(frozen=True)
class Examiner:
    """Image features of a target's evaluation set, which stay, and the text tower that prompts go through."""

    target: Target
    images: Mapping[str, Float32]
    labels: Mapping[str, Int64]
    encode: Encoder

    def score(self, texts: Float32 | Float64) -> Score:
        return score(self.images, self.labels, np.asarray(texts, dtype=np.float32))

    def ensemble(self, augmentations: Augmentations) -> MethodScore:
        score = self.score(self._sums(augmentations, [len(augmentations.templates)])[0])
        return MethodScore(augmentations.method, len(augmentations.templates), score.mean, score.domains)

    def curve(self, descriptors: Sequence[str]) -> tuple[tuple[int, float], ...]:
        """Accuracy with the first 1, 2, 4 … of these descriptors."""
        sizes = [2**power for power in range(LARGEST.bit_length()) if 2**power <= len(descriptors)]
        sums = self._sums(of_descriptors(self.target, "", descriptors[: sizes[-1]]), sizes)
        return tuple((size, self.score(texts).mean) for size, texts in zip(sizes, sums, strict=True))

    def spot(self, descriptor: str) -> Spot:
        (prompts,) = of_descriptors(self.target, "", [descriptor]).prompts(self.target)
        texts = self.encode(prompts)
        mean = texts.mean(axis=0, dtype=np.float64)
        return Spot(descriptor, float(1 - mean @ mean), self.score(texts).mean)

    def _sums(self, augmentations: Augmentations, sizes: Sequence[int]) -> list[Float64]:
        """Summed text features of the first few augmentations: scores with them are averaged scores."""
        total: Float64 | None = None
        kept = []
        for number, prompts in enumerate(augmentations.prompts(self.target), 1):
            features = self.encode(prompts).astype(np.float64)
            total = features if total is None else total + features
            if number in sizes:
                kept.append(total / number)
        return kept


def study(
    examiner: Examiner,
    methods: Sequence[Augmentations],
    ranked: Sequence[str],
    pool: Sequence[str],
    settings: AugmentSettings,
) -> PromptStudy:
    """`ranked` is the pool by the loss of Eq. 4, best first."""
    draws = [
        examiner.curve(random_choice(pool, LARGEST, seed))
        for seed in range(settings.seed, settings.seed + DRAWS)
    ]
    chance = [(points[0][0], float(np.mean([p[1] for p in points]))) for points in zip(*draws, strict=True)]
    spots = tuple(examiner.spot(phrase) for phrase in random_choice(pool, SPOTS, settings.seed))
    return PromptStudy(
        methods=tuple(examiner.ensemble(one) for one in methods),
        curves={"adaptive": examiner.curve(ranked), "random": tuple(chance)},
        spots=spots,
        correlation=correlation([(spot.variance, spot.accuracy) for spot in spots]),
    )


def correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's; none where one side does not vary."""
    values = np.array(points, dtype=np.float64).reshape(-1, 2)
    if len(values) < 2 or (np.ptp(values, axis=0) < 1e-12).any():
        return None
    return float(np.corrcoef(values[:, 0], values[:, 1])[0, 1])
