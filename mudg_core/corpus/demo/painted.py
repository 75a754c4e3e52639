"""The styles that a web crawl is full of (photo, clip art, cartoon) and those it has a little of."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from mudg_core.corpus.demo.colours import INK, NAMED, Colour, luminance, mix
from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.inking import blur, clouds, cutout, image, outline, paint, same, view
from mudg_core.corpus.demo.places import PLACES
from mudg_core.corpus.demo.scene import SUPERSAMPLE, Scene

_PASTELS = ("yellow", "green", "blue", "purple", "pink", "orange", "gray")


def photo(scene: Scene, dice: Dice) -> Image.Image:
    """Shading from a light at one side, a soft shadow, an unsharp background, grain and a colour cast."""
    colour, cover = cutout(scene, scene.strokes())
    size, soft = scene.size, blur(cover, scene.size / 11)
    step = max(2, size // 16)
    light = dice.pick((-1, 1))
    slope = np.roll(soft, (step, step * light), (0, 1)) - np.roll(soft, (-step, -step * light), (0, 1))
    lit = colour * (0.97 - 0.55 * slope) + np.clip(-slope, 0, 1) * 26
    ground = view(scene, dice, 17.0)
    shadow = np.roll(blur(cover, size / 16), (size // 16, size // 20 * -light), (0, 1))
    ground = ground * (1 - 0.42 * shadow)
    pixels = ground + (lit - ground) * cover
    cast = 1.0 + dice.noise(1, 1, 3) * 0.04 + dice.normal(0.07)
    return image(pixels * cast + dice.noise(size, size, 1) * dice.uniform(1.5, 5.0))


def _paper(scene: Scene, dice: Dice) -> Colour:
    """A plain background that the thing stands out from."""
    bright = luminance(scene.body)
    if bright <= 90 or (bright < 205 and dice.chance(0.6)):
        return (255, 255, 255)
    return mix(NAMED[dice.pick(_PASTELS)], (255, 255, 255), 0.35)


def _off_white(colour: Colour) -> Colour:
    """White parts must not vanish on white paper."""
    return (214, 217, 222) if luminance(colour) > 232 else colour


def clipart(scene: Scene, dice: Dice) -> Image.Image:
    """Flat colours on a plain background."""
    paper = _paper(scene, dice)
    canvas = Image.new("RGB", (scene.canvas, scene.canvas), paper)
    paint(ImageDraw.Draw(canvas), scene.strokes(), _off_white if paper == (255, 255, 255) else same)
    return canvas.reduce(SUPERSAMPLE)


def _vivid(colour: Colour) -> Colour:
    """The colour with its saturation pushed, greys left alone."""
    middle = sum(colour) / 3
    red, green, blue = (int(max(0, min(255, middle + (part - middle) * 1.4 + 8))) for part in colour)
    return red, green, blue


def cartoon(scene: Scene, dice: Dice) -> Image.Image:
    """Thick black outlines, saturated colours, a simple set."""
    side = scene.canvas
    place = PLACES[scene.facts.place]
    plain = scene.facts.place == "plain"
    above = mix(NAMED[dice.pick(_PASTELS)], (255, 255, 255), 0.5) if plain else _vivid(place.above)
    canvas = Image.new("RGB", (side, side), above)
    draw = ImageDraw.Draw(canvas)
    if not plain:
        top = side * (place.horizon + dice.uniform(-0.08, 0.08))
        draw.ellipse((-side * 0.4, top, side * 1.4, top + side * 2), fill=_vivid(place.below))
        if luminance(place.above) > 140:
            for x in (dice.uniform(0, 0.4), dice.uniform(0.6, 1.0)):
                draw.ellipse((side * (x - 0.13), side * 0.07, side * (x + 0.13), side * 0.17), fill="white")
    width = scene.canvas * 0.032
    outline(draw, scene.strokes(), _vivid, lambda colour: INK, width, 0)
    return canvas.reduce(SUPERSAMPLE)


def watercolor(scene: Scene, dice: Dice) -> Image.Image:
    """Transparent paint: washed colours that pool at the edges of wet areas and show the paper."""
    size = scene.size
    moved = np.repeat(dice.noise(len(scene.points) // 3 + 1, 2), 3, axis=0)[: len(scene.points)]
    colour, cover = cutout(scene, scene.strokes(moved * scene.canvas * 0.007))
    wet = blur(cover, size / 64)
    pool = np.clip(wet - blur(cover, size / 18), 0, 1)
    load = np.clip(0.74 + 0.2 * clouds(dice, size, 7) + 0.9 * pool, 0.15, 1.2) * wet
    paper = 246 + np.array([3, 0, -9], np.float32) + 5 * clouds(dice, size, size // 2)
    if scene.facts.place != "plain":
        wash = np.clip(0.36 + 0.3 * clouds(dice, size, 5), 0, 0.75) * (1 - wet)
        paper = paper * (1 - wash * (1 - view(scene, dice, 9.0) / 255))
    pale = 255 - (255 - colour) * 0.9 - pool * 110
    return image(paper * (1 - load * (1 - pale / 255)))


def pixel(scene: Scene, dice: Dice) -> Image.Image:
    """Few big pixels and few colours, with the dark rim that pixel artists draw."""
    canvas = Image.new("RGB", (scene.canvas, scene.canvas), _paper(scene, dice))
    rim = scene.canvas / 40
    outline(ImageDraw.Draw(canvas), scene.strokes(), _vivid, lambda colour: mix(colour, INK, 0.75), rim, 0)
    grid = dice.pick((24, 28, 32))
    small = np.asarray(canvas.resize((grid, grid), Image.Resampling.BOX), dtype=np.float32)
    few = np.asarray(np.round(small / 51.0) * 51.0, np.float32)
    return image(few).resize((scene.size, scene.size), Image.Resampling.NEAREST)
