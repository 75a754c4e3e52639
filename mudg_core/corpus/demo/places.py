"""Where a thing is: the paint of a background and the words for it."""

from __future__ import annotations

from dataclasses import dataclass

from mudg_core.corpus.demo.colours import Colour


@dataclass(frozen=True)
class Place:
    """Colours above and below the horizon (0: top of the picture, 1: bottom), and phrases."""

    above: Colour
    below: Colour
    horizon: float
    phrases: tuple[str, ...]
    descriptor: str


PLACES: dict[str, Place] = {
    "meadow": Place((160, 204, 238), (104, 160, 76), 0.5,
                    ("on a green meadow", "on grass", "in a field"), "which stands on grass"),
    "forest": Place((70, 104, 66), (92, 78, 54), 0.7,
                    ("in a forest", "in the woods"), "which is in a forest"),
    "beach": Place((150, 208, 236), (228, 206, 158), 0.55,
                   ("on a beach", "on the sand"), "which is on a sandy beach"),
    "sea": Place((178, 212, 238), (44, 104, 160), 0.55,
                 ("by the sea", "on blue water"), "which is on the water"),
    "snow": Place((190, 208, 226), (240, 244, 250), 0.5,
                  ("in the snow", "in winter"), "which stands in the snow"),
    "street": Place((176, 178, 186), (112, 112, 116), 0.6,
                    ("on a street", "in the city"), "which is on a street"),
    "desert": Place((238, 214, 168), (208, 160, 96), 0.5,
                    ("in the desert", "on dry sand"), "which is in a desert"),
    "room": Place((222, 208, 188), (160, 116, 78), 0.68,
                  ("in a room", "indoors"), "which is indoors"),
    "table": Place((112, 120, 128), (168, 122, 78), 0.6,
                   ("on a wooden table", "on a table"), "which lies on a wooden table"),
    "night": Place((24, 28, 58), (38, 44, 60), 0.65,
                   ("at night", "in the dark"), "which is seen at night"),
    "sky": Place((110, 172, 232), (186, 218, 244), 0.5,
                 ("in the blue sky", "against the sky"), "which is against the sky"),
    "studio": Place((226, 226, 224), (206, 206, 206), 0.7,
                    ("in a studio", "on a plain background", "isolated"), "which is on a plain background"),
    "plain": Place((250, 250, 248), (250, 250, 248), 0.5,
                   ("on a plain background", "isolated", "with no background"),
                   "which is on a plain background"),
}

_OUTDOORS = ("meadow", "forest", "beach", "snow", "desert", "night", "studio")
HABITATS: dict[str, tuple[str, ...]] = {
    "animal": (*_OUTDOORS, "meadow", "room"),
    "vehicle": ("street", "street", "meadow", "night", "desert", "snow", "studio"),
    "food": ("table", "table", "room", "studio", "meadow"),
    "plant": ("meadow", "meadow", "forest", "room", "studio", "night"),
    "building": ("meadow", "snow", "street", "night", "desert", "beach"),
    "household": ("room", "table", "table", "studio"),
    "clothes": ("room", "studio", "studio", "table", "street"),
}
SPECIAL_HABITATS: dict[str, tuple[str, ...]] = {
    "fish": ("sea", "sea", "studio"), "shark": ("sea",), "duck": ("sea", "meadow"),
    "sailboat": ("sea", "sea", "beach"), "ship": ("sea", "sea", "night"),
    "lighthouse": ("sea", "beach", "night"),
    "airplane": ("sky", "sky", "night"), "helicopter": ("sky", "sky", "night"), "rocket": ("sky", "night"),
    "penguin": ("snow", "snow", "sea"), "bird": ("sky", "forest", "meadow"),
    "butterfly": ("meadow", "sky", "forest"),
}
