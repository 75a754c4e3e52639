"""Vehicles and buildings. Bus, van and truck share a silhouette and differ in windows and cab, boat and ship
in rigging, house and church in the steeple."""

from __future__ import annotations

from mudg_core.corpus.demo.drawing import (
    AMBER,
    CREAM,
    GLASS,
    GOLD,
    INK,
    RUBBER,
    STEEL,
    WHITE,
    WOOD,
    Pen,
    mirrored,
)


def _wheel(pen: Pen, x: float, y: float, radius: float) -> None:
    pen.oval(x, y, radius, radius, RUBBER)
    pen.oval(x, y, radius * 0.5, radius * 0.5, STEEL, detail=True)


def car(pen: Pen) -> None:
    tall = pen.vary(0.5, 0.1)
    pen.poly([(-0.62, 0.02), (-0.38, -tall), (0.26, -tall), (0.62, 0.02)], pen.body)
    pen.poly([(-0.46, 0.0), (-0.3, -tall + 0.12), (-0.06, -tall + 0.12), (-0.06, 0.0)], GLASS, detail=True)
    pen.poly([(0.04, 0.0), (0.04, -tall + 0.12), (0.22, -tall + 0.12), (0.46, 0.0)], GLASS, detail=True)
    pen.blob([(-0.98, 0.06), (-0.5, -0.02), (0.5, -0.02), (0.92, 0.1), (1.0, 0.3), (0.94, 0.44),
              (-0.94, 0.44), (-1.0, 0.28)], pen.body, patterned=True)
    pen.line([(0.0, 0.04), (0.0, 0.4)], pen.dark, 0.04)
    pen.dot(0.9, 0.2, 0.09, (255, 236, 150))
    pen.dot(-0.93, 0.18, 0.07, (210, 40, 40))
    for x in (-0.56, 0.56):
        _wheel(pen, x, 0.46, 0.25)


def bus(pen: Pen) -> None:
    pen.box(-1.0, -0.6, 1.0, 0.5, pen.body)
    pen.box(-1.0, 0.12, 1.0, 0.24, pen.light, detail=True)
    for x in (-0.9, -0.56, -0.22, 0.12):
        pen.box(x, -0.46, x + 0.27, -0.02, GLASS)
    pen.box(0.46, -0.46, 0.7, 0.42, pen.dark)
    pen.box(0.5, -0.4, 0.66, 0.1, GLASS, detail=True)
    pen.box(0.78, -0.46, 1.0, 0.0, GLASS)
    pen.dot(0.94, 0.36, 0.07, (255, 236, 150))
    for x in (-0.58, 0.28):
        _wheel(pen, x, 0.52, 0.22)


def van(pen: Pen) -> None:
    pen.poly([(-0.98, -0.58), (0.44, -0.58), (0.76, -0.08), (1.0, 0.04), (1.0, 0.46), (-0.98, 0.46)],
             pen.body, patterned=True)
    pen.poly([(0.16, -0.44), (0.4, -0.44), (0.62, -0.06), (0.16, -0.06)], GLASS)
    pen.line([(0.06, -0.54), (0.06, 0.42)], pen.dark, 0.05)
    pen.line([(-0.5, -0.54), (-0.5, 0.42)], pen.dark, 0.04)
    pen.line([(-0.1, 0.06), (0.0, 0.06)], INK, 0.06)
    pen.dot(0.92, 0.16, 0.08, (255, 236, 150))
    for x in (-0.58, 0.58):
        _wheel(pen, x, 0.48, 0.24)


def truck(pen: Pen) -> None:
    pen.box(-1.0, 0.3, 0.96, 0.44, RUBBER)
    pen.box(-1.02, -0.7, 0.3, 0.32, pen.accent)
    for x in (-0.7, -0.36, -0.02):
        pen.line([(x, -0.66), (x, 0.28)], STEEL, 0.05)
    pen.poly([(0.4, -0.42), (0.76, -0.42), (0.9, -0.04), (1.0, 0.02), (1.0, 0.42), (0.4, 0.42)], pen.body)
    pen.poly([(0.5, -0.3), (0.7, -0.3), (0.8, -0.02), (0.5, -0.02)], GLASS, detail=True)
    pen.dot(0.94, 0.22, 0.07, (255, 236, 150))
    for x in (-0.74, -0.3, 0.68):
        _wheel(pen, x, 0.5, 0.22)


