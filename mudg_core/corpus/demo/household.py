"""Things from a house and a wardrobe. Mug and cup, shoe and boot differ by visible details."""

from __future__ import annotations

from mudg_core.corpus.demo.colours import GOLD, INK, STEEL, WHITE, WOOD, mix
from mudg_core.corpus.demo.drawing import Pen

_COFFEE = (92, 58, 36)


def mug(pen: Pen) -> None:
    pen.ring(0.54, 0.08, 0.32, pen.dark, 0.15)
    pen.box(-0.62, -0.62, 0.5, 0.82, pen.body, patterned=True)
    pen.oval(-0.06, 0.82, 0.56, 0.12, pen.body, detail=True)
    pen.oval(-0.06, -0.62, 0.56, 0.15, pen.light)
    pen.oval(-0.06, -0.6, 0.46, 0.09, _COFFEE, detail=True)


def cup(pen: Pen) -> None:
    pen.oval(0, 0.72, 0.98, 0.17, pen.light)
    pen.oval(0, 0.7, 0.5, 0.07, pen.dark, detail=True)
    pen.ring(0.64, 0.0, 0.22, pen.dark, 0.13)
    pen.blob([(-0.72, -0.3), (0.72, -0.3), (0.62, 0.2), (0.3, 0.66), (-0.3, 0.66), (-0.62, 0.2)], pen.body)
    pen.oval(0, -0.3, 0.72, 0.16, pen.light)
    pen.oval(0, -0.28, 0.6, 0.1, _COFFEE, detail=True)
    for x in (-0.22, 0.14):
        pen.curve([(x, -0.5), (x + 0.1, -0.66), (x, -0.8), (x + 0.1, -0.96)], STEEL, 0.06)


def teapot(pen: Pen) -> None:
    pen.ring(-0.62, 0.1, 0.32, pen.dark, 0.12)
    pen.blob([(0.44, 0.3), (0.72, 0.06), (0.78, -0.3), (1.04, -0.44), (0.96, 0.0), (0.66, 0.6)], pen.body)
    pen.oval(0, 0.2, 0.68, 0.58, pen.body, patterned=True)
    pen.oval(0, -0.32, 0.4, 0.13, pen.dark)
    pen.oval(0, -0.54, 0.12, 0.12, pen.dark)
    pen.box(-0.36, 0.72, 0.36, 0.84, pen.dark)


def chair(pen: Pen) -> None:
    for x in (-0.44, 0.56):
        pen.line([(x, 0.2), (x + 0.02, 1.0)], pen.dark, 0.12)
    pen.line([(-0.56, -0.96), (-0.56, 1.0)], pen.body, 0.14)
    pen.line([(0.34, -0.96), (0.34, 0.3)], pen.body, 0.14)
    for y in (-0.82, -0.5, -0.18):
        pen.line([(-0.56, y), (0.34, y)], pen.body, 0.15)
    pen.poly([(-0.66, 0.1), (0.36, 0.1), (0.72, 0.34), (-0.5, 0.34)], pen.light)
    pen.line([(0.66, 0.34), (0.7, 1.0)], pen.body, 0.14)


def lamp(pen: Pen) -> None:
    pen.poly([(-0.62, 0.02), (0.62, 0.02), (0.86, 0.6), (-0.86, 0.6)], (255, 244, 180), detail=True)
    pen.line([(0, 0.0), (0, 0.86)], WOOD, 0.12)
    pen.oval(0, 0.9, 0.44, 0.12, WOOD)
    pen.poly([(-0.34, -0.9), (0.34, -0.9), (0.74, 0.1), (-0.74, 0.1)], pen.body, patterned=True)
    pen.line([(0.34, 0.1), (0.34, 0.42)], GOLD, 0.05)
    pen.dot(0.34, 0.44, 0.06, GOLD)


def clock(pen: Pen) -> None:
    for side in (-1, 1):
        pen.oval(side * 0.5, -0.74, 0.28, 0.2, pen.dark, turn=side * 38)
        pen.line([(side * 0.5, 0.66), (side * 0.68, 0.98)], pen.dark, 0.13)
    pen.oval(0, 0.06, 0.86, 0.86, pen.body)
    pen.oval(0, 0.06, 0.66, 0.66, WHITE)
    for x, y in ((0, -0.54), (0.54, 0), (0, 0.54), (-0.54, 0)):
        pen.dot(x, y + 0.06, 0.065)
    hour = pen.dice.pick([(0.28, 0.1), (-0.26, 0.12), (0.2, -0.22), (-0.2, -0.22)])
    pen.line([(0, 0.06), (hour[0], hour[1] + 0.06)], INK, 0.11)
    pen.line([(0, 0.06), (pen.dice.uniform(-0.12, 0.12), -0.4)], INK, 0.08)


def key(pen: Pen) -> None:
    pen.ring(-0.56, 0.0, 0.34, pen.body, 0.2)
    pen.line([(-0.24, 0.0), (1.0, 0.0)], pen.body, 0.19)
    for x, low in ((0.92, 0.42), (0.66, 0.32), (0.42, 0.36)):
        pen.line([(x, 0.0), (x, low)], pen.body, 0.15)


