"""The named colours of the demo world: the words in captions and the paint in pictures agree here."""

from __future__ import annotations

Colour = tuple[int, int, int]

NAMED: dict[str, Colour] = {
    "red": (214, 48, 44),
    "orange": (238, 134, 38),
    "yellow": (246, 206, 52),
    "green": (76, 166, 72),
    "blue": (52, 108, 206),
    "purple": (132, 74, 176),
    "pink": (242, 150, 176),
    "brown": (138, 90, 52),
    "white": (242, 240, 234),
    "gray": (146, 148, 154),
    "black": (52, 50, 56),
}

INK: Colour = (32, 30, 36)
WHITE: Colour = (250, 249, 245)
CREAM: Colour = (246, 232, 204)
ROSE: Colour = (236, 140, 150)
LEAF: Colour = (74, 150, 62)
WOOD: Colour = (128, 84, 48)
STEEL: Colour = (176, 182, 190)
GLASS: Colour = (178, 216, 236)
RUBBER: Colour = (50, 50, 56)
GOLD: Colour = (236, 190, 60)
AMBER: Colour = (244, 150, 40)


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """`first` with `share` of `second` in it."""
    keep = 1.0 - share
    return (
        int(first[0] * keep + second[0] * share),
        int(first[1] * keep + second[1] * share),
        int(first[2] * keep + second[2] * share),
    )


def luminance(colour: Colour) -> float:
    """Perceived brightness in 0..255."""
    return 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2]
