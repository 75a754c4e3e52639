"""Colours, and a pen that records shapes instead of pixels.

Things are drawn once, as vectors; a style then decides what a shape looks like (filled, outlined,
glowing, wobbling). That is what lets one drawing appear in every domain with the same meaning.
Coordinates run from -1 to 1 in both directions, y downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mudg_core.corpus.demo.dice import Dice

Colour = tuple[int, int, int]
Point = tuple[float, float]
Points = NDArray[np.float64]

# The words in captions and the paint in pictures agree here.
NAMED: dict[str, Colour] = {
    "red": (214, 48, 44),
    "orange": (238, 134, 38),
    "yellow": (246, 206, 52),
    "green": (76, 166, 72),
    "blue": (52, 108, 206),
    "purple": (132, 74, 176),
    "pink": (242, 150, 176),
    "brown": (138, 90, 52),
    "white": (242, 240, 234),
    "gray": (146, 148, 154),
    "black": (52, 50, 56),
}

INK: Colour = (32, 30, 36)
WHITE: Colour = (250, 249, 245)
CREAM: Colour = (246, 232, 204)
ROSE: Colour = (236, 140, 150)
LEAF: Colour = (74, 150, 62)
WOOD: Colour = (128, 84, 48)
STEEL: Colour = (176, 182, 190)
GLASS: Colour = (178, 216, 236)
RUBBER: Colour = (50, 50, 56)
GOLD: Colour = (236, 190, 60)
AMBER: Colour = (244, 150, 40)

_ANGLES = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
_CIRCLE: Points = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)
_SMALL_CIRCLE: Points = _CIRCLE[::2]
_STEPS = 5
_SOLID = 0.115  # a line from this width on is a part of the thing, with edges; below it is a detail


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """`first` with `share` of `second` in it."""
    keep = 1.0 - share
    return (
        int(first[0] * keep + second[0] * share),
        int(first[1] * keep + second[1] * share),
        int(first[2] * keep + second[2] * share),
    )


def luminance(colour: Colour) -> float:
    """Perceived brightness in 0..255."""
    return 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2]


class Shape(NamedTuple):
    """An area (width 0) or a line; details get no outline of their own, or they would clog."""

    points: Points
    colour: Colour
    width: float
    detail: bool


@lru_cache(maxsize=64)
def _spline(count: int, closed: bool) -> Points:
    """The matrix that turns `count` control points into a Catmull-Rom curve."""
    segments = count if closed else count - 1
    steps = np.arange(_STEPS) / _STEPS
    weights = 0.5 * np.stack([
        -steps + 2 * steps**2 - steps**3,
        2 - 5 * steps**2 + 3 * steps**3,
        steps + 4 * steps**2 - 3 * steps**3,
        -(steps**2) + steps**3,
    ])
    matrix = np.zeros((segments * _STEPS + (not closed), count))
    for segment in range(segments):
        for offset in range(4):
            at = segment + offset - 1
            at = at % count if closed else min(max(at, 0), count - 1)
            matrix[segment * _STEPS : (segment + 1) * _STEPS, at] += weights[offset]
    if not closed:
        matrix[-1, -1] = 1.0
    return matrix


class Pen:
    """What a drawing function holds: a body colour, its shades, and the shapes drawn so far."""

    def __init__(self, dice: Dice, body: Colour, accent: Colour, pattern: str | None = None) -> None:
        self.dice, self.body, self.accent, self.pattern = dice, body, accent, pattern
        self.dark = mix(body, INK, 0.35) if luminance(body) > 80 else mix(body, WHITE, 0.28)
        self.light = mix(body, WHITE, 0.5)
        self.shapes: list[Shape] = []

    def vary(self, value: float, share: float = 0.15) -> float:
        """`value`, up to `share` more or less: two cats never have quite the same ears."""
        return value * self.dice.uniform(1.0 - share, 1.0 + share)

    def poly(
        self, points: Sequence[Point], colour: Colour, detail: bool = False, patterned: bool = False
    ) -> None:
        self._area(np.array(points, dtype=np.float64), colour, detail, patterned)

    def blob(
        self, points: Sequence[Point], colour: Colour, detail: bool = False, patterned: bool = False
    ) -> None:
        """A closed smooth curve through `points`."""
        curve = _spline(len(points), True) @ np.array(points, dtype=np.float64)
        self._area(curve, colour, detail, patterned)

    def oval(
        self, x: float, y: float, rx: float, ry: float, colour: Colour,
        turn: float = 0.0, detail: bool = False, patterned: bool = False,
    ) -> None:
        points = _CIRCLE * (rx, ry)
        if turn:
            cos, sin = np.cos(np.radians(turn)), np.sin(np.radians(turn))
            points = points @ np.array([[cos, sin], [-sin, cos]])
        self._area(points + np.array((x, y)), colour, detail, patterned)

    def dot(self, x: float, y: float, radius: float, colour: Colour = INK) -> None:
        """A small round detail: an eye, a wheel nut, a seed."""
        self.shapes.append(Shape(_SMALL_CIRCLE * radius + (x, y), colour, 0.0, True))

    def box(
        self, left: float, top: float, right: float, bottom: float, colour: Colour,
        detail: bool = False, patterned: bool = False,
    ) -> None:
        self.poly([(left, top), (right, top), (right, bottom), (left, bottom)], colour, detail, patterned)

    def line(self, points: Sequence[Point], colour: Colour, width: float = 0.07) -> None:
        self.shapes.append(Shape(np.array(points, dtype=np.float64), colour, width, width < _SOLID))

    def curve(self, points: Sequence[Point], colour: Colour, width: float = 0.07) -> None:
        """A smooth open line through `points`."""
        curve = _spline(len(points), False) @ np.array(points, dtype=np.float64)
        self.shapes.append(Shape(curve, colour, width, width < _SOLID))

    def ring(self, x: float, y: float, radius: float, colour: Colour, width: float = 0.1) -> None:
        points = np.concatenate([_CIRCLE, _CIRCLE[:1]]) * radius + (x, y)
        self.shapes.append(Shape(points, colour, width, width < _SOLID))

    def _area(self, points: Points, colour: Colour, detail: bool, patterned: bool) -> None:
        self.shapes.append(Shape(points, colour, 0.0, detail))
        if patterned and self.pattern == "stripes":
            self._stripes(points, mix(self.dark, INK, 0.25))
        elif patterned and self.pattern == "spots":
            self._spots(points, mix(self.dark, INK, 0.25))

    def _stripes(self, area: Points, colour: Colour) -> None:
        """Lines clipped to `area` by geometry, so that they survive in every style."""
        axis = self.dice.below(2)
        along, across = area[:, axis], area[:, 1 - axis]
        next_along, next_across = np.roll(along, -1), np.roll(across, -1)
        low, high = float(along.min()), float(along.max())
        count = max(2, round((high - low) / 0.3))
        for number in range(count):
            at = low + (high - low) * (number + 0.5) / count
            crossing = (along <= at) != (next_along <= at)
            share = (at - along[crossing]) / (next_along[crossing] - along[crossing])
            ends = np.sort(across[crossing] + share * (next_across[crossing] - across[crossing]))
            for start, stop in zip(ends[::2], ends[1::2], strict=True):
                line = [(at, start), (at, stop)] if axis == 0 else [(start, at), (stop, at)]
                self.line(line, colour, 0.11)

    def _spots(self, area: Points, colour: Colour) -> None:
        left, top = area.min(axis=0)
        right, bottom = area.max(axis=0)
        for row, y in enumerate(np.arange(top + 0.12, bottom, 0.3)):
            for x in np.arange(left + 0.12 + 0.15 * (row % 2), right, 0.3):
                if _inside(area, x, y):
                    self.dot(x, y, self.vary(0.08), colour)


def _inside(area: Points, x: float, y: float) -> bool:
    """Whether a point is in a polygon, by counting the edges to its right."""
    first, second = area, np.roll(area, -1, axis=0)
    crossing = (first[:, 1] <= y) != (second[:, 1] <= y)
    first, second = first[crossing], second[crossing]
    share = (y - first[:, 1]) / (second[:, 1] - first[:, 1])
    return int((first[:, 0] + share * (second[:, 0] - first[:, 0]) > x).sum()) % 2 == 1


def mirrored(right: Sequence[Point]) -> list[Point]:
    """A closed outline from its right half, top to bottom; points on the axis are there once."""
    return [*right, *((-x, y) for x, y in reversed(right) if x)]
