"""The built-in descriptor pool: general visual phrases of our own writing, and readers for other pools.

A descriptor is the clause after a class name: "a photo of a boat, *which is small and red*." The pool has
to be broad rather than apt: which phrases suit a target is decided by measuring (augment.py), not here.
"""

from __future__ import annotations

import hashlib
import json
from itertools import product
from pathlib import Path

from mudg_core.errors import InputError

MAX_BYTES = 16 << 20
MAX_PHRASES = 100_000

COLOURS = [
    "red",
    "blue",
    "green",
    "yellow",
    "orange",
    "purple",
    "pink",
    "brown",
    "black",
    "white",
    "grey",
    "golden",
    "silver",
    "beige",
    "turquoise",
]
LOOKS = [
    "small",
    "large",
    "tiny",
    "huge",
    "tall",
    "short",
    "long",
    "wide",
    "narrow",
    "round",
    "flat",
    "thin",
    "thick",
    "simple",
    "detailed",
    "shiny",
    "dull",
    "bright",
    "dark",
    "pale",
    "colorful",
    "plain",
    "old",
    "new",
    "clean",
    "dirty",
    "smooth",
    "rough",
    "soft",
    "hard",
    "transparent",
    "blurry",
    "sharp",
    "funny",
    "elegant",
    "symmetrical",
    "curved",
    "pointed",
    "empty",
    "full",
    "broken",
    "wet",
    "glowing",
    "furry",
    "striped",
    "spotted",
    "checkered",
    "patterned",
]
PATTERNS = [
    "stripes",
    "spots",
    "dots",
    "a plain surface",
    "a checkered pattern",
    "a shiny surface",
    "a rough texture",
    "soft edges",
]
PARTS = [
    "two colors",
    "many colors",
    "one main color",
    "a dark outline",
    "a thick outline",
    "a thin outline",
    "a clear shape",
    "a round shape",
    "a long shape",
    "a shadow below it",
    "bright highlights",
    "a dark side",
    "rounded corners",
    "sharp corners",
    "small details",
    "a visible front",
    "two eyes",
    "four legs",
    "wings",
    "wheels",
    "windows",
    "leaves",
    "a handle",
    "a pointed top",
    "a flat base",
]
PLACES = [
    "on grass",
    "on a green meadow",
    "on sand",
    "on snow",
    "on water",
    "on a road",
    "on a table",
    "on a wooden floor",
    "in the sky",
    "in the city",
    "in a garden",
    "in a forest",
    "in a kitchen",
    "in a room",
    "at the beach",
    "at night",
    "at sunset",
    "by day",
    "in the rain",
    "in bright light",
    "in the shade",
    "on a plain background",
    "on a white background",
    "on a dark background",
    "on a colorful background",
    "on a gradient background",
]
VIEWS = [
    "from the side",
    "from the front",
    "from above",
    "from behind",
    "from far away",
    "up close",
    "in the center",
    "on the left",
    "on the right",
    "at an angle",
    "in a corner",
    "upside down",
]
MANNERS = [
    "drawn with a pencil",
    "drawn with thick lines",
    "drawn in outline",
    "painted in watercolor",
    "painted in bright colors",
    "shown as a cartoon",
    "shown as clip art",
    "shown as an icon",
    "shown as pixel art",
    "shown in a photo",
    "shown in a sketch",
    "shown in flat colors",
    "printed on paper",
    "drawn by hand",
    "drawn by a child",
    "seen in black and white",
    "made of simple shapes",
    "made of small squares",
    "taken with a camera",
    "shown in an illustration",
]
COUNTS = [
    "alone",
    "next to another one",
    "part of a pair",
    "part of a group",
    "the only thing in the picture",
    "partly hidden",
]


def built_in() -> tuple[str, ...]:
    """All descriptors of the built-in pool, each once, in a fixed order."""
    phrases = [
        *(f"which is {word}" for word in (*COLOURS, *LOOKS)),
        *(f"which has {thing}" for thing in (*PATTERNS, *PARTS)),
        *(f"which is seen {view}" for view in VIEWS),
        *(f"which stands {place}" for place in PLACES),
        *(f"which is {way}" for way in (*MANNERS, *COUNTS)),
        *(f"which is {look} and {colour}" for look, colour in product(LOOKS[:8], COLOURS[:10])),
        *(f"which is {colour} and has {pattern}" for colour, pattern in product(COLOURS[:10], PATTERNS[:4])),
        *(f"which is {look} and stands {place}" for look, place in product(LOOKS[:6], PLACES[:12])),
        *(f"which is {manner}, {view}" for manner, view in product(MANNERS[:9], VIEWS[:7])),
    ]
    return tuple(dict.fromkeys(phrases))


def pool_digest(file: str | Path | None) -> str:
    """Which phrases there are to choose from; a change of the built-in pool counts as any other."""
    phrases = read_pool(file) if file else built_in()
    return hashlib.sha256("\n".join(phrases).encode()).hexdigest()


def read_pool(path: str | Path) -> tuple[str, ...]:
    """Descriptors from a file: a JSON object class -> phrases (Menon and Vondrick's form), or one a line."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                what=f"the descriptor file is larger than {MAX_BYTES >> 20} MiB", where=str(path)
            )
        text = path.read_text(encoding="utf-8-sig")
        phrases = _phrases(json.loads(text)) if path.suffix == ".json" else text.splitlines()
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError, TypeError) as error:
        raise InputError(
            what=f"the descriptor file cannot be read: {error}",
            where=str(path),
            fix='give {"class": ["phrase", ...]} as .json, or UTF-8 text with one phrase a line',
        ) from error
    pool = tuple(dict.fromkeys(as_clause(phrase) for phrase in phrases if phrase.strip()))
    if not 1 <= len(pool) <= MAX_PHRASES:
        raise InputError(what=f"{len(pool)} descriptors; 1 to {MAX_PHRASES} are possible", where=str(path))
    return pool


def as_clause(phrase: str) -> str:
    """The phrase as a clause that can follow a class name."""
    phrase = " ".join(phrase.split()).rstrip(".")
    if phrase.startswith("which "):
        return phrase
    if phrase.startswith(("has", "often", "typically", "may", "can")):
        return f"which {phrase}"
    if phrase.startswith(("a", "used")):
        return f"which is {phrase}"
    return f"which has {phrase}"


def _phrases(tree: object) -> list[str]:
    if not isinstance(tree, dict) or not all(isinstance(value, list) for value in tree.values()):
        raise TypeError("not an object of lists")
    phrases = [phrase for value in tree.values() for phrase in value]
    if not all(isinstance(phrase, str) for phrase in phrases):
        raise TypeError("a phrase is not text")
    return phrases
