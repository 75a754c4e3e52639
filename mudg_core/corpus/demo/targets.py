"""What a user of the demo may want a classifier for, and how to test it on styles the web hardly has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from PIL import Image

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


_ANIMALS = ("cat", "dog", "fox", "wolf", "bear", "rabbit", "pig", "horse", "zebra", "giraffe", "elephant",
            "bird",
            "owl", "duck", "penguin", "fish", "shark", "turtle")
_VEHICLES = ("car", "bus", "van", "truck", "train", "sailboat", "ship", "helicopter", "house", "church",
             "castle",
             "lighthouse", "windmill")
_MARKET = ("apple", "tomato", "cherry", "strawberry", "pear", "avocado", "banana", "carrot", "pizza",
           "ice cream",
           "mushroom", "flower", "cactus", "t-shirt", "dress", "hat", "shoe", "boot", "glasses", "mug", "cup",
           "teapot", "lamp", "clock")

TARGETS: tuple[DemoTarget, ...] = (
    DemoTarget("animals", "Pets, farm and wild animals; dog, fox and wolf are close.", _ANIMALS, _ANIMALS,
               "a photo of a {}.", ("sketch", "watercolor", "mosaic", "poster")),
    DemoTarget("vehicles-and-buildings", "What stands and drives in a town; bus, van and truck are close.",
               _VEHICLES,
               _VEHICLES, "a photo of a {}.", ("sketch", "pixel", "halftone", "blueprint")),
    DemoTarget("market", "Food, plants, clothes and household goods; apple, tomato and cherry are close.",
               _MARKET,
               _MARKET, "a photo of a {}.", ("watercolor", "pixel", "chalk", "mosaic")),
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
