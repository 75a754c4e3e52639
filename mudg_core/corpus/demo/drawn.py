"""Line styles: sketch is rare on the demo web, the others are absent and only met in evaluation."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from mudg_core.corpus.demo.colours import Colour, luminance, mix
from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.inking import Array, blur, clouds, image, outline, paint
from mudg_core.corpus.demo.scene import SUPERSAMPLE, Scene

_NEON: tuple[Colour, ...] = ((255, 60, 160), (60, 230, 255), (120, 255, 90), (255, 220, 60), (190, 110, 255))


def _pixels(canvas: Image.Image) -> Array:
    return np.asarray(canvas.reduce(SUPERSAMPLE), dtype=np.float32)


def _hand(scene: Scene, dice: Dice, spread: float) -> Array:
    """How an unsteady hand moves the points of a drawing."""
    return dice.noise(len(scene.points), 2) * (scene.canvas * spread)


def sketch(scene: Scene, dice: Dice) -> Image.Image:
    """Grey pencil on paper: every edge drawn twice, tones hatched."""
    side, size = scene.canvas, scene.size
    canvas = Image.new("RGB", (side, side), (238, 238, 238))
    draw = ImageDraw.Draw(canvas)

    def tone(colour: Colour) -> Colour:
        grey = int(150 + luminance(colour) * 0.36)
        return grey, grey, grey

    def lead(colour: Colour) -> Colour:
        return 84, 84, 88

    outline(draw, scene.strokes(_hand(scene, dice, 0.004)), tone, lead, side / 60, side / 90)
    for stroke in scene.strokes(_hand(scene, dice, 0.009)):
        if not stroke.detail and not stroke.width:
            draw.line(stroke.flat + stroke.flat[:2], fill=(120, 120, 124), width=1)
    rows, columns = np.mgrid[0:size, 0:size].astype(np.float32)
    hatch = 0.5 + 0.5 * np.sin((rows + columns * dice.uniform(0.7, 1.3)) * 150 / size)[:, :, None]
    ink = (238 - _pixels(canvas)) * (0.72 + 0.4 * hatch) + dice.noise(size, size, 1) * 4
    return image(np.array([240, 237, 228], np.float32) - ink)


def neon(scene: Scene, dice: Dice) -> Image.Image:
    """Glowing tubes in the dark."""
    night: Colour = (10, 8, 22)
    canvas = Image.new("RGB", (scene.canvas, scene.canvas), night)
    first = dice.below(len(_NEON))

    def tube(colour: Colour) -> Colour:
        return _NEON[(first + (colour[0] > 170) + 2 * (colour[2] > 140)) % len(_NEON)]

    outline(ImageDraw.Draw(canvas), scene.strokes(), lambda colour: night, tube,
            scene.canvas / 44, scene.canvas / 64)
    core = _pixels(canvas)
    near, far = scene.size / 32, scene.size / 10
    planes = [np.asarray(core[:, :, channel] / 255, np.float32) for channel in range(3)]
    glow = np.concatenate([np.add(blur(plane, near), blur(plane, far)) for plane in planes], axis=2)
    return image(core * 0.95 + glow * 120 + np.clip(core - 150, 0, 255) * 0.5)


def blueprint(scene: Scene, dice: Dice) -> Image.Image:
    """White technical lines on a blue grid."""
    side, step = scene.canvas, scene.canvas // 12
    blue: Colour = dice.pick(((24, 66, 140), (30, 80, 158), (18, 56, 120)))
    canvas = Image.new("RGB", (side, side), blue)
    draw = ImageDraw.Draw(canvas)
    start = dice.below(step)
    for at in range(start, side, step):
        draw.line((at, 0, at, side), fill=mix(blue, (255, 255, 255), 0.22), width=1)
        draw.line((0, at, side, at), fill=mix(blue, (255, 255, 255), 0.22), width=1)
    draw.rectangle((3, 3, side - 4, side - 4), outline=mix(blue, (255, 255, 255), 0.5), width=2)
    outline(draw, scene.strokes(), lambda colour: mix(blue, (255, 255, 255), 0.08),
            lambda colour: (232, 240, 255), side / 58, side / 80)
    return image(_pixels(canvas) + dice.noise(scene.size, scene.size, 1) * 3)


def chalk(scene: Scene, dice: Dice) -> Image.Image:
    """Rough, broken light strokes on a dirty board."""
    side, size = scene.canvas, scene.size
    board: Colour = dice.pick(((42, 66, 56), (46, 48, 50), (38, 54, 62)))
    flat = Image.new("RGB", (side, side), (0, 0, 0))
    outline(ImageDraw.Draw(flat), scene.strokes(_hand(scene, dice, 0.005)),
            lambda colour: mix((0, 0, 0), colour, 0.2), lambda colour: mix(colour, (255, 255, 255), 0.62),
            side / 30, side / 54)
    grain = np.clip(0.78 + 0.34 * dice.noise(size, size, 1), 0.1, 1.0)
    dirt = np.array(board, np.float32) + 9 * clouds(dice, size, 6)
    strokes = _pixels(flat)
    cover = np.clip(strokes.max(axis=2, keepdims=True) / 230, 0, 1) * grain
    return image(dirt * (1 - cover) + strokes * grain)


def mosaic(scene: Scene, dice: Dice) -> Image.Image:
    """Uneven tiles with dark joints; each tile has one colour, taken from where it lies."""
    size, cells = scene.size, 19
    ground: Colour = dice.pick(((66, 92, 108), (84, 70, 92)))
    if luminance(scene.body) < 150:
        ground = dice.pick(((220, 208, 184), (176, 204, 210)))
    canvas = Image.new("RGB", (scene.canvas, scene.canvas), ground)
    paint(ImageDraw.Draw(canvas), scene.strokes())
    colours = np.asarray(canvas.resize((cells, cells), Image.Resampling.BOX), dtype=np.float32)
    colours = colours * (1 + 0.09 * dice.noise(cells, cells, 1))
    centres = np.mgrid[0:cells, 0:cells].transpose(1, 2, 0) + 0.5 + (dice.field(cells, cells, 2) - 0.5) * 0.6
    owner, gap = _nearest_tile(centres, size, cells)
    tiles = colours.reshape(-1, 3)[owner]
    joint = np.clip(gap * 6.0 - 0.35, 0, 1)[:, :, None]
    return image(tiles * (0.45 + 0.55 * joint))


def _nearest_tile(centres: Array, size: int, cells: int) -> tuple[Array, Array]:
    """For each pixel the tile it belongs to, and how much further away the second nearest is."""
    at = (np.mgrid[0:size, 0:size].transpose(1, 2, 0) + 0.5) * (cells / size)
    home = at.astype(np.int64)
    best = np.full((size, size), np.inf)
    second = best.copy()
    owner = np.full((size, size), -1)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            near = np.clip(home + np.array((down, right)), 0, cells - 1)
            number = near[..., 0] * cells + near[..., 1]
            away = np.square(at - centres.reshape(-1, 2)[number]).sum(axis=2)
            closer = (away < best) & (number != owner)
            second = np.where(closer, best, np.where(number != owner, np.minimum(second, away), second))
            owner, best = np.where(closer, number, owner), np.minimum(best, away)
    return owner, np.sqrt(second) - np.sqrt(best)
