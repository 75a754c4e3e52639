"""Phrases that users bring: pools of descriptors, descriptors by class, and whole prompts by class.

JSON, class -> phrases     Menon and Vondrick's form, "two legs": one pool, or each class its own
JSON, class -> prompts     CuPL's form: "A cat is a small, furry animal."
text                       one phrase a line: a pool
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from mudg_core.errors import InputError
from mudg_core.target import vocabulary as v
from mudg_core.target.class_names import same
from mudg_core.target.user_files import MAX_LINE, listed, parse_json, read_text

MAX_BYTES = 16 << 20
MAX_PHRASES = 100_000
FIX = 'give {"class": ["phrase", ...]} as .json, or UTF-8 text with one phrase a line'
FIX_BY_CLASS = 'give {"class": ["phrase", ...]} with every class of the target'


def read_pool(path: str | Path) -> tuple[str, ...]:
    """The descriptors of a file, each once, in its order."""
    text, where = read_text(path, "descriptor file", MAX_BYTES, FIX), str(path)
    if Path(path).suffix.lower() == ".json":
        phrases = [phrase for _, listed_there in _by_class(text, where) for phrase in listed_there]
    else:
        phrases = [phrase for phrase, place in listed(text, where) if _shown(phrase, place)]
    pool = tuple(dict.fromkeys(as_clause(phrase) for phrase in phrases))
    if not 1 <= len(pool) <= MAX_PHRASES:
        raise InputError(what=f"{len(pool)} descriptors; 1 to {MAX_PHRASES} are possible", where=where)
    return pool


def read_by_class(path: str | Path, classes: Sequence[str]) -> list[list[str]]:
    """What a file says about each class, in the order of `classes`; it may speak of others too."""
    where = str(path)
    said = {same(name): phrases for name, phrases in _by_class(_json_text(path), where)}
    missing = [name for name in classes if not said.get(same(name))]
    if missing:
        some = ", ".join(repr(name) for name in missing[:5]) + (" …" if len(missing) > 5 else "")
        raise InputError(
            what=f"nothing is said about {len(missing)} of {len(classes)} classes: {some}",
            where=where,
            fix=FIX_BY_CLASS,
        )
    return [said[same(name)] for name in classes]


def speaks_of(path: str | Path, classes: Sequence[str]) -> bool:
    """Whether a file has something to say about every one of these classes."""
    if Path(path).suffix.lower() != ".json":
        return False
    said = {same(name) for name, phrases in _by_class(_json_text(path), str(path)) if phrases}
    return all(same(name) in said for name in classes)


def pool_digest(phrases: Sequence[str]) -> str:
    """Which phrases there are to choose from; a change of the built-in pool counts as any other."""
    return hashlib.sha256("\n".join(phrases).encode()).hexdigest()


def subsample(pool: Sequence[str], count: int | None, seed: int) -> tuple[str, ...]:
    """At most `count` of the pool, in its order."""
    if count is None or count >= len(pool):
        return tuple(pool)
    chosen = np.random.default_rng(seed).choice(len(pool), size=count, replace=False)
    return tuple(pool[i] for i in np.sort(chosen))


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


def _json_text(path: str | Path) -> str:
    return read_text(path, "file of phrases by class", MAX_BYTES, FIX_BY_CLASS)


def _by_class(text: str, where: str) -> Iterator[tuple[str, list[str]]]:
    """(class, phrases) of a JSON object, blank phrases left out."""
    tree = parse_json(text, where, FIX)
    if not isinstance(tree, dict):
        raise InputError(what="not an object of lists", where=where, fix=FIX)
    for name, phrases in tree.items():
        if not isinstance(phrases, list):
            raise InputError(what=f"{name[:80]!r} has no list", where=where, fix=FIX)
        yield name, [phrase for phrase in phrases if _shown(phrase, f"{where}, {name[:80]!r}")]


def _shown(phrase: Any, place: str) -> bool:
    """Whether a phrase says something; one that no prompt can hold is refused."""
    problem = ""
    if not isinstance(phrase, str):
        problem = "a phrase is not text"
    elif len(phrase) > MAX_LINE:
        problem = f"a phrase has {len(phrase)} characters, {MAX_LINE} at most"
    elif not " ".join(phrase.split()).isprintable():
        problem = "a phrase holds a character that cannot be shown"
    if problem:
        raise InputError(what=problem, where=place, fix=FIX)
    return bool(phrase.strip().strip("."))


_ARTICLE = re.compile(r"\ba (?=[aeio])")

# A pattern, and the lists that fill its slots from left to right.
RULES: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    # The first pool; a demo world's figures were measured with it, so it stays as it is and first.
    ("which is {}", ((*v.COLOURS, *v.LOOKS),)),
    ("which has {}", ((*v.PATTERNS, *v.PARTS),)),
    ("which is seen {}", (v.VIEWS,)),
    ("which stands {}", (v.PLACES,)),
    ("which is {}", ((*v.MANNERS, *v.COUNTS),)),
    ("which is {} and {}", (v.LOOKS[:8], v.COLOURS[:10])),
    ("which is {} and has {}", (v.COLOURS[:10], v.PATTERNS[:4])),
    ("which is {} and stands {}", (v.LOOKS[:6], v.PLACES[:12])),
    ("which is {}, {}", (v.MANNERS[:9], v.VIEWS[:7])),
    # Looks
    ("which is {} and {}", (v.SIZES, v.SURFACES)),
    ("which is {} and {}", (v.CONDITIONS, v.COLOURS)),
    ("which is {} {}", (("light", "dark", "pale"), (*v.HUES, "brown", "grey"))),
    ("which is {} {}", (("bright", "deep"), v.HUES)),
    ("which is mostly {}", (v.COLOURS,)),
    ("which has a {} {}", (v.SHAPES, v.SHAPED)),
    ("which has a {} {}", (v.TEXTURES, v.TEXTURED)),
    ("which looks {}", (v.IMPRESSIONS,)),
    ("which looks {} and {}", (v.ERAS, v.MOODS)),
    # Patterns and parts
    ("which has {} {}", (v.COLOURS, v.MARKINGS)),
    ("which has a {} {}", (v.COLOURS, v.COLOURED_PLACES)),
    ("which has a {} pattern of {} {}", (v.PATTERN_KINDS, v.MAIN_COLOURS, v.PATTERN_SHAPES)),
    ("which has {} {}", (v.NUMBERS, v.COUNTED_PARTS)),
    ("which has {} {}", (v.LIMB_FORMS, v.LIMBS)),
    ("which has {} {}", (v.OPENING_FORMS, v.OPENINGS)),
    ("which has {} {}", (v.MAIN_COLOURS, v.COLOURED_PARTS)),
    ("which has a {} {}", (v.PART_FORMS, v.SINGLE_PARTS)),
    # Materials
    ("which is made of {}", (v.MATERIALS,)),
    *(("which is made of {} {}", finish) for finish in v.FINISHES),
    *(("which is {} made of {}", ((craft,), materials)) for craft, materials in v.CRAFTS),
    # Views, light and places
    ("which is seen {} {}", (v.VIEWPOINTS, v.LIGHTS)),
    ("which is {} {}", (v.OUTDOORS, v.TIMES)),
    ("which is {} {}", (v.INDOORS, v.ROOM_LIGHTS)),
    ("which is seen {} {}", (v.EVENTS, v.EVENT_TIMES)),
    ("which is seen against a {} sky", (v.SKIES,)),
    ("which is seen from below against a {} sky", (v.SKIES,)),
    ("which is wet from {}", (v.WETNESS,)),
    ("which is in front of a {} {}", (v.BACKDROP_TONES, v.BACKDROPS)),
    ("which is {} on a {} background", (v.FRAMINGS, v.BACKDROP_TONES)),
    ("which fills {}", (v.FRAME_PARTS,)),
    ("which is cut off at {}", (v.FRAME_EDGES,)),
    ("which is {} and {}", (v.FRAME_SIZES, v.FRAME_PLACES)),
    # Company and counts
    ("which lies on {} beside {}", (v.SUPPORTS, v.SMALL_THINGS)),
    ("which is {} {}", (v.RELATIONS, v.BIG_THINGS)),
    ("which is surrounded by {}", (v.COMPANY,)),
    ("which is surrounded by {}, {}", (v.COMPANY, v.COMPANY_VIEWS)),
    ("which is one of {} arranged {}", (v.MANY, v.ARRANGED)),
    ("which comes in {} {}", (v.SEVERAL, v.VARIETIES)),
    # States, actions, shadows
    ("which is {} covered in {}", (v.AMOUNTS, v.COVERINGS)),
    ("which is {} {}", (v.EXTENTS, v.DAMAGES)),
    ("which is wrapped in {}", (v.WRAPPINGS,)),
    ("which is {}", (v.ACTIONS,)),
    ("which is {} {}", (v.POSES, v.DIRECTIONS)),
    ("which casts a {} shadow on {}", (v.SHADOWS, v.GROUNDS)),
    ("which is {} reflected in {}", (v.MANNER, v.MIRRORS)),
    ("which is lit from {} by {}", (v.LAMP_SIDES, v.LAMPS)),
    ("which is lit from {} by the sun", (v.SUN_SIDES,)),
    # Pictures of it
    ("which is {}", (v.FLAWS,)),
    ("which is {} and seen {}", (v.FLAWS, v.FLAW_VIEWS)),
    ("which is photographed with {} {}", (v.CAMERAS, v.CAMERA_TIMES)),
    ("which is drawn with {} on {}", (v.PENS, v.PAPERS)),
    ("which is drawn with chalk on {}", (v.CHALKED,)),
    *(("which is painted with {} on {}", ((paint,), grounds)) for paint, grounds in v.PAINTS),
    ("which is painted in {} colors with {}", (v.PALETTES, v.STROKES)),
    ("which is shown as {} in {}", (v.FORMS, v.SCHEMES)),
    ("which is printed on {} {}", (v.PRINTED, v.INKS)),
    ("which is shown in {} from {}", (v.OLD_MEDIA, v.OLD_TIMES)),
    ("which is shown in {} from {}", (v.NEW_MEDIA, v.NEW_TIMES)),
)


@cache
def built_in() -> tuple[str, ...]:
    """All descriptors of the built-in pool, each once, in a fixed order."""
    return tuple(dict.fromkeys(_phrases()))


def _phrases() -> Iterator[str]:
    for pattern, lists in RULES:
        for fillers in product(*lists):
            yield _ARTICLE.sub("an ", pattern.format(*fillers))
    for one, other in combinations(v.MAIN_COLOURS, 2):
        yield f"which is {one} and {other}"
