"""A small web of its own: image-caption pairs that stand in for LAION when there is no network.

It has what makes the real one hard, at known rates: a long tail of kinds and styles, near-duplicates of
popular pictures, hubs, dead links, wrong and empty captions. Row `i` is a pure function of the seed and `i`,
so any process can draw any part of a corpus of any length, and gets the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from mudg_core.corpus.demo.captions import caption, hub_caption
from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.drawing import INK, NAMED, mix
from mudg_core.corpus.demo.kinds import KIND_BY_NAME, KIND_SHARES, KINDS
from mudg_core.corpus.demo.scene import imagine
from mudg_core.corpus.demo.styles import CORPUS_STYLES, STYLES, render
from mudg_core.corpus.shards import AnyPath, ShardSample, encode_jpeg, write_shard
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
            return (_banner if plan.banner else _collage)(truth.style, self.size, dice)
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


def _collage(style: str, size: int, dice: Dice) -> Image.Image:
    """A hub: four to nine random things on one sheet. It lies near many queries: retrieval gets hard."""
    rows, columns = dice.pick(((2, 2), (2, 3), (3, 2), (3, 3)))
    side = size // max(rows, columns)
    sheet = Image.new("RGB", (size, size), (255, 255, 255))
    for row in range(rows):
        for column in range(columns):
            tile = render(imagine(dice.pick(KINDS), style, dice, plain=True), side, dice)
            sheet.paste(tile, (column * size // columns, row * size // rows))
    return sheet


def _banner(style: str, size: int, dice: Dice) -> Image.Image:
    """A hub: bars that look like lines of print, and one small thing."""
    paper = mix(NAMED[dice.pick(tuple(NAMED))], (255, 255, 255), dice.uniform(0.1, 0.7))
    sheet = Image.new("RGB", (size, size), paper)
    draw = ImageDraw.Draw(sheet)
    step = size // 8
    for line in range(1, 7):
        left = size // 10
        while left < size * dice.uniform(0.6, 0.95):
            width = size * dice.uniform(0.06, 0.22)
            draw.rectangle((left, line * step, left + width, line * step + step * 0.45),
                           fill=INK if line > 1 else NAMED["red"])
            left += int(width + size * 0.05)
    tile = render(imagine(dice.pick(KINDS), style, dice, plain=True), size // 3, dice)
    sheet.paste(tile, (size - size // 3 - 2, size - size // 3 - 2))
    return sheet


def demo_samples(world: DemoWorld, first_row: int, rows: int) -> Iterator[ShardSample]:
    """Rows as a crawler sees them: what they truly show stays behind."""
    for index in range(first_row, first_row + rows):
        row, key = world.row(index), f"{index:09d}"
        if row.image is None:
            yield ShardSample(key, row.url, row.caption, error_message="HTTP Error 404: Not Found")
        else:
            side = world.size
            yield ShardSample(key, row.url, row.caption, encode_jpeg(row.image), None, side, side, side, side,
                              "{}")


def write_demo_shard(
    world: DemoWorld, first_row: int, rows: int, tar_path: AnyPath, parquet_path: AnyPath
) -> int:
    """Rows `first_row` to `first_row + rows` of the demo world as one shard; returns how many."""
    return write_shard(demo_samples(world, first_row, rows), tar_path, parquet_path)
