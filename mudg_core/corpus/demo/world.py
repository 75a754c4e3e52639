"""A small web of its own: image-caption pairs that stand in for LAION when there is no network.

It has what makes the real one hard, at known rates: a long tail of kinds and styles,
near-duplicates of popular
pictures, pictures of everything, dead links, wrong and empty captions. Row `i` is a pure function of the seed
and `i`, so any process can make any part of a corpus of any length, and gets the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from PIL import Image

from mudg_core.corpus.demo.captions import caption, hub_caption
from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.hubs import banner, collage
from mudg_core.corpus.demo.scene import imagine
from mudg_core.corpus.demo.styles import CORPUS_STYLES, STYLES, render
from mudg_core.corpus.demo.things import KIND_BY_NAME, KIND_SHARES, KINDS
from mudg_core.errors import InputError

# Streams of random numbers that never meet: what is in a row, its pixels, its words, and so on.
_PLAN, _PICTURE, _CAPTION, _POPULAR, _PORTRAIT, _STRANGER = range(1, 7)

HUB_SHARE = 0.03
BANNER_SHARE = 0.3
COPY_SHARE = 0.15
WRONG_SHARE = 0.05
DEAD_SHARE = 0.03
GONE_SHARE = 0.08
POPULAR_PER_KIND = 5
_POPULARITY = {str(rank): 1.0 / (rank + 1.0) ** 1.2 for rank in range(POPULAR_PER_KIND)}
_POPULAR_STYLES = ("photo", "clipart")
_KIND_NUMBER = {kind.name: number for number, kind in enumerate(KINDS)}
_FOLDERS = ("img", "uploads", "media", "static/pictures", "wp-content", "catalog", "blog", "cdn/large")


@dataclass(frozen=True)
class Truth:
    """What a row really is, for evaluators only: never written into a shard.

    `duplicate_of` is the number of a popular picture; rows that share it are near-copies of each other.
    """

    kind: str | None
    style: str
    duplicate_of: int | None
    hub: bool
    caption_is_wrong: bool


@dataclass(frozen=True)
class DemoRow:
    """One crawled pair. No image: the link was dead when crawled. `/gone/` in the URL: it died later."""

    image: Image.Image | None
    caption: str
    url: str
    truth: Truth


class _Plan(NamedTuple):
    truth: Truth
    banner: bool
    dead: bool
    url: str


@dataclass(frozen=True)
class DemoWorld:
    """The demo web of one seed; another seed is another sample of the same world."""

    seed: int
    size: int = 64
    style_weights: Mapping[str, float] = field(default_factory=lambda: dict(CORPUS_STYLES), hash=False)

    def __post_init__(self) -> None:
        unknown = set(self.style_weights) - set(STYLES)
        if unknown or not sum(self.style_weights.values()) > 0:
            raise InputError(what=f"not a mix of styles: {dict(self.style_weights)}",
                             where="DemoWorld.style_weights",
                             fix=f"give positive weights to some of {', '.join(STYLES)}")
        if self.size < 64 or self.seed < 0:
            raise InputError(what=f"size {self.size}, seed {self.seed}", where="DemoWorld",
                             fix="use a size of at least 64 and a seed of at least 0")

    def row(self, index: int) -> DemoRow:
        """Picture, caption and link number `index`."""
        plan = self._plan(index)
        image = None if plan.dead else self._picture(index, plan)
        return DemoRow(image, self._caption(index, plan), plan.url, plan.truth)

    def truth(self, index: int) -> Truth:
        """The truth about a row, without drawing it."""
        return self._plan(index).truth

    def portrait(self, kind: str, style: str, index: int) -> Image.Image:
        """A clean picture of one thing. No corpus row shares its random numbers, so tests are unseen."""
        dice = Dice(self.seed, _PORTRAIT, index, _KIND_NUMBER[kind], STYLES.index(style))
        return render(imagine(KIND_BY_NAME[kind], style, dice, plain=True), self.size, dice)

    def popular(self, number: int) -> Image.Image:
        """The original that all copies with `duplicate_of == number` were made from."""
        dice = Dice(self.seed, _POPULAR, number, 1)
        kind, style = KINDS[number // POPULAR_PER_KIND], self._popular_style(number)
        return render(imagine(kind, style, dice, plain=True), self.size, dice)

    def _plan(self, index: int) -> _Plan:
        dice = Dice(self.seed, _PLAN, index)
        hub = dice.chance(HUB_SHARE)
        copy = dice.chance(COPY_SHARE / (1.0 - HUB_SHARE)) and not hub
        kind = dice.weighted(KIND_SHARES)
        style = dice.weighted(self.style_weights)
        number = None
        if copy:
            number = _KIND_NUMBER[kind] * POPULAR_PER_KIND + int(dice.weighted(_POPULARITY))
            style = self._popular_style(number)
        wrong = dice.chance(WRONG_SHARE) and not hub
        truth = Truth(None if hub else kind, style, number, hub, wrong)
        return _Plan(truth, dice.chance(BANNER_SHARE), dice.chance(DEAD_SHARE), _url(index, dice))

    def _popular_style(self, number: int) -> str:
        """Popular pictures are photographs or clip art, whatever the mix of the rest."""
        return _POPULAR_STYLES[int(Dice(self.seed, _POPULAR, number).chance(0.32))]

    def _picture(self, index: int, plan: _Plan) -> Image.Image:
        truth, dice = plan.truth, Dice(self.seed, _PICTURE, index)
        if truth.kind is None:
            return (banner if plan.banner else collage)(truth.style, self.size, dice)
        if truth.duplicate_of is not None:
            return _near_copy(self.popular(truth.duplicate_of), dice)
        return render(imagine(KIND_BY_NAME[truth.kind], truth.style, dice), self.size, dice)

    def _caption(self, index: int, plan: _Plan) -> str:
        truth, dice = plan.truth, Dice(self.seed, _CAPTION, index)
        if truth.kind is None:
            return hub_caption(plan.banner, dice)
        if truth.caption_is_wrong:
            others = [kind for kind in KINDS if kind.name != truth.kind]
            stranger = Dice(self.seed, _STRANGER, index)
            facts = imagine(dice.pick(others), dice.weighted(self.style_weights), stranger)
        elif truth.duplicate_of is not None:
            original = Dice(self.seed, _POPULAR, truth.duplicate_of, 1)
            facts = imagine(KIND_BY_NAME[truth.kind], truth.style, original, plain=True)
            dice = Dice(self.seed, _POPULAR, truth.duplicate_of, 2) if dice.chance(0.5) else dice
        else:
            facts = imagine(KIND_BY_NAME[truth.kind], truth.style, Dice(self.seed, _PICTURE, index))
        return caption(facts, dice)


def _url(index: int, dice: Dice) -> str:
    gone = "gone/" if dice.chance(GONE_SHARE) else ""
    return f"https://images.demo.example/{gone}{dice.pick(_FOLDERS)}/{dice.below(2**40):010x}-{index}.jpg"


def _near_copy(original: Image.Image, dice: Dice) -> Image.Image:
    """The same picture as somebody else saved it: cropped a little, brighter or darker, compressed again."""
    side = original.width
    edge = side * 0.035
    left, top, right, bottom = (dice.uniform(0, edge) for _ in range(4))
    box = (left, top, side - right, side - bottom)
    cropped = original.resize((side, side), Image.Resampling.BILINEAR, box=box)
    pixels = np.asarray(cropped, dtype=np.float32) * dice.uniform(0.94, 1.06)
    stored = io.BytesIO()
    quality = 60 + dice.below(31)
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(stored, "JPEG", quality=quality)
    return Image.open(stored).convert("RGB")
