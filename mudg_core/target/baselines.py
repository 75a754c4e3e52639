"""What adaptive augmentation is compared with: noise after the class name, and handcrafted templates.

Waffles are noise on purpose: whatever an ensemble of them gains, it gains without meaning.
"""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np

from mudg_core.target.vocabulary import words

WAFFLE_WORDS = words(
    """acorn, anchor, apron, attic, autumn, badge, bakery, balcony, barrel, basin, beacon, berry, blanket,
    border, branch, breeze, brick, bridge, bucket, button, cabin, candle, canyon, carpet, castle, cellar,
    chapel, chimney, circle, cliff, clover, coast, collar, compass, copper, corner, cotton, cradle, crater,
    creek, curtain, daisy, dawn, desert, dinner, dome, drum, dune, easel, echo, ember, engine, fabric,
    feather, fern, ferry, fiddle, flint, flute, forest, fossil, fountain, furnace, gallery, garlic, gate,
    ginger, glacier, granite, gravel, hammer, harbor, harvest, hazel, helmet, hinge, honey, horizon, hour,
    island, ivory, jacket, jigsaw, journal, jungle, kettle, kitchen, ladder, lantern, lemon, letter,
    library, linen, lobby, locket, magnet, maple, marble, meadow, melody, mirror, monday, morning, mustard,
    needle, nickel, noon, oasis, ocean, olive, orchard, oven, paddle, paper, parade, pebble, pepper,
    picnic, pillow, pocket, pond, prairie, puzzle, quarry, quilt, quiver, radio, raft, ribbon, ridge,
    river, rocket, saddle, sand, satin, shadow, shelter, signal, silk, sleigh, spiral, spring, station,
    stone, summer, sunday, tablet, temple, thimble, thread, thunder, ticket, timber, tower, trumpet,
    tunnel, umbrella, valley, vapor, velvet, village, violin, voyage, wagon, walnut, window, winter,
    wooden, yarn, yellow, yesterday, zigzag"""
)
WAFFLES = 8  # in an ensemble, whatever augment.count is: a baseline as it was published
WORDS_A_WAFFLE = 2
LETTERS_A_WAFFLE = (4, 8)  # the shortest and the longest string
TEMPLATES = words(
    """a picture that shows a {}., here is a {}., we are looking at a {}., this must be a {}.,
    somebody has photographed a {}., a snapshot of some {}., an amateur picture of a {}.,
    a professional picture of a {}., a {} in the middle of the picture., a {} at the edge of the picture.,
    a picture of a {} taken outside., a picture of a {} taken inside., a {} on a sunny day.,
    a {} at night., a nearby {}., a {} in the distance., a {} and nothing else., one {} among others.,
    several of them: {}., part of a {}., a sharp picture of a {}., a blurred picture of a {}.,
    a dark picture of a {}., a picture of a {} with strong light., a {} drawn with a pencil.,
    a {} painted with a brush., a {} printed on paper., a {} made of plastic., a {} stitched on cloth.,
    a {} carved from wood., a {} drawn on a computer., a {} in a comic book.,
    a black and white picture of a {}., a {} on a screen., an old {}., a brand new {}.,
    the {} that I like most., a {} which looks odd., a {} as everybody knows it.,
    a page from a book about the {}."""
)


def waffle_words(count: int, seed: int) -> list[str]:
    """Clauses of random words, no two alike."""
    random, kept = np.random.default_rng(seed), dict[str, None]()
    while len(kept) < count:
        chosen = random.choice(len(WAFFLE_WORDS), size=WORDS_A_WAFFLE, replace=False)
        kept["which has " + " ".join(WAFFLE_WORDS[i] for i in chosen)] = None
    return list(kept)


def waffle_characters(count: int, seed: int) -> list[str]:
    """Clauses of random letters, no two alike."""
    random, kept = np.random.default_rng(seed), dict[str, None]()
    shortest, longest = LETTERS_A_WAFFLE
    while len(kept) < count:
        lengths = random.integers(shortest, longest + 1, size=WORDS_A_WAFFLE)
        said = ["".join(ascii_lowercase[i] for i in random.integers(0, 26, size=n)) for n in lengths]
        kept["which has " + " ".join(said)] = None
    return list(kept)
