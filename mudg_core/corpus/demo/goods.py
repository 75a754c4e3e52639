"""Things from a house, a wardrobe, a kitchen and a garden. Mug and cup, shoe and boot, apple and tomato share
a shape and differ by visible details."""

from __future__ import annotations

from mudg_core.corpus.demo.drawing import (
    CREAM,
    GOLD,
    INK,
    LEAF,
    STEEL,
    WHITE,
    WOOD,
    Colour,
    Pen,
    Point,
    mirrored,
    mix,
)

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
              (-0.16, -0.06), (-0.33, 0.06), (-0.5, -0.06), (-0.66, 0.06), (-0.84, -0.06)], pen.body)
    pen.poly(mirrored([(0, -0.84), (0.28, -0.5), (0.33, 0.06), (0.16, -0.06), (0, 0.06)]), pen.accent,
             detail=True)


def t_shirt(pen: Pen) -> None:
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
              (0.9, 0.12), (1.0, 0.4), (-0.94, 0.42)], pen.body)
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


def _shine(pen: Pen, x: float, y: float, size: float = 0.13) -> None:
    pen.oval(x, y, size, size * 1.6, mix(pen.body, WHITE, 0.6), turn=25, detail=True)


def _leaf(pen: Pen, x: float, y: float, length: float) -> None:
    pen.blob([(x, y), (x + length * 0.5, y - length * 0.4), (x + length, y - length * 0.2),
              (x + length * 0.5, y + length * 0.12)], LEAF)


def apple(pen: Pen) -> None:
    pen.blob(mirrored([(0, -0.42), (0.42, -0.6), (0.84, -0.26), (0.78, 0.4), (0.4, 0.92), (0, 0.82)]),
             pen.body, patterned=True)
    pen.curve([(0, -0.36), (0.02, -0.66), (0.12, -0.96)], WOOD, 0.1)
    _leaf(pen, 0.1, -0.66, 0.58)
    _shine(pen, -0.46, -0.1)


def tomato(pen: Pen) -> None:
    pen.blob(mirrored([(0, -0.46), (0.52, -0.56), (0.94, -0.08), (0.84, 0.48), (0.36, 0.76)]), pen.body)
    star: list[Point] = mirrored([(0, -0.62), (0.24, -0.56), (0.62, -0.62), (0.32, -0.4), (0.48, -0.1),
                                  (0.14, -0.3), (0, 0.04)])
    pen.poly(star, LEAF)
    pen.line([(0, -0.5), (0.04, -0.86)], (66, 120, 50), 0.12)
    _shine(pen, -0.56, 0.16)


def cherry(pen: Pen) -> None:
    pen.curve([(-0.46, 0.3), (-0.3, -0.4), (0.22, -0.9)], (92, 120, 50), 0.08)
    pen.curve([(0.5, 0.34), (0.46, -0.3), (0.22, -0.9)], (92, 120, 50), 0.08)
    _leaf(pen, 0.2, -0.8, 0.72)
    for x, y in ((-0.48, 0.46), (0.46, 0.54)):
        pen.oval(x, y, 0.42, 0.4, pen.body)
        _shine(pen, x - 0.15, y - 0.1, 0.08)


def strawberry(pen: Pen) -> None:
    pen.blob(mirrored([(0, -0.5), (0.5, -0.56), (0.78, -0.2), (0.46, 0.5), (0, 0.98)]), pen.body)
    for x, y in ((-0.4, -0.1), (0, -0.06), (0.4, -0.1), (-0.22, 0.2), (0.22, 0.2), (0, 0.46), (-0.18, 0.62),
                 (0.2, 0.6), (-0.5, 0.2), (0.5, 0.2)):
        pen.oval(x, y, 0.045, 0.07, (255, 226, 130), detail=True)
    pen.poly(mirrored([(0, -0.7), (0.3, -0.84), (0.3, -0.62), (0.74, -0.56), (0.36, -0.42), (0.2, -0.2),
                       (0, -0.4)]), LEAF)