def train(pen: Pen) -> None:
    for x, y, radius in ((0.44, -0.78, 0.13), (0.2, -0.9, 0.16), (-0.1, -0.92, 0.12)):
        pen.oval(x, y, radius * 1.2, radius, (226, 228, 232), detail=True)
    pen.box(-0.96, -0.6, -0.3, 0.36, pen.body)
    pen.box(-1.04, -0.72, -0.22, -0.58, pen.dark)
    pen.box(-0.82, -0.46, -0.44, -0.08, GLASS)
    pen.box(-0.3, -0.26, 0.8, 0.36, pen.body, patterned=True)
    pen.oval(0.8, 0.05, 0.13, 0.31, pen.dark)
    pen.poly([(0.4, -0.26), (0.36, -0.62), (0.66, -0.62), (0.62, -0.26)], pen.dark)
    pen.oval(0.04, -0.26, 0.16, 0.13, AMBER)
    pen.poly([(0.7, 0.36), (1.04, 0.72), (0.62, 0.72)], STEEL)
    for x in (-0.66, -0.2, 0.22):
        _wheel(pen, x, 0.5, 0.24)
    _wheel(pen, 0.58, 0.58, 0.16)
    pen.line([(-0.66, 0.5), (0.22, 0.5)], (214, 60, 50), 0.08)


def bicycle(pen: Pen) -> None:
    for x in (-0.56, 0.56):
        pen.ring(x, 0.36, 0.4, RUBBER, 0.12)
        for end in ((0.36, 0.0), (0.18, 0.31), (-0.18, 0.31)):
            pen.line([(x - end[0], 0.36 - end[1]), (x + end[0], 0.36 + end[1])], STEEL, 0.03)
    pen.line([(-0.56, 0.36), (-0.22, -0.24), (0.36, -0.24), (-0.06, 0.36), (-0.56, 0.36)], pen.body, 0.13)
    pen.line([(-0.06, 0.36), (-0.28, -0.44)], pen.body, 0.13)
    pen.line([(0.56, 0.36), (0.32, -0.52), (0.58, -0.62)], pen.body, 0.13)
    pen.line([(-0.46, -0.48), (-0.1, -0.48)], INK, 0.14)
    pen.dot(-0.06, 0.36, 0.12, INK)


def airplane(pen: Pen) -> None:
    for side in (-1, 1):
        pen.poly([(side * 0.1, -0.26), (side * 1.02, 0.26), (side * 1.02, 0.44), (side * 0.1, 0.26)],
                 pen.dark)
        pen.poly([(side * 0.06, 0.6), (side * 0.42, 0.84), (side * 0.42, 0.98), (side * 0.06, 0.88)],
                 pen.dark)
        pen.oval(side * 0.46, 0.06, 0.08, 0.16, STEEL)
    pen.blob(mirrored([(0, -1.04), (0.16, -0.72), (0.17, 0.3), (0.08, 0.96)]), pen.body, patterned=True)
    pen.poly([(-0.11, -0.76), (0.11, -0.76), (0.07, -0.9), (-0.07, -0.9)], (70, 110, 150), detail=True)
    for y in (-0.5, -0.3, -0.1, 0.1, 0.3):
        pen.dot(0.09, y, 0.04, (70, 110, 150))
        pen.dot(-0.09, y, 0.04, (70, 110, 150))


def helicopter(pen: Pen) -> None:
    pen.poly([(-0.3, -0.2), (-1.0, -0.2), (-1.0, -0.06), (-0.2, 0.2)], pen.dark)
    pen.poly([(-0.92, -0.12), (-1.08, -0.5), (-0.86, -0.5)], pen.dark)
    pen.ring(-0.98, -0.14, 0.17, STEEL, 0.05)
    pen.line([(0.16, -0.44), (0.16, -0.68)], RUBBER, 0.1)
    pen.line([(-0.76, -0.72), (1.06, -0.66)], RUBBER, 0.09)
    pen.oval(0.22, 0.02, 0.62, 0.46, pen.body, patterned=True)
    pen.blob([(0.36, -0.36), (0.7, -0.24), (0.84, 0.04), (0.36, 0.06)], GLASS)
    for x in (0.0, 0.42):
        pen.line([(x, 0.44), (x - 0.03, 0.7)], RUBBER, 0.06)
    pen.curve([(-0.36, 0.72), (0.2, 0.72), (0.7, 0.72), (0.86, 0.6)], RUBBER, 0.08)


