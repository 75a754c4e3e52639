"""What both sides are given: a model, images of noise, and prompts as long as real ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from mudg_core.corpus.demo.targets import TARGETS
from mudg_core.settings import TrainSettings
from mudg_core.target.descriptor_pool import built_in, subsample

IMAGES = 256


@dataclass(frozen=True)
class Case:
    """Sizes of a step; what a model computes takes as long whatever its weights are."""

    model: str
    classes: int
    augmentations: int
    batch: int
    image_chunk: int
    text_chunk: int

    def settings(self, steps: int) -> TrainSettings:
        return TrainSettings(
            model=self.model,
            batch_size=self.batch,
            iterations=steps,
            image_chunk=self.image_chunk,
            text_chunk=self.text_chunk,
            learning_rate=1e-4,
        )

    def clip(self) -> Any:
        from mudg_core.encode.models import blank_clip

        return blank_clip(self.model)

    def inputs(self, image_size: int) -> tuple[Any, Any, list[list[str]]]:
        """Pixels, labels and prompts."""
        random = np.random.default_rng(0)
        pixels = random.integers(0, 256, (IMAGES, image_size, image_size, 3), dtype=np.uint8)
        return pixels, random.integers(0, self.classes, IMAGES), self.prompts()

    def prompts(self) -> list[list[str]]:
        kinds = [name for target in TARGETS for name in target.classes]
        names, pool = list(islice(cycle(kinds), self.classes)), subsample(built_in(), self.augmentations, 0)
        return [[f"a photo of a {name}, {said}." for name in names] for said in pool]


# The demo's settings (flows/demo.yaml): a step of the target `animals`.
DEMO = Case("demo:student", classes=18, augmentations=16, batch=64, image_chunk=64, text_chunk=512)
VIT = Case("ViT-B-32/openai", classes=10, augmentations=4, batch=32, image_chunk=32, text_chunk=64)
# The paper's settings, and a target of middle size.
PAPER = Case("ViT-B-16/openai", classes=100, augmentations=16, batch=128, image_chunk=32, text_chunk=128)
