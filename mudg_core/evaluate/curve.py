"""The WiSE-FT curve: accuracy along the way from the initial (alpha 0) to the finetuned weights (alpha 1).

Every point needs features of its own, of images and of all prompts. So it is measured on a fixed part of the
evaluation images, which is decoded once; the points share it, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mudg_core.encode.models import Clip, Pixels
from mudg_core.evaluate.accuracy import score
from mudg_core.evaluate.images import LabelledImages
from mudg_core.target.queries import Queries
from mudg_core.train.student import Student, interpolate

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
SEED = 0


@dataclass(frozen=True)
class Point:
    """Accuracies in percent, with single and with averaged prompts; means over domains."""

    alpha: float
    single: float
    averaged: float


@dataclass(frozen=True)
class Curve:
    images: int
    points: list[Point]


@dataclass(frozen=True)
class Sample:
    """Pixels and labels of some images, by domain."""

    pixels: Mapping[str, Pixels]
    labels: Mapping[str, Int64]

    @classmethod
    def draw(cls, clip: Clip, images: LabelledImages, limit: int) -> Sample:
        """At most `limit` images, of each domain its part; always the same ones."""
        total = sum(len(labels) for labels in images.labels.values())
        pixels, labels = {}, {}
        for number, (domain, every) in enumerate(images.labels.items()):
            size = max(1, min(len(every), limit * len(every) // total))
            random = np.random.default_rng([SEED, number])
            chosen = np.sort(random.choice(len(every), size, replace=False))
            shown = images.images(domain, set(chosen.tolist()))
            pixels[domain] = np.stack([clip.pixels(image) for image in shown])
            labels[domain] = every[chosen]
        return cls(pixels, labels)

    def score(self, student: Student, queries: Queries, alpha: float) -> Point:
        features = {domain: student.clip.encode_images(pixels) for domain, pixels in self.pixels.items()}
        ways = (score(features, self.labels, texts).mean for texts in text_features(student, queries))
        return Point(alpha, *ways)


def alpha_curve(
    initial: Student, tuned: Student, queries: Queries, images: LabelledImages, points: int, limit: int
) -> Curve:
    """Accuracy at `points` alphas at equal distances, both ends among them."""
    sample = Sample.draw(initial.clip, images, limit)
    found = [sample.score(interpolate(initial, tuned, alpha), queries, alpha) for alpha in alphas(points)]
    return Curve(sum(len(labels) for labels in sample.labels.values()), found)


def alphas(points: int) -> list[float]:
    return [round(float(alpha), 4) for alpha in np.linspace(0, 1, points)]


@torch.inference_mode()
def text_features(student: Student, queries: Queries) -> tuple[Float32, Float32]:
    """Of single and of averaged prompts, as `export` writes them; one augmentation in memory at a time."""
    single = student.text_features(student.tokens(queries.target.prompts()))
    total = sum(_each(student, queries.prompts()))
    assert isinstance(total, torch.Tensor)
    return single.cpu().numpy(), (total / len(queries.matrix)).cpu().numpy()


def _each(student: Student, prompts: Sequence[Sequence[str]]) -> Iterator[torch.Tensor]:
    for texts in prompts:
        yield student.text_features(student.tokens(texts))
