"""What a user of the demo may want a classifier for, and how to test it on styles the web hardly has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from PIL import Image

from mudg_core.corpus.demo.kinds import WORLD
from mudg_core.corpus.demo.world import DemoWorld


@dataclass(frozen=True)
class DemoTarget:
    """Class names as a user would write them, and the kinds of the demo world that they mean, in order."""

    name: str
    description: str
    classes: tuple[str, ...]
    kinds: tuple[str, ...]
    template: str
    domains: tuple[str, ...]


TARGETS: tuple[DemoTarget, ...] = tuple(
    DemoTarget(name, target.description, target.classes, target.classes, "a photo of a {}.", target.domains)
    for name, target in WORLD.targets.items()
)
TARGET_BY_NAME: dict[str, DemoTarget] = {target.name: target for target in TARGETS}


def evaluation_images(
    target: DemoTarget, domain: str, per_class: int, seed: int, size: int = 64
) -> Iterator[tuple[Image.Image, int]]:
    """`per_class` labelled pictures of each class in one style, class by class."""
    world = DemoWorld(seed=seed, size=size)
    for label, kind in enumerate(target.kinds):
        for number in range(per_class):
            yield world.portrait(kind, domain, number), label
