"""From a kind and a few facts to shapes on a canvas, ready for any style."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.drawing import NAMED, Colour, Pen, Shape
from mudg_core.corpus.demo.kinds import WORLD, Kind

SUPERSAMPLE = 2
_PLACED_STYLES = {"photo": 1.0, "cartoon": 0.6, "watercolor": 0.6}
_ODD_COLOURS = {"food": 0.04, "plant": 0.04, "animal": 0.08}
_ACCENTS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white")


@dataclass(frozen=True)
class Facts:
    """All that is visible in a picture: the one source of both the drawing and the truthful caption."""

    kind: Kind
    style: str
    colour: str | None
    pattern: str | None
    size: str | None
    count: int
    side: str | None
    place: str


class Stroke(NamedTuple):
    """A shape in canvas pixels, in the flat form that Pillow draws fastest."""

    flat: list[float]
    colour: Colour
    width: float
    detail: bool


@dataclass(frozen=True)
class Scene:
    """Placed shapes; `canvas` is the side of the supersampled square they live on."""

    facts: Facts
    body: Colour
    size: int
    shapes: tuple[Shape, ...]
    points: NDArray[np.float64]
    unit: float

    @property
    def canvas(self) -> int:
        return self.size * SUPERSAMPLE

    def strokes(self, moved: NDArray[np.float32] | None = None) -> list[Stroke]:
        """The shapes to draw, with `moved` (canvas pixels) added to every point for an unsteady hand."""
        points = self.points if moved is None else self.points + moved
        strokes, start = [], 0
        for shape in self.shapes:
            stop = start + len(shape.points)
            flat = points[start:stop].ravel().tolist()
            strokes.append(Stroke(flat, shape.colour, shape.width * self.unit, shape.detail))
            start = stop
        return strokes


def imagine(kind: Kind, style: str, dice: Dice, plain: bool = False) -> Facts:
    """What a picture shows. `plain`: one thing of ordinary size in the middle, for portraits."""
    colour = None
    if kind.colours:
        odd = _ODD_COLOURS.get(kind.group, 0.15)
        colour = dice.pick(tuple(NAMED)) if dice.chance(odd) else dice.pick(kind.colours)
    pattern = dice.pick(("stripes", "spots")) if kind.patterned and dice.chance(0.25) else None
    size = None if plain or not dice.chance(0.24) else dice.pick(("small", "large"))
    side = None if plain or size == "large" or not dice.chance(0.16) else dice.pick(("left", "right"))
    count = 2 if not plain and size is None and side is None and dice.chance(0.08) else 1
    place = "plain"
    if dice.chance(_PLACED_STYLES.get(style, 0.0)):
        place = dice.pick(WORLD.special_habitats.get(kind.name, WORLD.habitats[kind.group]))
    return Facts(kind, style, colour, pattern or kind.innate, size, count, side, place)


def compose(facts: Facts, size: int, dice: Dice) -> Scene:
    """Draw the thing (or two of it) and put it on the canvas."""
    body = _shade(NAMED[facts.colour or "gray"], dice)
    spots = _spots(facts, dice)
    accent = NAMED[dice.pick([name for name in _ACCENTS if name != facts.colour])]
    pattern = None if facts.kind.innate else facts.pattern
    shapes: list[Shape] = []
    points: list[NDArray[np.float64]] = []
    for x, reach in spots:
        pen = Pen(dice, body, accent, pattern)
        facts.kind.draw(pen)
        shapes += pen.shapes
        points.append(_place(pen.shapes, x, reach, dice))
    canvas = size * SUPERSAMPLE
    return Scene(facts, body, size, tuple(shapes), np.concatenate(points) * canvas, spots[0][1] * canvas)


def _shade(colour: Colour, dice: Dice) -> Colour:
    """The named colour, a little off: no two reds are the same."""
    red, green, blue = (max(0, min(255, int(part + off))) for part, off in
                        zip(colour, dice.noise(3) * 8.0, strict=True))
    return red, green, blue


def _spots(facts: Facts, dice: Dice) -> list[tuple[float, float]]:
    """Where the things stand (fraction of the width) and how far each reaches from there."""
    small, large, usual = dice.uniform(0.27, 0.31), dice.uniform(0.45, 0.48), dice.uniform(0.36, 0.44)
    if facts.count > 1:
        return [(0.26, 0.235), (0.74, 0.235)]
    reach = {"small": small, "large": large, None: usual}[facts.size]
    if facts.side:
        return [(0.33 if facts.side == "left" else 0.67, min(reach, 0.3))]
    return [(0.5, reach)]


def _place(shapes: list[Shape], x: float, scale: float, dice: Dice) -> NDArray[np.float64]:
    """Bend, flip, turn and move a drawing; the result is in fractions of the canvas."""
    points = np.concatenate([shape.points for shape in shapes])
    bend, phase = dice.noise(2) * 0.035, dice.field(2) * 6.0
    points = points + bend * np.sin(2.2 * points[:, ::-1] + phase)
    turn = np.radians(max(-20.0, min(20.0, dice.normal(7.0))))
    stretch = dice.uniform(0.93, 1.07)
    flip = -1.0 if dice.chance(0.5) else 1.0
    cos, sin = np.cos(turn), np.sin(turn)
    matrix = np.array([[flip * scale * stretch * cos, flip * scale * stretch * sin],
                       [-scale / stretch * sin, scale / stretch * cos]])
    beside, above = max(0.0, min(x, 1.0 - x) - scale - 0.03), max(0.0, 0.47 - scale)
    spot = (x + dice.uniform(-beside, beside) * 0.7, 0.5 + dice.uniform(-above, above) * 0.8)
    placed: NDArray[np.float64] = points @ matrix + spot
    return placed
