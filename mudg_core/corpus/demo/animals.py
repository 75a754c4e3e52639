"""Animals: drawn face on (dog, fox and wolf, or bear and pig, differ only by a few visible details), from the
side, and those of water and air whose outline is not that of a four-legged body."""

from __future__ import annotations

from mudg_core.corpus.demo.drawing import AMBER, CREAM, INK, LEAF, ROSE, WHITE, Colour, Pen, mirrored, mix

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
    pen.blob([(-0.6, -0.62), (0, -0.8), (0.6, -0.62), (0.68, 0.1), (0.45, 0.72), (0, 0.88), (-0.45, 0.72),
              (-0.68, 0.1)], pen.body, patterned=True)
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
    pen.poly(mirrored([(0, -0.7), (0.55, -0.55), (0.76, -0.1), (1.0, 0.2), (0.76, 0.26), (0.84, 0.52),
                       (0.5, 0.56), (0.3, 0.9), (0, 1.0)]), pen.body, patterned=True)
    pen.poly(mirrored([(0, -0.05), (0.62, 0.2), (0.34, 0.5), (0.27, 0.86), (0, 0.97)]),
             mix(pen.body, WHITE, 0.72), detail=True)
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
    pen.blob(mirrored([(0, -0.82), (0.6, -0.62), (0.74, 0.1), (0.5, 0.84), (0, 0.96)]), pen.body)
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
                 (0.3, 0.38), (-0.08, 0.42)):
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
              (0.04, 0.62), (-0.38, 0.44)], pen.body)
    pen.oval(0.24, 0.24, 0.3, 0.26, pen.light, detail=True, patterned=True)
    pen.poly([(0.68, -0.42), (1.02, -0.28), (0.68, -0.18)], AMBER)
    pen.blob([(0.2, -0.14), (-0.1, -0.2), (-0.7, 0.36), (-0.1, 0.36)], pen.dark)
    pen.dot(0.46, -0.38, 0.08)


def duck(pen: Pen) -> None:
    pen.blob([(-0.96, -0.12), (-0.62, 0.12), (-0.2, 0.02), (0.16, 0.0), (0.2, -0.36), (0.6, -0.3),
              (0.66, 0.26), (0.36, 0.7), (-0.34, 0.74), (-0.78, 0.4)], pen.body)
    pen.oval(0.42, -0.48, 0.34, 0.34, pen.body)
    pen.blob([(0.68, -0.54), (0.86, -0.46), (1.06, -0.48), (1.06, -0.34), (0.7, -0.28)], AMBER)
    pen.blob([(-0.52, 0.18), (-0.1, 0.14), (0.24, 0.24), (-0.02, 0.5), (-0.4, 0.5)], pen.dark, patterned=True)
    pen.dot(0.5, -0.56, 0.075)
    pen.curve([(-1.0, 0.76), (-0.5, 0.7), (0.0, 0.78), (0.5, 0.7), (1.0, 0.76)], (96, 160, 214), 0.09)


def penguin(pen: Pen) -> None:
    for side in (-1, 1):
        pen.oval(side * 0.28, 0.93, 0.23, 0.1, AMBER)
        pen.oval(side * 0.62, 0.2, 0.13, 0.48, pen.body, turn=-side * 18)
    pen.blob(mirrored([(0, -1.0), (0.36, -0.86), (0.42, -0.5), (0.62, 0.2), (0.46, 0.82), (0, 0.94)]),
             pen.body)
    pen.blob(mirrored([(0, -0.3), (0.34, -0.2), (0.42, 0.32), (0.28, 0.8), (0, 0.86)]), WHITE, detail=True)
    for side in (-1, 1):
        pen.oval(side * 0.17, -0.58, 0.17, 0.21, WHITE, detail=True)
        pen.dot(side * 0.14, -0.58, 0.075)
    pen.poly([(-0.15, -0.46), (0.15, -0.46), (0, -0.2)], AMBER)
    pen.poly([(-0.42, -0.36), (0.42, -0.36), (0.4, -0.22), (-0.4, -0.22)], pen.accent, detail=True)


def fish(pen: Pen) -> None:
    pen.poly([(-0.46, 0.0), (-0.98, -0.5), (-0.82, 0.0), (-0.98, 0.5)], pen.dark)
    pen.blob([(-0.2, -0.36), (0.1, -0.76), (0.44, -0.4)], pen.dark)
    pen.blob([(0.0, 0.36), (0.1, 0.68), (0.34, 0.36)], pen.dark)
    pen.oval(0.2, 0.0, 0.76, pen.vary(0.46, 0.1), pen.body, patterned=True)
    pen.curve([(0.5, -0.38), (0.4, 0.0), (0.5, 0.38)], pen.dark, 0.06)
    pen.blob([(0.3, 0.02), (0.0, 0.2), (0.2, 0.26)], pen.dark, detail=True)
    pen.oval(0.66, -0.12, 0.12, 0.12, WHITE, detail=True)
    pen.dot(0.69, -0.12, 0.065)
    pen.curve([(0.94, 0.1), (0.82, 0.14), (0.76, 0.22)], INK, 0.05)


