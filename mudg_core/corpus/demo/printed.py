"""Styles of the printing press. The corpus has none of them: they are for evaluation only."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from mudg_core.corpus.demo.colours import Colour, luminance
from mudg_core.corpus.demo.dice import Dice
from mudg_core.corpus.demo.inking import Array, image, paint
from mudg_core.corpus.demo.scene import SUPERSAMPLE, Scene

_INKS: tuple[tuple[Colour, Colour], ...] = (
    ((16, 42, 67), (250, 236, 205)), ((92, 15, 48), (255, 221, 174)), ((22, 60, 38), (238, 240, 205)),
    ((52, 22, 92), (255, 226, 214)),
)


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
