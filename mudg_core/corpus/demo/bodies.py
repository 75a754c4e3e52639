"""Animals drawn from the side, the whole body."""

from __future__ import annotations

from mudg_core.corpus.demo.colours import AMBER, INK, WHITE, Colour, mix
from mudg_core.corpus.demo.drawing import Pen


def _legs(pen: Pen, places: tuple[float, ...], top: float, bottom: float, width: float, hoof: Colour) -> None:
    for number, x in enumerate(places):
        lean = pen.dice.uniform(-0.08, 0.08)
        colour = pen.dark if number % 2 else pen.body
        pen.poly([(x - width, top), (x + width, top), (x + lean + width * 0.7, bottom),
                  (x + lean - width * 0.7, bottom)], colour)
        pen.box(x + lean - width, bottom - 0.1, x + lean + width, bottom, hoof, detail=True)


def _equine(pen: Pen, striped: bool) -> None:
    stripe = INK
    pen.curve([(-0.62, -0.1), (-0.86, 0.05), (-0.88, 0.5)], stripe if striped else pen.dark, 0.13)
    _legs(pen, (-0.5, -0.32, 0.2, 0.38), 0.2, 0.98, 0.09, INK)
    pen.blob([(-0.66, -0.12), (-0.3, -0.22), (0.1, -0.16), (0.44, -0.24), (0.54, 0.1), (0.4, 0.36),
              (-0.1, 0.34), (-0.5, 0.36)], pen.body, patterned=True)
    pen.poly([(0.14, -0.1), (0.5, 0.16), (0.72, -0.5), (0.5, -0.84), (0.36, -0.7)], pen.body)
    pen.blob([(0.42, -0.82), (0.62, -0.84), (1.0, -0.46), (0.94, -0.3), (0.8, -0.32), (0.54, -0.48)],
             pen.body)
    pen.poly([(0.46, -0.8), (0.5, -1.02), (0.62, -0.82)], pen.body)
    pen.curve([(0.5, -0.9), (0.32, -0.62), (0.14, -0.14)], stripe if striped else pen.dark, 0.15)
    pen.dot(0.66, -0.62, 0.06)
    pen.dot(0.93, -0.4, 0.035, pen.dark)
    if striped:
        for x in (-0.52, -0.34, -0.16, 0.02):
            pen.line([(x, -0.17), (x + 0.06, 0.3)], stripe, 0.08)
        for at in (0.0, 0.2, 0.4):
            pen.line([(0.24 + at * 0.5, -0.16 - at), (0.5 + at * 0.4, 0.04 - at)], stripe, 0.07)
        for x in (-0.5, -0.32, 0.2, 0.38):
            pen.line([(x - 0.07, 0.5), (x + 0.07, 0.5)], stripe, 0.06)
            pen.line([(x - 0.07, 0.68), (x + 0.07, 0.68)], stripe, 0.06)


def horse(pen: Pen) -> None:
    _equine(pen, striped=False)


def zebra(pen: Pen) -> None:
    pen.body, pen.dark, pen.light = WHITE, (206, 206, 210), WHITE
    _equine(pen, striped=True)


def giraffe(pen: Pen) -> None:
    spot = mix(pen.dark, (120, 64, 20), 0.6)
    pen.curve([(-0.6, 0.1), (-0.76, 0.24), (-0.74, 0.46)], pen.dark, 0.07)
    _legs(pen, (-0.5, -0.34, 0.02, 0.18), 0.3, 1.0, 0.075, spot)
    pen.poly([(-0.14, 0.06), (0.3, 0.2), (0.56, -0.72), (0.34, -0.8)], pen.body)
    pen.blob([(-0.64, 0.16), (-0.3, 0.04), (0.16, -0.04), (0.32, 0.2), (0.16, 0.44), (-0.5, 0.44)], pen.body)
    for side in (0.36, 0.48):
        pen.line([(side, -0.78), (side, -0.98)], spot, 0.06)
        pen.dot(side, -0.98, 0.05, spot)
    pen.blob([(0.28, -0.8), (0.52, -0.84), (0.94, -0.64), (0.9, -0.52), (0.48, -0.58)], pen.body)
    pen.dot(0.54, -0.72, 0.05)
    for x, y in ((-0.48, 0.2), (-0.28, 0.34), (-0.24, 0.14), (-0.04, 0.28), (0.12, 0.08), (0.18, -0.14),
                 (0.28, -0.32), (0.34, -0.5), (0.22, 0.3)):
        pen.oval(x, y, 0.085, 0.075, spot, detail=True)


def elephant(pen: Pen) -> None:
    pen.curve([(-0.82, -0.1), (-0.96, 0.1), (-0.92, 0.36)], pen.dark, 0.06)
    _legs(pen, (-0.6, -0.34, 0.1, 0.34), 0.2, 0.9, 0.15, pen.light)
    pen.oval(-0.16, 0.0, 0.72, 0.54, pen.body, patterned=True)
    pen.oval(0.52, -0.22, 0.38, 0.38, pen.body)
    pen.curve([(0.8, -0.2), (0.92, 0.2), (0.86, 0.6), (1.0, 0.72)], pen.body, 0.2)
    pen.curve([(0.66, 0.12), (0.78, 0.28), (0.98, 0.24)], WHITE, 0.09)
    pen.blob([(0.36, -0.56), (0.1, -0.62), (-0.06, -0.26), (0.08, 0.16), (0.3, 0.1), (0.42, -0.2)], pen.dark)
    pen.dot(0.64, -0.28, 0.065)