_PEAR: list[Point] = mirrored([(0, -0.8), (0.26, -0.66), (0.34, -0.2), (0.62, 0.16), (0.64, 0.62),
                               (0.34, 0.94), (0, 0.98)])


def pear(pen: Pen) -> None:
    pen.blob(_PEAR, pen.body, patterned=True)
    pen.curve([(0, -0.72), (0.02, -0.9), (0.12, -1.04)], WOOD, 0.1)
    _leaf(pen, 0.06, -0.84, 0.46)
    _shine(pen, -0.3, 0.36)


def avocado(pen: Pen) -> None:
    pen.blob(_PEAR, mix(pen.body, (30, 70, 30), 0.5))
    pen.blob([(x * 0.8, y * 0.82 + 0.03) for x, y in _PEAR], (214, 222, 130), detail=True)
    pen.oval(0, 0.46, 0.31, 0.33, (134, 84, 44))
    pen.oval(-0.1, 0.36, 0.08, 0.1, (186, 136, 90), detail=True)


def banana(pen: Pen) -> None:
    pen.blob([(-0.86, -0.62), (-0.7, -0.7), (-0.5, -0.1), (0.0, 0.28), (0.56, 0.22), (0.92, -0.06),
              (0.98, 0.06), (0.66, 0.52), (0.1, 0.74), (-0.46, 0.5), (-0.8, 0.04)], pen.body)
    pen.curve([(-0.72, -0.4), (-0.54, 0.12), (-0.06, 0.5), (0.5, 0.42), (0.88, 0.1)], pen.dark, 0.06)
    pen.poly([(-0.88, -0.58), (-0.94, -0.88), (-0.76, -0.9), (-0.68, -0.64)], WOOD)
    pen.dot(0.94, 0.0, 0.08, WOOD)


def carrot(pen: Pen) -> None:
    for end in ((-0.34, -0.96), (0.0, -1.04), (0.36, -0.94)):
        pen.blob([(-0.1, -0.4), (end[0] - 0.14, end[1] + 0.16), end, (end[0] + 0.14, end[1] + 0.16),
                  (0.1, -0.4)], LEAF)
    pen.blob([(-0.34, -0.36), (0, -0.5), (0.34, -0.36), (0.3, 0.1), (0.1, 0.8), (0, 1.04), (-0.1, 0.8),
              (-0.3, 0.1)], pen.body)
    for y, x, tip in ((-0.14, -0.32, -0.06), (0.1, 0.28, 0.04), (0.34, -0.22, 0.0), (0.56, 0.16, 0.02)):
        pen.line([(x, y), (tip, y + 0.03)], pen.dark, 0.06)


def pizza(pen: Pen) -> None:
    pen.poly([(-0.8, -0.52), (0.8, -0.52), (0, 1.0)], GOLD)
    pen.blob([(-0.94, -0.56), (-0.5, -0.84), (0, -0.92), (0.5, -0.84), (0.94, -0.56), (0.86, -0.36),
              (0, -0.58), (-0.86, -0.36)], (196, 124, 56))
    for x, y in ((-0.3, -0.22), (0.32, -0.16), (0.0, 0.2), (0.04, 0.62)):
        pen.oval(x, y, 0.17 if y < 0.5 else 0.11, 0.16 if y < 0.5 else 0.1, (206, 58, 44), detail=True)
    for x, y in ((0.06, -0.32), (-0.18, 0.06), (0.16, 0.42)):
        pen.oval(x, y, 0.09, 0.045, LEAF, turn=40, detail=True)