def rocket(pen: Pen) -> None:
    pen.blob([(-0.2, 0.56), (0.2, 0.56), (0.14, 0.84), (0, 1.06), (-0.14, 0.84)], AMBER)
    pen.blob([(-0.1, 0.58), (0.1, 0.58), (0, 0.88)], (255, 232, 110), detail=True)
    for side in (-1, 1):
        pen.poly([(side * 0.28, 0.06), (side * 0.66, 0.48), (side * 0.62, 0.78), (side * 0.24, 0.56)],
                 pen.accent)
    pen.blob(mirrored([(0, -1.04), (0.3, -0.56), (0.36, 0.0), (0.26, 0.58)]), pen.body)
    pen.poly([(0, -1.04), (0.17, -0.8), (0.27, -0.58), (-0.27, -0.58), (-0.17, -0.8)], pen.accent,
             detail=True)
    pen.oval(0, -0.2, 0.2, 0.2, STEEL)
    pen.oval(0, -0.2, 0.13, 0.13, GLASS, detail=True)
    pen.line([(-0.28, 0.36), (0.28, 0.36)], pen.dark, 0.07)


def _sea(pen: Pen) -> None:
    pen.curve([(-1.04, 0.84), (-0.7, 0.72), (-0.3, 0.84), (0.1, 0.72), (0.5, 0.84), (0.8, 0.72),
               (1.04, 0.82)], (66, 134, 204), 0.12)


def sailboat(pen: Pen) -> None:
    pen.line([(0.02, -1.0), (0.02, 0.36)], WOOD, 0.08)
    pen.poly([(0.1, -0.98), (0.86, 0.26), (0.1, 0.26)], WHITE if pen.body != WHITE else pen.accent,
             patterned=True)
    pen.poly([(-0.06, -0.84), (-0.06, 0.26), (-0.66, 0.26)], pen.accent)
    pen.poly([(-0.9, 0.36), (0.92, 0.36), (0.62, 0.76), (-0.6, 0.76)], pen.body)
    _sea(pen)


def ship(pen: Pen) -> None:
    for x in (-0.3, 0.12):
        pen.box(x, -0.82, x + 0.24, -0.3, pen.body)
        pen.box(x, -0.82, x + 0.24, -0.68, INK, detail=True)
    pen.box(-0.56, -0.38, 0.56, -0.04, WHITE)
    pen.box(-0.72, -0.06, 0.66, 0.26, WHITE)
    for x in (-0.44, -0.16, 0.12, 0.38):
        pen.box(x, -0.28, x + 0.12, -0.14, (70, 110, 150), detail=True)
    pen.poly([(-1.0, 0.24), (1.06, 0.16), (0.74, 0.78), (-0.84, 0.78)], pen.body)
    for x in (-0.6, -0.3, 0.0, 0.3, 0.6):
        pen.dot(x, 0.44, 0.065, WHITE)
    _sea(pen)


def tractor(pen: Pen) -> None:
    pen.line([(0.62, -0.1), (0.62, -0.62)], RUBBER, 0.1)
    pen.box(-0.62, -0.78, 0.16, -0.66, pen.dark)
    pen.poly([(-0.54, -0.68), (0.08, -0.68), (0.18, 0.1), (-0.6, 0.1)], GLASS)
    pen.line([(-0.22, -0.66), (-0.22, 0.1)], pen.dark, 0.07)
    pen.poly([(-0.7, 0.0), (0.1, 0.0), (0.1, -0.16), (0.96, -0.1), (0.96, 0.42), (-0.7, 0.42)], pen.body)
    for y in (0.02, 0.14):
        pen.line([(0.66, y), (0.92, y)], pen.dark, 0.05)
    pen.oval(-0.42, 0.38, 0.54, 0.54, RUBBER)
    pen.oval(-0.42, 0.38, 0.28, 0.28, (246, 206, 52), detail=True)
    pen.dot(-0.42, 0.38, 0.09)
    pen.oval(0.66, 0.6, 0.32, 0.32, RUBBER)
    pen.oval(0.66, 0.6, 0.16, 0.16, (246, 206, 52), detail=True)


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