def shark(pen: Pen) -> None:
    pen.poly([(-0.7, -0.04), (-1.02, -0.62), (-0.92, -0.04), (-1.0, 0.36)], pen.dark)
    pen.poly([(-0.24, -0.28), (-0.16, -0.86), (0.2, -0.28)], pen.dark)
    pen.blob([(-0.84, -0.06), (-0.3, -0.3), (0.3, -0.34), (0.8, -0.2), (1.04, 0.02), (0.76, 0.22),
              (0.2, 0.32), (-0.4, 0.2)], pen.body, patterned=True)
    pen.blob([(-0.5, 0.12), (0.1, 0.14), (0.62, 0.1), (0.74, 0.22), (0.2, 0.32), (-0.36, 0.22)], WHITE,
             detail=True)
    pen.poly([(0.12, 0.14), (-0.24, 0.66), (0.34, 0.26)], pen.dark)
    pen.poly([(0.58, 0.1), (0.94, 0.06), (0.78, 0.2)], INK, detail=True)
    for x in (0.64, 0.73, 0.82):
        pen.poly([(x, 0.09), (x + 0.08, 0.08), (x + 0.04, 0.16)], WHITE, detail=True)
    for x in (0.28, 0.36, 0.44):
        pen.line([(x, -0.12), (x - 0.03, 0.08)], pen.dark, 0.04)
    pen.dot(0.7, -0.1, 0.06)


def turtle(pen: Pen) -> None:
    skin = mix(pen.body, (180, 200, 110), 0.6)
    pen.blob([(0.5, 0.22), (0.74, -0.22), (0.98, -0.2), (1.02, 0.06), (0.78, 0.34), (0.6, 0.46)], skin)
    pen.poly([(-0.66, 0.34), (-1.0, 0.5), (-0.6, 0.5)], skin)
    for x in (-0.48, 0.38):
        pen.blob([(x - 0.18, 0.34), (x + 0.18, 0.34), (x + 0.22, 0.78), (x - 0.16, 0.78)], skin)
    pen.blob([(-0.82, 0.4), (-0.66, -0.16), (-0.1, -0.54), (0.46, -0.18), (0.66, 0.4), (0.0, 0.5)], pen.body)
    for x in (-0.42, -0.08, 0.26):
        pen.poly([(x - 0.14, 0.02), (x, -0.2), (x + 0.14, 0.02), (x + 0.08, 0.24), (x - 0.08, 0.24)],
                 pen.dark, detail=True)
    pen.curve([(-0.8, 0.36), (-0.1, 0.46), (0.64, 0.36)], pen.dark, 0.08)
    pen.dot(0.88, -0.06, 0.055)


def butterfly(pen: Pen) -> None:
    for side in (-1, 1):
        pen.blob([(side * 0.06, -0.1), (side * 0.3, -0.74), (side * 0.86, -0.9), (side * 1.0, -0.44),
                  (side * 0.6, 0.06)], pen.body, patterned=True)
        pen.blob([(side * 0.06, 0.02), (side * 0.6, 0.1), (side * 0.78, 0.5), (side * 0.46, 0.86),
                  (side * 0.14, 0.44)], pen.dark)
        pen.oval(side * 0.66, -0.52, 0.17, 0.17, pen.accent, detail=True)
        pen.oval(side * 0.46, 0.46, 0.13, 0.13, pen.accent, detail=True)
        pen.curve([(0, -0.5), (side * 0.14, -0.82), (side * 0.32, -0.96)], INK, 0.045)
    pen.oval(0, 0.02, 0.1, 0.56, INK)


def frog(pen: Pen) -> None:
    for side in (-1, 1):
        pen.blob([(side * 0.4, 0.3), (side * 0.98, 0.3), (side * 0.96, 0.86), (side * 0.4, 0.8)], pen.dark)
        pen.oval(side * 0.68, 0.88, 0.32, 0.1, pen.body)
    pen.oval(0, 0.42, 0.62, 0.5, pen.body)
    pen.oval(0, 0.6, 0.38, 0.34, pen.light, detail=True)
    pen.oval(0, -0.14, 0.82, 0.48, pen.body, patterned=True)
    for side in (-1, 1):
        pen.oval(side * 0.48, -0.6, 0.3, 0.3, pen.body)
        pen.oval(side * 0.48, -0.62, 0.2, 0.2, WHITE, detail=True)
        pen.oval(side * 0.48, -0.6, 0.12, 0.12, INK, detail=True)
        pen.dot(side * 0.1, -0.2, 0.035, pen.dark)
    pen.curve([(-0.62, -0.02), (-0.3, 0.16), (0.3, 0.16), (0.62, -0.02)], mix(INK, LEAF, 0.3), 0.07)