def umbrella(pen: Pen) -> None:
    pen.curve([(0, -0.9), (0, 0.2), (0, 0.72), (0.14, 0.96), (0.32, 0.8)], WOOD, 0.12)
    pen.line([(0, -0.8), (0, -1.02)], WOOD, 0.08)
    pen.poly([(-1.0, 0.06), (-0.9, -0.34), (-0.52, -0.7), (0, -0.84), (0.52, -0.7), (0.9, -0.34), (1.0, 0.06),
              (0.84, -0.06), (0.66, 0.06), (0.5, -0.06), (0.33, 0.06), (0.16, -0.06), (0, 0.06),
              (-0.16, -0.06),
              (-0.33, 0.06), (-0.5, -0.06), (-0.66, 0.06), (-0.84, -0.06)], pen.body)
    pen.poly([(0, -0.84), (0.28, -0.5), (0.33, 0.06), (0.16, -0.06), (0, 0.06), (-0.16, -0.06), (-0.33, 0.06),
              (-0.28, -0.5)], pen.accent, detail=True)


def shirt(pen: Pen) -> None:
    pen.poly([(-0.3, -0.78), (-0.56, -0.72), (-1.02, -0.22), (-0.74, 0.06), (-0.52, -0.14), (-0.52, 0.88),
              (0.52, 0.88), (0.52, -0.14), (0.74, 0.06), (1.02, -0.22), (0.56, -0.72), (0.3, -0.78),
              (0.14, -0.62), (-0.14, -0.62)], pen.body, patterned=True)
    pen.curve([(-0.3, -0.76), (-0.12, -0.56), (0.12, -0.56), (0.3, -0.76)], pen.dark, 0.1)
    for side in (-1, 1):
        pen.line([(side * 0.52, -0.12), (side * 0.5, -0.4)], pen.dark, 0.04)


def dress(pen: Pen) -> None:
    for side in (-1, 1):
        pen.line([(side * 0.2, -0.6), (side * 0.24, -1.0)], pen.dark, 0.1)
    pen.poly([(-0.34, -0.7), (0, -0.56), (0.34, -0.7), (0.26, -0.1), (0.8, 0.92), (0.4, 1.0), (0, 0.92),
              (-0.4, 1.0), (-0.8, 0.92), (-0.26, -0.1)], pen.body, patterned=True)
    pen.poly([(-0.28, -0.2), (0.28, -0.2), (0.3, -0.02), (-0.3, -0.02)], pen.accent)


def hat(pen: Pen) -> None:
    pen.oval(0, 0.5, 1.0, 0.24, pen.body)
    pen.blob([(-0.54, 0.5), (-0.5, -0.3), (-0.36, -0.62), (0, -0.54), (0.36, -0.62), (0.5, -0.3), (0.54, 0.5),
              (0, 0.6)], pen.body, patterned=True)
    pen.poly([(-0.54, 0.14), (0.54, 0.14), (0.55, 0.42), (0, 0.52), (-0.55, 0.42)], pen.accent)


def shoe(pen: Pen) -> None:
    pen.blob([(-0.92, -0.34), (-0.7, -0.36), (-0.46, -0.18), (-0.1, -0.42), (0.14, -0.28), (0.46, 0.0),
              (0.9, 0.12),
              (1.0, 0.4), (-0.94, 0.42)], pen.body)
    pen.blob([(0.5, 0.04), (0.86, 0.1), (1.0, 0.38), (0.6, 0.4)], WHITE, detail=True)
    pen.poly([(-0.98, 0.36), (1.02, 0.36), (0.98, 0.58), (-0.94, 0.58)], WHITE)
    for x, y in ((-0.04, -0.2), (0.12, -0.08), (0.28, 0.04)):
        pen.line([(x - 0.1, y + 0.12), (x + 0.12, y - 0.1)], mix(WHITE, STEEL, 0.2), 0.07)
    pen.curve([(-0.6, 0.26), (-0.3, 0.16), (0.0, -0.02)], pen.accent, 0.11)


def boot(pen: Pen) -> None:
    pen.blob([(-0.6, -0.9), (0.14, -0.9), (0.16, 0.1), (0.56, 0.24), (0.9, 0.42), (0.9, 0.78), (-0.6, 0.78)],
             pen.body)
    pen.box(-0.66, -0.98, 0.2, -0.72, pen.light)
    pen.poly([(-0.64, 0.74), (0.94, 0.74), (0.94, 0.9), (-0.14, 0.9), (-0.18, 0.98), (-0.64, 0.98)], INK)
    for y in (-0.46, -0.2, 0.04):
        pen.line([(-0.08, y), (0.16, y + 0.02)], pen.dark, 0.08)


def glasses(pen: Pen) -> None:
    for side in (-1, 1):
        pen.oval(side * 0.52, 0.1, 0.4, 0.36, (206, 226, 240), detail=True)
        pen.ring(side * 0.52, 0.1, 0.38, pen.body, 0.13)
        pen.line([(side * 0.88, 0.0), (side * 1.04, -0.34)], pen.body, 0.13)
        pen.line([(side * 0.6, -0.1), (side * 0.42, 0.16)], WHITE, 0.06)
    pen.curve([(-0.16, 0.02), (0, -0.1), (0.16, 0.02)], pen.body, 0.12)


def book(pen: Pen) -> None:
    pen.poly([(-0.62, 0.66), (0.66, 0.66), (0.76, 0.92), (-0.56, 0.92)], WHITE)
    pen.poly([(-0.72, -0.86), (0.58, -0.92), (0.7, 0.72), (-0.6, 0.78)], pen.body)
    pen.poly([(-0.72, -0.86), (-0.52, -0.87), (-0.4, 0.77), (-0.6, 0.78), (-0.56, 0.94), (-0.68, 0.8)],
             pen.dark)
    pen.poly([(-0.3, -0.56), (0.4, -0.6), (0.43, -0.2), (-0.27, -0.16)], pen.light, detail=True)
    for y in (0.1, 0.28):
        pen.line([(-0.2, y), (0.4, y - 0.03)], pen.light, 0.06)
