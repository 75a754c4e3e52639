"""What can be scored: a CLIP model with text features for the classes of a target.

Also every model between two of them, whose weights are mixed (WiSE-FT): the curve of accuracy from the
initial (alpha 0) to the finetuned weights (alpha 1), and the logits that the gate judges by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file, save_file

from mudg_core.encode.models import Clip, Pixels, load_clip
from mudg_core.evaluate.images import Int64, LabelledImages
from mudg_core.evaluate.measures import Answers, Metrics, answer, measure, score
from mudg_core.index.exact import exact_cosines
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train.export import load_classifier, open_student
from mudg_core.train.student import Student, initial_student, interpolate

Float32 = NDArray[np.float32]
ByWay = Mapping[str, Mapping[str, Answers]]  # way -> domain -> answers
FEATURES = "features.safetensors"
WAYS = ("single", "averaged")  # one plain prompt a class, or the mean over all augmentations
SEED = 0


@dataclass(frozen=True)
class Classifier:
    clip: Clip
    texts: Mapping[str, Float32]

    def answers(
        self, features: Mapping[str, Float32], labels: Mapping[str, Int64], temperature: float
    ) -> ByWay:
        """With single and with averaged prompts, to images given by their features."""
        return {
            way: {
                domain: answer(own, labels[domain], self.texts[way], temperature)
                for domain, own in features.items()
            }
            for way in WAYS
            if way in self.texts
        }

    def measures(self, answers: ByWay) -> dict[str, Metrics]:
        return {way: measure(by_domain, len(self.texts[way])) for way, by_domain in answers.items()}

    def scores(self, images: LabelledImages, batch_size: int, temperature: float) -> dict[str, Metrics]:
        features = image_features(self.clip, images, batch_size)
        return self.measures(self.answers(features, images.labels, temperature))


def plain(clip: Clip, target: Target) -> Classifier:
    """Any CLIP model, with one prompt a class."""
    return Classifier(clip, {"single": clip.encode_texts(target.prompts())})


def zero_shot(clip: Clip, queries: Queries) -> Classifier:
    """The student before any training."""
    averaged = np.mean([clip.encode_texts(prompts) for prompts in queries.prompts()], axis=0)
    return Classifier(clip, {**plain(clip, queries.target).texts, "averaged": averaged})


def finetuned(folder: Path, device: str) -> Classifier:
    """A model that was exported."""
    return Classifier(load_clip(f"local-dir:{folder}", device), load_classifier(folder))


def image_features(clip: Clip, images: LabelledImages, batch_size: int) -> dict[str, Float32]:
    """Features by domain; images stream by, only these stay."""
    return {
        domain: np.concatenate(
            [clip.encode_images(batch) for batch in _batches(clip, images.images(domain), batch_size)]
        )
        for domain in images.labels
    }


def write_features(features: Mapping[str, Float32], folder: Path) -> None:
    save_file(dict(features), folder / FEATURES)


def read_features(folder: Path, domains: Iterable[str]) -> dict[str, Float32]:
    """In the order of `domains`, as a safetensors file has an order of its own."""
    stored = load_file(folder / FEATURES)
    return {domain: stored[domain] for domain in domains}


def _batches(clip: Clip, images: Iterable[Image.Image], size: int) -> Iterator[Pixels]:
    batch: list[Pixels] = []
    for image in images:
        batch.append(clip.pixels(image))
        if len(batch) == size:
            yield np.stack(batch)
            batch = []
    if batch:
        yield np.stack(batch)


@dataclass(frozen=True)
class CurvePoint:
    """Accuracies in percent, with single and with averaged prompts; means over domains."""

    alpha: float
    single: float
    averaged: float


@dataclass(frozen=True)
class Curve:
    images: int
    points: list[CurvePoint]


@dataclass(frozen=True)
class Sample:
    """Pixels and labels of some images, by domain.

    Every point of a curve needs features of its own, of images and of all prompts. So it is measured on a
    fixed part of the evaluation images, which is decoded once and which all points share.
    """

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
            sample = images.images(domain, set(chosen.tolist()))
            pixels[domain] = np.stack([clip.pixels(image) for image in sample])
            labels[domain] = every[chosen]
        return cls(pixels, labels)

    def score(self, student: Student, queries: Queries, alpha: float) -> CurvePoint:
        features = {domain: student.clip.encode_images(pixels) for domain, pixels in self.pixels.items()}
        ways = (score(features, self.labels, texts).mean for texts in text_features(student, queries))
        return CurvePoint(alpha, *ways)


def alpha_curve(
    initial: Student, tuned: Student, queries: Queries, images: LabelledImages, points: int, limit: int
) -> Curve:
    """Accuracy at `points` alphas at equal distances, both ends among them."""
    sample = Sample.draw(initial.clip, images, limit)
    scores = [sample.score(interpolate(initial, tuned, alpha), queries, alpha) for alpha in alphas(points)]
    return Curve(sum(len(labels) for labels in sample.labels.values()), scores)


def alphas(points: int) -> list[float]:
    return [round(float(alpha), 4) for alpha in np.linspace(0, 1, points)]


@torch.inference_mode()
def text_features(student: Student, queries: Queries) -> tuple[Float32, Float32]:
    """Of single and of averaged prompts, as `export` writes them; one augmentation in memory at a time."""
    single = student.text_features(student.tokens(queries.target.prompts()))
    total = sum(student.text_features(student.tokens(prompts)) for prompts in queries.prompts())
    assert isinstance(total, torch.Tensor)
    return single.cpu().numpy(), (total / len(queries.matrix)).cpu().numpy()


def logits_between(
    clip: Clip,
    model: Path,
    prompts: Sequence[str],
    pixels: Pixels,
    alphas: Iterable[float],
    temperature: float,
    batch_size: int,
) -> dict[float, Float32]:
    """Logits (images, classes) by weight. 0 is always among them: `clip` as it is, without a soft prompt.
    Features are torch's, and may differ in a last bit from CPU to CPU; products of them are exact.

    One student after the other, so that three models are in memory at most; `clip` ends up inside one.
    """
    scale = np.float32(temperature)
    zero_shot = exact_cosines(clip.encode_images(pixels, batch_size), clip.encode_texts(prompts))
    logits = {0.0: scale * zero_shot.astype(np.float32)}
    tuned = open_student(model, str(clip.device))
    initial = initial_student(clip, tuned.prompt)
    for alpha in alphas:
        logits[alpha] = scale * _cosines(interpolate(initial, tuned, alpha), prompts, pixels, batch_size)
    return logits


@torch.inference_mode()
def _cosines(student: Student, prompts: Sequence[str], pixels: Pixels, batch_size: int) -> Float32:
    texts: Float32 = student.text_features(student.tokens(prompts)).float().cpu().numpy()
    return exact_cosines(student.clip.encode_images(pixels, batch_size), texts).astype(np.float32)
