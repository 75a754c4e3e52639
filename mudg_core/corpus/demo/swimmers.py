"""Animals of water and air whose outline is not that of a four-legged body."""

from __future__ import annotations

from mudg_core.corpus.demo.colours import INK, LEAF, WHITE, mix
from mudg_core.corpus.demo.drawing import Pen


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
              (0.2, 0.32),
              (-0.4, 0.2)], pen.body, patterned=True)
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
                 pen.dark,
                 detail=True)
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
