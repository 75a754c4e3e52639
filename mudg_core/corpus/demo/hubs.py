"""Pictures that are a little like everything: contact sheets and banners.

In an embedding space they lie near many queries, which is what makes nearest neighbours of the web hard.
"""

from __future__ import annotations

from PIL import Image, ImageDraw

from mudg_core.corpus.demo.colours import INK, NAMED, mix
from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.scene import imagine
from mudg_core.corpus.demo.styles import render
from mudg_core.corpus.demo.things import KINDS


def collage(style: str, size: int, dice: Dice) -> Image.Image:
    """Four to nine random things on one sheet."""
    rows, columns = dice.pick(((2, 2), (2, 3), (3, 2), (3, 3)))
    side = size // max(rows, columns)
    sheet = Image.new("RGB", (size, size), (255, 255, 255))
    for row in range(rows):
        for column in range(columns):
            tile = render(imagine(dice.pick(KINDS), style, dice, plain=True), side, dice)
            sheet.paste(tile, (column * size // columns, row * size // rows))
    return sheet


def banner(style: str, size: int, dice: Dice) -> Image.Image:
    """Bars that look like lines of print, and one small thing."""
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