def ice_cream(pen: Pen) -> None:
    pen.poly([(-0.46, 0.06), (0.46, 0.06), (0, 1.04)], (224, 168, 92))
    for start, stop in (((-0.26, 0.1), (0.2, 0.62)), ((0.06, 0.1), (0.3, 0.38)), ((0.26, 0.1), (-0.2, 0.62)),
                        ((-0.06, 0.1), (-0.3, 0.38))):
        pen.line([start, stop], (176, 118, 56), 0.045)
    pen.oval(-0.28, -0.12, 0.36, 0.34, pen.body)
    pen.oval(0.28, -0.12, 0.36, 0.34, pen.accent)
    pen.oval(0, -0.54, 0.4, 0.38, pen.light)
    pen.dot(0.0, -0.94, 0.13, (206, 40, 50))
    for x, y in ((-0.16, -0.62), (0.12, -0.48), (-0.04, -0.4), (0.18, -0.7)):
        pen.dot(x, y, 0.045, pen.dark)


def mushroom(pen: Pen) -> None:
    pen.blob([(-0.24, 0.0), (0.24, 0.0), (0.26, 0.6), (0.34, 0.94), (-0.34, 0.94), (-0.26, 0.6)], CREAM)
    pen.blob([(-0.94, 0.1), (-0.78, -0.46), (-0.3, -0.84), (0.3, -0.84), (0.78, -0.46), (0.94, 0.1),
              (0.4, 0.2), (-0.4, 0.2)], pen.body)
    for x, y, radius in ((-0.46, -0.26, 0.15), (0.06, -0.52, 0.16), (0.52, -0.2, 0.14), (0.02, -0.06, 0.11)):
        pen.dot(x, y, pen.vary(radius), WHITE)


def tree(pen: Pen) -> None:
    pen.poly([(-0.14, 0.1), (0.14, 0.1), (0.22, 1.0), (-0.22, 1.0)], WOOD)
    for x, y, radius in ((-0.46, 0.02, 0.38), (0.46, 0.02, 0.38), (-0.3, -0.46, 0.4), (0.32, -0.46, 0.4)):
        pen.oval(x, y, pen.vary(radius, 0.1), radius, pen.body)
    pen.oval(0, -0.2, 0.5, 0.58, pen.body, detail=True)
    for x, y in ((-0.4, -0.36), (0.2, -0.56), (0.36, -0.04), (-0.2, 0.06)):
        pen.curve([(x - 0.12, y), (x, y + 0.1), (x + 0.12, y)], pen.dark, 0.06)


def flower(pen: Pen) -> None:
    pen.curve([(0, -0.2), (0.05, 0.4), (0, 1.0)], LEAF, 0.12)
    _leaf(pen, 0.04, 0.7, 0.56)
    pen.blob([(0, 0.86), (-0.28, 0.5), (-0.56, 0.52), (-0.3, 0.8)], LEAF)
    for x, y in ((0, -0.76), (0.4, -0.56), (0.42, -0.12), (0, 0.08), (-0.42, -0.12), (-0.4, -0.56)):
        pen.oval(x, y, 0.26, 0.26, pen.body)
    pen.oval(0, -0.34, 0.27, 0.27, GOLD if pen.body[0] < 240 or pen.body[2] > 120 else WOOD)


def cactus(pen: Pen) -> None:
    body: Colour = pen.body
    pen.curve([(-0.1, 0.3), (-0.56, 0.24), (-0.6, -0.24)], body, 0.26)
    pen.curve([(0.1, 0.1), (0.56, 0.04), (0.6, -0.5)], body, 0.26)
    pen.blob([(-0.26, 0.6), (-0.28, -0.6), (0, -0.96), (0.28, -0.6), (0.26, 0.6)], body)
    for x in (-0.1, 0.1):
        pen.line([(x, -0.6), (x, 0.5)], pen.dark, 0.045)
    pen.poly([(-0.5, 0.44), (0.5, 0.44), (0.36, 1.0), (-0.36, 1.0)], (190, 96, 56))
    pen.box(-0.56, 0.4, 0.56, 0.56, (206, 112, 68))
    for x, y in ((-0.2, -0.3), (0.2, -0.1), (0.0, -0.7), (0.0, 0.1)):
        pen.dot(x, y, 0.04, mix(INK, WHITE, 0.9))
