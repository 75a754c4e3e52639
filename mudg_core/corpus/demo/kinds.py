"""What the demo world is made of: kinds of things, places and words, from `world.yaml`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mudg_core.corpus.demo import animals, goods, vehicles
from mudg_core.corpus.demo.drawing import Colour, Pen
from mudg_core.yaml_text import load_packaged

Words = tuple[str, ...]
WordsBy = dict[str, Words]

_DRAWINGS = vars(animals) | vars(goods) | vars(vehicles)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Kind(_Part):
    """A kind of thing: how it is drawn, coloured and named."""

    name: str
    group: str
    draw: Callable[[Pen], None]
    colours: Words = ()
    patterned: bool = False
    view: str = "front"
    synonyms: Words
    hypernyms: Words
    plural: str
    innate: str | None = None
    parts: Words


class Place(_Part):
    """Where a thing is: colours above and below the horizon (0: top of the picture, 1: bottom), and words."""

    above: Colour
    below: Colour
    horizon: float
    phrases: Words
    descriptor: str


class TargetWords(_Part):
    description: str
    classes: Words
    domains: Words


class World(_Part):
    """The file, with each kind completed by what its group has."""

    kinds: tuple[Kind, ...]
    places: dict[str, Place]
    habitats: WordsBy
    special_habitats: WordsBy
    templates: dict[str, float]
    style_words: WordsBy
    prefixes: Words
    suffixes: Words
    empty_captions: Words
    hub_captions: Words
    banner_captions: Words
    targets: dict[str, TargetWords]


def _load() -> World:
    body = load_packaged(Path(__file__).with_name("world.yaml"))
    palettes, hypernyms = body.pop("palettes"), body.pop("hypernyms")
    for name, kind in body["kinds"].items():
        colours = kind.get("colours", ())
        kind |= {"name": name, "hypernyms": hypernyms[kind["group"]]}
        kind.setdefault("plural", f"{name}s")
        kind["colours"] = palettes[colours] if isinstance(colours, str) else colours
        kind["draw"] = _DRAWINGS[name.replace(" ", "_").replace("-", "_")]
    return World.model_validate(body | {"kinds": tuple(body["kinds"].values())})


WORLD = _load()
KINDS = WORLD.kinds
KIND_BY_NAME = {kind.name: kind for kind in KINDS}
_SHARES = {kind.name: 1.0 / (rank + 6.0) for rank, kind in enumerate(KINDS)}
# Long-tailed, in the order of the file: the first is met eleven times as often as the last.
KIND_SHARES: dict[str, float] = {name: share / sum(_SHARES.values()) for name, share in _SHARES.items()}
