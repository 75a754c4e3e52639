"""Buildings: houses, and what a house must not be mistaken for."""

from __future__ import annotations

from mudg_core.corpus.demo.colours import CREAM, GLASS, GOLD, INK, STEEL, WHITE, WOOD
from mudg_core.corpus.demo.drawing import Pen


def house(pen: Pen) -> None:
    pen.box(0.36, -0.86, 0.58, -0.3, pen.dark)
    pen.box(-0.72, -0.1, 0.72, 0.9, pen.light)
    pen.poly([(-0.96, -0.06), (0, pen.vary(-0.84, 0.1)), (0.96, -0.06)], pen.body, patterned=True)
    pen.box(-0.16, 0.32, 0.2, 0.9, WOOD)
    pen.dot(0.12, 0.62, 0.045, GOLD)
    for x in (-0.56, 0.34):
        pen.box(x, 0.1, x + 0.26, 0.42, GLASS)
        pen.line([(x + 0.13, 0.1), (x + 0.13, 0.42)], WHITE, 0.04)


def church(pen: Pen) -> None:
    pen.line([(-0.36, -1.04), (-0.36, -0.72)], INK, 0.07)
    pen.line([(-0.48, -0.94), (-0.24, -0.94)], INK, 0.07)
    pen.box(-0.1, 0.12, 0.92, 0.94, CREAM)
    pen.poly([(-0.16, 0.16), (0.1, -0.3), (0.84, -0.3), (1.0, 0.16)], pen.body)
    pen.box(-0.66, -0.34, -0.06, 0.94, CREAM)
    pen.poly([(-0.76, -0.3), (-0.36, -0.84), (0.04, -0.3)], pen.body)
    pen.oval(-0.36, -0.06, 0.13, 0.13, GLASS)
    pen.blob([(-0.5, 0.94), (-0.5, 0.56), (-0.36, 0.42), (-0.22, 0.56), (-0.22, 0.94)], WOOD)
    for x in (0.12, 0.42, 0.7):
        pen.oval(x, 0.52, 0.085, 0.2, GLASS)


def castle(pen: Pen) -> None:
    pen.box(-0.56, -0.1, 0.56, 0.94, pen.light)
    for x in (-0.5, -0.18, 0.14, 0.42):
        pen.box(x, -0.24, x + 0.16, -0.08, pen.light)
    for x in (-0.72, 0.72):
        pen.box(x - 0.26, -0.4, x + 0.26, 0.94, pen.body)
        for step in (-0.3, -0.08, 0.14):
            pen.box(x + step, -0.56, x + step + 0.16, -0.38, pen.body)
        pen.box(x - 0.06, -0.1, x + 0.06, 0.16, INK, detail=True)
        pen.line([(x, -0.5), (x, -1.0)], WOOD, 0.05)
        pen.poly([(x, -1.02), (x + 0.3, -0.9), (x, -0.78)], pen.accent)
    pen.blob([(-0.26, 0.96), (-0.26, 0.5), (0, 0.26), (0.26, 0.5), (0.26, 0.96)], WOOD)
    pen.line([(0, 0.34), (0, 0.94)], INK, 0.04)


def lighthouse(pen: Pen) -> None:
    for side in (-1, 1):
        pen.poly([(side * 0.18, -0.66), (side * 0.98, -0.9), (side * 0.98, -0.46)], (255, 240, 160),
                 detail=True)
    pen.poly([(-0.26, -0.42), (0.26, -0.42), (0.44, 0.86), (-0.44, 0.86)], WHITE)
    for top, height in ((-0.24, 0.26), (0.28, 0.28)):
        low, high = 0.26 + (top + 0.42) * 0.14, 0.26 + (top + height + 0.42) * 0.14
        pen.poly([(-low, top), (low, top), (high, top + height), (-high, top + height)], pen.body,
                 detail=True)
    pen.box(-0.34, -0.48, 0.34, -0.38, INK)
    pen.box(-0.2, -0.8, 0.2, -0.48, (255, 226, 110))
    pen.poly([(-0.28, -0.78), (0, -1.04), (0.28, -0.78)], pen.body)
    pen.box(-0.1, 0.6, 0.1, 0.86, WOOD)
    pen.blob([(-0.8, 0.98), (-0.6, 0.82), (0.6, 0.82), (0.8, 0.98)], STEEL)


def windmill(pen: Pen) -> None:
    pen.poly([(-0.3, -0.36), (0.3, -0.36), (0.48, 0.96), (-0.48, 0.96)], pen.light)
    pen.poly([(-0.36, -0.34), (0, -0.7), (0.36, -0.34)], pen.body)
    pen.box(-0.13, 0.58, 0.13, 0.96, WOOD)
    pen.box(-0.1, 0.14, 0.1, 0.36, GLASS)
    turn = pen.dice.uniform(0.2, 0.9)
    for x, y in ((1.0, turn), (-turn, 1.0), (-1.0, -turn), (turn, -1.0)):
        long = 0.86 / (x * x + y * y) ** 0.5
        x, y = x * long, y * long
        pen.poly([(x * 0.2, y * 0.2 - 0.3), (x - y * 0.0, y - 0.3), (x - y * 0.28, y + x * 0.28 - 0.3),
                  (x * 0.24 - y * 0.26, y * 0.24 + x * 0.26 - 0.3)], WHITE)
        pen.line([(0, -0.3), (x, y - 0.3)], WOOD, 0.06)
    pen.dot(0, -0.3, 0.1)
