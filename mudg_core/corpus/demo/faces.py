"""Animals drawn face on. Dog, fox and wolf, or bear and pig, differ only by a few visible details."""

from __future__ import annotations

from mudg_core.corpus.demo.colours import AMBER, CREAM, INK, ROSE, WHITE, mix
from mudg_core.corpus.demo.drawing import Pen

_SIDES = (-1, 1)


def _eyes(pen: Pen, x: float, y: float, radius: float) -> None:
    for side in _SIDES:
        pen.oval(side * x, y, radius, radius * 1.1, WHITE, detail=True)
        pen.dot(side * x, y + radius * 0.1, radius * 0.68)


def cat(pen: Pen) -> None:
    tall = pen.vary(0.98, 0.08)
    for side in _SIDES:
        pen.poly([(side * 0.82, -tall), (side * 0.12, -0.5), (side * 0.84, 0.05)], pen.body)
        pen.poly([(side * 0.7, -tall + 0.25), (side * 0.35, -0.48), (side * 0.72, -0.2)], ROSE, detail=True)
    pen.oval(0, 0.15, 0.88, 0.72, pen.body, patterned=True)
    for side in _SIDES:
        pen.oval(side * 0.36, 0.02, 0.19, 0.2, (186, 214, 92), detail=True)
        pen.oval(side * 0.36, 0.02, 0.065, 0.19, INK, detail=True)
        for tilt in (-0.06, 0.08, 0.22):
            pen.line([(side * 0.34, 0.42 + tilt * 0.4), (side * 1.06, 0.3 + tilt * 1.7)], pen.dark, 0.035)
        pen.curve([(0, 0.45), (side * 0.13, 0.56), (side * 0.28, 0.5)], INK, 0.05)
    pen.poly([(-0.12, 0.3), (0.12, 0.3), (0, 0.45)], ROSE, detail=True)


def dog(pen: Pen) -> None:
    pen.blob([(-0.6, -0.62), (0, -0.8), (0.6, -0.62), (0.68, 0.1), (0.45, 0.72), (0, 0.88),
              (-0.45, 0.72), (-0.68, 0.1)], pen.body, patterned=True)
    hang = pen.vary(0.4, 0.2)
    ear = mix(pen.dark, INK, 0.2)
    for side in _SIDES:
        pen.blob([(side * 0.42, -0.76), (side * 0.8, -0.68), (side * 1.0, -0.1), (side * 0.94, hang),
                  (side * 0.7, hang), (side * 0.62, -0.2)], ear)
    pen.oval(0, 0.42, 0.46, 0.42, pen.light, detail=True)
    pen.blob([(-0.16, 0.6), (0.16, 0.6), (0.15, 0.95), (0, 1.03), (-0.15, 0.95)], ROSE)
    pen.oval(0, 0.22, 0.21, 0.15, INK, detail=True)
    pen.line([(0, 0.34), (0, 0.58)], INK, 0.05)
    pen.curve([(-0.3, 0.5), (0, 0.6), (0.3, 0.5)], INK, 0.06)
    _eyes(pen, 0.3, -0.22, 0.15)


def fox(pen: Pen) -> None:
    for side in _SIDES:
        pen.poly([(side * 0.88, -1.0), (side * 0.1, -0.5), (side * 0.86, 0.0)], pen.body)
        pen.poly([(side * 0.88, -1.0), (side * 0.62, -0.83), (side * 0.87, -0.66)], INK, detail=True)
    pen.poly([(-0.5, -0.56), (0.5, -0.56), (0.98, 0.12), (0.5, 0.5), (0, 1.0), (-0.5, 0.5), (-0.98, 0.12)],
             pen.body, patterned=True)
    for side in _SIDES:
        pen.poly([(side * 0.98, 0.12), (side * 0.5, 0.1), (0, 0.8), (0, 1.0), (side * 0.5, 0.5)], WHITE,
                 detail=True)
        pen.oval(side * 0.34, -0.02, 0.11, 0.13, INK, detail=True)
    pen.dot(0, 0.9, 0.15)


def wolf(pen: Pen) -> None:
    for side in _SIDES:
        pen.poly([(side * 0.62, -1.0), (side * 0.14, -0.55), (side * 0.72, -0.3)], pen.dark)
        pen.poly([(side * 0.57, -0.82), (side * 0.34, -0.58), (side * 0.6, -0.44)], pen.light, detail=True)
    pen.poly([(0, -0.7), (0.55, -0.55), (0.76, -0.1), (1.0, 0.2), (0.76, 0.26), (0.84, 0.52), (0.5, 0.56),
              (0.3, 0.9), (0, 1.0), (-0.3, 0.9), (-0.5, 0.56), (-0.84, 0.52), (-0.76, 0.26), (-1.0, 0.2),
              (-0.76, -0.1), (-0.55, -0.55)], pen.body, patterned=True)
    pen.poly([(0, -0.05), (0.62, 0.2), (0.34, 0.5), (0.27, 0.86), (0, 0.97), (-0.27, 0.86), (-0.34, 0.5),
              (-0.62, 0.2)], mix(pen.body, WHITE, 0.72), detail=True)
    pen.poly([(-0.16, -0.5), (0.16, -0.5), (0.2, 0.55), (-0.2, 0.55)], pen.dark, detail=True)
    for side in _SIDES:
        pen.poly([(side * 0.56, -0.2), (side * 0.2, 0.0), (side * 0.5, 0.06)], (250, 214, 70), detail=True)
        pen.dot(side * 0.38, -0.04, 0.065)
        pen.curve([(0, 0.82), (side * 0.16, 0.86), (side * 0.26, 0.76)], INK, 0.05)
    pen.oval(0, 0.6, 0.2, 0.14, INK, detail=True)


