"""Putting strokes on a canvas: the few drawing moves that all styles share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.drawing import Colour
from mudg_core.corpus.demo.kinds import WORLD
from mudg_core.corpus.demo.scene import SUPERSAMPLE, Scene, Stroke

Array = NDArray[np.float32]
Ink = Callable[[Colour], Colour]


def same(colour: Colour) -> Colour:
    return colour


def _polyline(draw: ImageDraw.ImageDraw, flat: list[float], colour: Colour, width: float) -> None:
    """A line with round ends; joints only matter on thick lines, and cost time."""
    draw.line(flat, fill=colour, width=max(1, round(width)), joint="curve" if width > 5 else None)
    if width > 5:
        half = width / 2
        for x, y in ((flat[0], flat[1]), (flat[-2], flat[-1])):
            draw.ellipse((x - half, y - half, x + half, y + half), fill=colour)


def paint(draw: ImageDraw.ImageDraw, strokes: Iterable[Stroke], fill: Ink = same) -> None:
    """Flat areas, no outlines."""
    for stroke in strokes:
        if stroke.width:
            _polyline(draw, stroke.flat, fill(stroke.colour), stroke.width)
        else:
            draw.polygon(stroke.flat, fill=fill(stroke.colour))


def outline(
    draw: ImageDraw.ImageDraw, strokes: Iterable[Stroke], fill: Ink, ink: Ink, width: float, detail: float
) -> None:
    """Areas with a drawn edge. Later shapes hide earlier edges, as in a drawing by hand.

    `detail` is the width of lines inside; 0 leaves details without edges but in colour.
    """
    for stroke in strokes:
        if stroke.width and not stroke.detail:
            _polyline(draw, stroke.flat, ink(stroke.colour), stroke.width + width * 0.8)
            _polyline(draw, stroke.flat, fill(stroke.colour), stroke.width - width * 0.8)
        elif stroke.width and detail:
            _polyline(draw, stroke.flat, ink(stroke.colour), detail)
        elif stroke.width:
            _polyline(draw, stroke.flat, fill(stroke.colour), stroke.width)
        else:
            draw.polygon(stroke.flat, fill=fill(stroke.colour))
            edge = detail if stroke.detail else width
            if edge:
                draw.line(stroke.flat + stroke.flat[:4], fill=ink(stroke.colour), width=round(edge))


def cutout(scene: Scene, strokes: list[Stroke]) -> tuple[Array, Array]:
    """The painted thing alone: its colours (0..255) and how much of each pixel it covers (0..1)."""
    canvas = Image.new("RGBA", (scene.canvas, scene.canvas), (*scene.body, 0))
    paint(ImageDraw.Draw(canvas), strokes)
    pixels = np.asarray(canvas.reduce(SUPERSAMPLE), dtype=np.float32)
    return pixels[:, :, :3], pixels[:, :, 3:] / 255.0


def blur(values: Array, radius: float) -> Array:
    """Blur one plane of values in 0..1."""
    plane = Image.fromarray((values.reshape(values.shape[:2]) * 255).astype(np.uint8))
    return np.asarray(plane.filter(ImageFilter.BoxBlur(radius)), dtype=np.float32)[:, :, None] / 255.0


def clouds(dice: Dice, size: int, cells: int) -> Array:
    """Smooth noise of mean 0 and spread about 1, with `cells` bumps a side."""
    coarse = Image.fromarray(dice.noise(cells, cells))
    return np.asarray(coarse.resize((size, size), Image.Resampling.BICUBIC), dtype=np.float32)[:, :, None]


def view(scene: Scene, dice: Dice, roughness: float) -> Array:
    """An out-of-focus background of the scene's place: two zones and soft blotches."""
    place, cells = WORLD.places[scene.facts.place], 10
    horizon = place.horizon + dice.uniform(-0.12, 0.12)
    rows = (np.arange(cells, dtype=np.float32) + 0.5) / cells
    below = np.clip((rows - horizon) * cells + 0.5, 0, 1)[:, None, None]
    grid = np.array(place.above, np.float32) * (1 - below) + np.array(place.below, np.float32) * below
    grid = grid + dice.noise(cells, cells, 1) * roughness + dice.noise(1, 1, 3) * 7
    coarse = Image.fromarray(np.clip(grid, 0, 255).astype(np.uint8))
    return np.asarray(coarse.resize((scene.size, scene.size), Image.Resampling.BICUBIC), dtype=np.float32)


def image(pixels: Array) -> Image.Image:
    """Values in 0..255 as a picture."""
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