def sheep(pen: Pen) -> None:
    face = (70, 62, 64)
    wool = pen.body
    for x in (-0.42, -0.2, 0.16, 0.38):
        pen.box(x - 0.07, 0.4, x + 0.07, 0.96, face)
    for x, y in ((-0.62, 0.0), (-0.4, -0.34), (0.0, -0.44), (0.4, -0.3), (0.5, 0.1), (-0.46, 0.32),
                 (0.3, 0.38),
                 (-0.08, 0.42)):
        pen.oval(x, y, 0.3, 0.28, wool)
    pen.oval(-0.04, 0.0, 0.6, 0.46, wool, detail=True, patterned=True)
    for x, y in ((-0.4, 0.0), (-0.1, -0.2), (0.14, 0.12), (-0.2, 0.24)):
        pen.curve([(x - 0.1, y), (x, y + 0.1), (x + 0.1, y)], pen.dark, 0.05)
    pen.oval(0.72, -0.22, 0.22, 0.32, face, turn=-15)
    pen.oval(0.5, -0.26, 0.17, 0.08, face, turn=30)
    pen.oval(0.66, -0.5, 0.24, 0.15, wool)
    pen.dot(0.74, -0.28, 0.065, WHITE)
    pen.dot(0.76, -0.28, 0.035)


def bird(pen: Pen) -> None:
    for x in (-0.06, 0.16):
        pen.line([(x, 0.5), (x + 0.04, 0.96), (x + 0.2, 0.96)], AMBER, 0.06)
    pen.poly([(-0.4, 0.04), (-1.02, -0.2), (-0.96, 0.16), (-0.4, 0.34)], pen.dark)
    pen.blob([(-0.58, 0.14), (-0.16, -0.22), (0.2, -0.62), (0.6, -0.6), (0.68, -0.2), (0.48, 0.38),
              (0.04, 0.62),
              (-0.38, 0.44)], pen.body)
    pen.oval(0.24, 0.24, 0.3, 0.26, pen.light, detail=True, patterned=True)
    pen.poly([(0.68, -0.42), (1.02, -0.28), (0.68, -0.18)], AMBER)
    pen.blob([(0.2, -0.14), (-0.1, -0.2), (-0.7, 0.36), (-0.1, 0.36)], pen.dark)
    pen.dot(0.46, -0.38, 0.08)


def duck(pen: Pen) -> None:
    pen.blob([(-0.96, -0.12), (-0.62, 0.12), (-0.2, 0.02), (0.16, 0.0), (0.2, -0.36), (0.6, -0.3),
              (0.66, 0.26),
              (0.36, 0.7), (-0.34, 0.74), (-0.78, 0.4)], pen.body)
    pen.oval(0.42, -0.48, 0.34, 0.34, pen.body)
    pen.blob([(0.68, -0.54), (0.86, -0.46), (1.06, -0.48), (1.06, -0.34), (0.7, -0.28)], AMBER)
    pen.blob([(-0.52, 0.18), (-0.1, 0.14), (0.24, 0.24), (-0.02, 0.5), (-0.4, 0.5)], pen.dark, patterned=True)
    pen.dot(0.5, -0.56, 0.075)
    pen.curve([(-1.0, 0.76), (-0.5, 0.7), (0.0, 0.78), (0.5, 0.7), (1.0, 0.76)], (96, 160, 214), 0.09)


def penguin(pen: Pen) -> None:
    for side in (-1, 1):
        pen.oval(side * 0.28, 0.93, 0.23, 0.1, AMBER)
        pen.oval(side * 0.62, 0.2, 0.13, 0.48, pen.body, turn=-side * 18)
    pen.blob([(0, -1.0), (0.36, -0.86), (0.42, -0.5), (0.62, 0.2), (0.46, 0.82), (0, 0.94), (-0.46, 0.82),
              (-0.62, 0.2), (-0.42, -0.5), (-0.36, -0.86)], pen.body)
    pen.blob([(0, -0.3), (0.34, -0.2), (0.42, 0.32), (0.28, 0.8), (0, 0.86), (-0.28, 0.8), (-0.42, 0.32),
              (-0.34, -0.2)], WHITE, detail=True)
    for side in (-1, 1):
        pen.oval(side * 0.17, -0.58, 0.17, 0.21, WHITE, detail=True)
        pen.dot(side * 0.14, -0.58, 0.075)
    pen.poly([(-0.15, -0.46), (0.15, -0.46), (0, -0.2)], AMBER)
    pen.poly([(-0.42, -0.36), (0.42, -0.36), (0.4, -0.22), (-0.4, -0.22)], pen.accent, detail=True)