def bear(pen: Pen) -> None:
    for side in _SIDES:
        pen.oval(side * 0.66, -0.62, pen.vary(0.31), 0.3, pen.body)
        pen.oval(side * 0.66, -0.6, 0.16, 0.16, pen.light, detail=True)
    pen.oval(0, 0.1, 0.9, 0.82, pen.body, patterned=True)
    pen.oval(0, 0.42, 0.42, 0.34, CREAM, detail=True)
    pen.oval(0, 0.26, 0.19, 0.13, INK, detail=True)
    pen.line([(0, 0.35), (0, 0.53)], INK, 0.05)
    pen.curve([(-0.2, 0.52), (0, 0.6), (0.2, 0.52)], INK, 0.06)
    _eyes(pen, 0.34, -0.12, 0.13)


def rabbit(pen: Pen) -> None:
    long = pen.vary(0.52, 0.06)
    for side in _SIDES:
        pen.oval(side * 0.33, -0.48, 0.22, long, pen.body, turn=side * 10)
        pen.oval(side * 0.33, -0.46, 0.1, long - 0.14, ROSE, turn=side * 10, detail=True)
    pen.oval(0, 0.38, 0.66, 0.6, pen.body, patterned=True)
    for side in _SIDES:
        pen.oval(side * 0.18, 0.6, 0.23, 0.18, pen.light, detail=True)
        pen.line([(side * 0.3, 0.56), (side * 0.86, 0.46)], pen.dark, 0.035)
        pen.line([(side * 0.3, 0.62), (side * 0.86, 0.68)], pen.dark, 0.035)
    pen.box(-0.13, 0.66, 0.13, 0.9, WHITE)
    pen.line([(0, 0.68), (0, 0.9)], INK, 0.04)
    pen.poly([(-0.13, 0.42), (0.13, 0.42), (0, 0.56)], (222, 90, 112), detail=True)
    _eyes(pen, 0.29, 0.2, 0.14)


def pig(pen: Pen) -> None:
    for side in _SIDES:
        pen.poly([(side * 0.92, -0.86), (side * 0.28, -0.66), (side * 0.8, -0.18)], pen.dark)
    pen.oval(0, 0.08, 0.9, 0.8, pen.body, patterned=True)
    pen.oval(0, 0.3, pen.vary(0.42, 0.1), 0.31, mix(pen.dark, ROSE, 0.5))
    for side in _SIDES:
        pen.oval(side * 0.16, 0.3, 0.085, 0.14, mix(pen.dark, INK, 0.55), detail=True)
    pen.curve([(-0.3, 0.7), (0, 0.78), (0.3, 0.7)], pen.dark, 0.06)
    _eyes(pen, 0.36, -0.2, 0.12)


def owl(pen: Pen) -> None:
    for side in _SIDES:
        pen.poly([(side * 0.62, -1.02), (side * 0.12, -0.72), (side * 0.64, -0.4)], pen.body)
    pen.blob([(0, -0.82), (0.6, -0.62), (0.74, 0.1), (0.5, 0.84), (0, 0.96), (-0.5, 0.84), (-0.74, 0.1),
              (-0.6, -0.62)], pen.body)
    pen.oval(0, 0.42, 0.44, 0.48, pen.light, detail=True, patterned=True)
    for side in _SIDES:
        pen.blob([(side * 0.66, -0.2), (side * 0.84, 0.3), (side * 0.58, 0.84), (side * 0.46, 0.3)], pen.dark)
        pen.oval(side * 0.31, -0.36, 0.32, 0.32, CREAM)
        pen.oval(side * 0.31, -0.36, 0.21, 0.21, (250, 196, 40), detail=True)
        pen.dot(side * 0.31, -0.36, 0.12)
        pen.oval(side * 0.24, 0.95, 0.17, 0.08, AMBER)
    pen.poly([(-0.12, -0.22), (0.12, -0.22), (0, 0.08)], AMBER)
    for row in range(2):
        for at in (-0.2, 0, 0.2):
            pen.curve([(at - 0.09, 0.3 + 0.25 * row), (at, 0.38 + 0.25 * row), (at + 0.09, 0.3 + 0.25 * row)],
                      pen.dark, 0.05)
