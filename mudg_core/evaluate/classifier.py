"""Something that can be scored: a CLIP model with text features for the classes of a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file, save_file

from mudg_core.encode.models import Clip, Pixels, load_clip
from mudg_core.evaluate.images import Int64, LabelledImages
from mudg_core.evaluate.measures import Answers, Measured, answer, measure
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train.export import load_classifier

Float32 = NDArray[np.float32]
ByWay = Mapping[str, Mapping[str, Answers]]  # way -> domain -> answers
FEATURES = "features.safetensors"
WAYS = ("single", "averaged")  # one plain prompt a class, or the mean over all augmentations


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

    def measures(self, answers: ByWay) -> dict[str, Measured]:
        """All measures of answers of its own."""
        return {way: measure(by_domain, len(self.texts[way])) for way, by_domain in answers.items()}

    def scores(self, images: LabelledImages, batch_size: int, temperature: float) -> dict[str, Measured]:
        features = image_features(self.clip, images, batch_size)
        return self.measures(self.answers(features, images.labels, temperature))


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
