"""The built-in descriptor pool: general visual phrases of our own writing, from typed lists.

A descriptor is the clause after a class name: "a photo of a boat, *which is small and red*." The pool has
to be broad rather than apt: which phrases suit a target is decided by measuring (augment.py), not here.
A rule joins lists whose every entry goes with every other; what goes only with some (finishes with their
materials, paints with their grounds) is written as pairs of lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

from mudg_core.target import vocabulary as v

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
