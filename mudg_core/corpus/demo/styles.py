"""The visual domains: which exist, how common each is on the demo web, and how to render one."""

from __future__ import annotations

from collections.abc import Callable

from PIL import Image

from mudg_core.corpus.demo import drawn, painted, printed
from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.scene import Facts, Scene, compose

Style = Callable[[Scene, Dice], Image.Image]

RENDERERS: dict[str, Style] = {
    "photo": painted.photo,
    "clipart": painted.clipart,
    "cartoon": painted.cartoon,
    "watercolor": painted.watercolor,
    "sketch": drawn.sketch,
    "pixel": painted.pixel,
    "neon": drawn.neon,
    "blueprint": drawn.blueprint,
    "chalk": drawn.chalk,
    "mosaic": drawn.mosaic,
    "poster": printed.poster,
    "halftone": printed.halftone,
}

CORPUS_STYLES: dict[str, float] = {
    "photo": 0.50, "clipart": 0.24, "cartoon": 0.15, "watercolor": 0.06, "sketch": 0.03, "pixel": 0.02,
}
ABSENT_STYLES: tuple[str, ...] = ("neon", "blueprint", "chalk", "mosaic", "poster", "halftone")
STYLES: tuple[str, ...] = tuple(RENDERERS)


def render(facts: Facts, size: int, dice: Dice) -> Image.Image:
    """One picture of `facts`, `size` pixels square."""
    return RENDERERS[facts.style](compose(facts, size, dice), dice)
