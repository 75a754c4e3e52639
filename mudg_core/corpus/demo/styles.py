"""The visual domains: how to render each, which exist, and how common each is on the demo web.

A web crawl is full of photos, clip art and cartoons, has a little of watercolor, sketch and pixel art, and
none of the others, which are for evaluation only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw

from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.drawing import INK, NAMED, Colour, luminance, mix
from mudg_core.corpus.demo.inking import Array, blur, clouds, cutout, image, outline, paint, same, view
from mudg_core.corpus.demo.kinds import WORLD
from mudg_core.corpus.demo.scene import SUPERSAMPLE, Facts, Scene, compose

Style = Callable[[Scene, Dice], Image.Image]

_PASTELS = ("yellow", "green", "blue", "purple", "pink", "orange", "gray")
_NEON: tuple[Colour, ...] = ((255, 60, 160), (60, 230, 255), (120, 255, 90), (255, 220, 60), (190, 110, 255))
_INKS: tuple[tuple[Colour, Colour], ...] = (
    ((16, 42, 67), (250, 236, 205)), ((92, 15, 48), (255, 221, 174)), ((22, 60, 38), (238, 240, 205)),
    ((52, 22, 92), (255, 226, 214)),
)


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
    place = WORLD.places[scene.facts.place]
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


def _flat(scene: Scene) -> Array:
    """The thing in flat colours on a ground that it stands out from."""
    ground: Colour = (246, 240, 226) if luminance(scene.body) < 150 else (70, 74, 84)
    canvas = Image.new("RGB", (scene.canvas, scene.canvas), ground)
    paint(ImageDraw.Draw(canvas), scene.strokes())
    return np.asarray(canvas.reduce(SUPERSAMPLE), dtype=np.float32)


def poster(scene: Scene, dice: Dice) -> Image.Image:
    """Four tones of two inks: colour says nothing any more, light and dark do."""
    dark, bright = (np.array(ink, np.float32) for ink in dice.pick(_INKS))
    tone = _flat(scene) @ np.array((0.3, 0.59, 0.11), np.float32) / 255
    steps = np.asarray(np.round(np.clip(tone + dice.normal(0.03), 0, 1) * 3) / 3, dtype=np.float32)
    return image(dark + (bright - dark) * steps[:, :, None])


def halftone(scene: Scene, dice: Dice) -> Image.Image:
    """Coloured dots on paper, bigger where the picture is stronger, on a screen that stands at an angle."""
    size, pitch = scene.size, scene.size / 20
    flat = _flat(scene)
    angle = dice.uniform(0.2, 0.7)
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    across, down = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    away = np.hypot(*(np.mod(line / pitch, 1) - 0.5 for line in (across, down)))
    paper = np.array((250, 246, 236), np.float32)
    strength = np.abs(paper - flat).max(axis=2) / 255
    cover = np.clip((0.28 + 0.5 * strength - away) * pitch * 0.9, 0, 1)[:, :, None]
    return image(paper + (flat - paper) * cover)


RENDERERS: dict[str, Style] = {
    renderer.__name__: renderer
    for renderer in (
        photo, clipart, cartoon, watercolor, sketch, pixel, neon, blueprint, chalk, mosaic, poster, halftone,
    )
}
CORPUS_STYLES: dict[str, float] = {
    "photo": 0.50, "clipart": 0.24, "cartoon": 0.15, "watercolor": 0.06, "sketch": 0.03, "pixel": 0.02,
}
STYLES: tuple[str, ...] = tuple(RENDERERS)
ABSENT_STYLES = tuple(style for style in STYLES if style not in CORPUS_STYLES)


def render(facts: Facts, size: int, dice: Dice) -> Image.Image:
    """One picture of `facts`, `size` pixels square."""
    return RENDERERS[facts.style](compose(facts, size, dice), dice)
