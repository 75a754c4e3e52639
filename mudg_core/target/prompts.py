"""The ways to say a class, behind one switch (`augment.method`).

    adaptive            the descriptors of the pool that keep the labels apart (Eq. 4)
    random              descriptors of the pool, drawn by lot
    waffle-words        random words after the class name
    waffle-characters   random letters after the class name
    templates           an ensemble of handcrafted templates, in place of the target's own
    per-class           each class with its own phrases (`augment.descriptors`)
    cupl                each class with its own whole prompts (`augment.prompts`)
    none                the plain prompt

All give the same thing: `sayings[j][i]`, what stands around the name of class i in augmentation j.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import get_args

import numpy as np

from mudg_core.errors import InputError
from mudg_core.settings import AugmentSettings
from mudg_core.target.descriptor_pool import (
    as_clause,
    built_in,
    pool_digest,
    read_by_class,
    read_pool,
    subsample,
)
from mudg_core.target.descriptor_selection import Encoder, Scored, random_choice, score
from mudg_core.target.spec import Target
from mudg_core.target.vocabulary import words

METHODS: tuple[str, ...] = get_args(AugmentSettings.model_fields["method"].annotation)
POOLED = ("adaptive", "random")
FILES = {"per-class": "descriptors", "cupl": "prompts"}  # methods that need a file of the user's, and which
Saying = tuple[str, ...]  # joined by the name: ("a photo of a ", "."); one without a name is a single text


@dataclass(frozen=True)
class Augmentations:
    """`descriptors` has an entry for each augmentation: what it adds, if that is the same for all classes.

    `scored` and `clusters` (lists of class names) say why these, where they were measured.
    """

    method: str
    descriptors: tuple[str | None, ...]
    sayings: tuple[tuple[Saying, ...], ...]
    scored: tuple[Scored, ...] = ()
    clusters: tuple[tuple[str, ...], ...] = ()

    def prompts(self, target: Target) -> list[list[str]]:
        """`[j][i]` says class i with augmentation j."""
        classes = target.classes
        return [[name.join(said) for name, said in zip(classes, row, strict=True)] for row in self.sayings]

    def texts(self, target: Target) -> list[tuple[int, str]]:
        """(label, text) of all queries, label by label: each name with each augmentation, no text twice."""
        columns = enumerate(zip(*self.sayings, strict=True))
        return [
            (label, text)
            for label, column in columns
            for text in dict.fromkeys(name.join(saying) for name in target.names(label) for saying in column)
        ]


@dataclass(frozen=True)
class Wording:
    """What `augmentations` needs besides settings, read from the user's files where the user is.

    An empty pool stands for the built-in one; its digest is there so that a change of it counts.
    """

    classes: list[str]
    template: str
    synonyms: dict[str, list[str]]
    pool: list[str]
    pool_digest: str
    by_class: list[list[str]]


def wording(settings: AugmentSettings, target: Target) -> Wording:
    """The words of a target."""
    method, by_class = settings.method, list[list[str]]()
    pool: tuple[str, ...] = ()
    if method in POOLED and settings.descriptors:
        pool = read_pool(settings.descriptors)
    if method in FILES:
        by_class = said_by_class(settings, target, method)
    digest = pool_digest(pool or built_in()) if method in POOLED else ""
    return Wording(
        classes=list(target.classes),
        template=target.template,
        synonyms={name: list(others) for name, others in target.synonyms.items()},
        pool=list(pool),
        pool_digest=digest,
        by_class=by_class,
    )


def said_by_class(settings: AugmentSettings, target: Target, method: str) -> list[list[str]]:
    """What the user's file says about each class, as much of it as is used."""
    file = getattr(settings, FILES[method])
    if not file:
        raise InputError(
            what=f"the method {method} needs a file of phrases by class",
            where="augment.method",
            fix=f"set augment.{FILES[method]} to a JSON file {{class: [phrase, ...]}}",
        )
    return [phrases[: settings.count] for phrases in read_by_class(file, target.classes)]


def augmentations(
    target: Target,
    settings: AugmentSettings,
    encode: Encoder,
    pool: Sequence[str] = (),
    by_class: Sequence[Sequence[str]] = (),
) -> Augmentations:
    """The augmentations of a target by the method that the settings name."""
    method, count, seed = settings.method, settings.count, settings.seed
    if method in FILES:
        return of_classes(target, method, by_class)
    if method == "templates":
        return of_templates(target, TEMPLATES[:count])
    if method == "adaptive":
        return _adaptive(target, settings, encode, chosen_pool(settings, pool))
    chosen: Sequence[str | None] = [None]
    if method == "random":
        chosen = random_choice(chosen_pool(settings, pool), count, seed)
    elif method == "waffle-words":
        chosen = waffle_words(WAFFLES, seed)
    elif method == "waffle-characters":
        chosen = waffle_characters(WAFFLES, seed)
    return of_descriptors(target, method, chosen)


def chosen_pool(settings: AugmentSettings, pool: Sequence[str]) -> tuple[str, ...]:
    """The descriptors that there are to choose from."""
    return subsample(pool or built_in(), settings.pool, settings.seed)


def _adaptive(
    target: Target, settings: AugmentSettings, encode: Encoder, pool: Sequence[str]
) -> Augmentations:
    ranking = score(target, pool, encode, label_clusters=settings.label_clusters, seed=settings.seed)
    clusters = [
        tuple(target.classes[label] for label in (ranking.assigned == number).nonzero()[0])
        for number in range(int(ranking.assigned.max()) + 1)
    ]
    made = of_descriptors(target, "adaptive", ranking.choose(settings.count, settings.near_copy))
    return replace(made, scored=ranking.scored, clusters=tuple(clusters))


def of_descriptors(target: Target, method: str, chosen: Sequence[str | None]) -> Augmentations:
    """The target's own template, with a clause after it."""
    before, after = target.template.split("{}")
    rows = [(before, after if d is None else f"{after.removesuffix('.')}, {d}.") for d in chosen]
    return Augmentations(method, tuple(chosen), tuple((row,) * len(target.classes) for row in rows))


def of_templates(target: Target, templates: Sequence[str]) -> Augmentations:
    rows = [tuple(template.split("{}")) for template in templates]
    return Augmentations("templates", tuple(templates), tuple((row,) * len(target.classes) for row in rows))


def of_classes(target: Target, method: str, by_class: Sequence[Sequence[str]]) -> Augmentations:
    """Each class with what is said about it, from the start again where another class has more to say."""
    columns: list[list[Saying]] = []
    for name, phrases in zip(target.classes, by_class, strict=True):
        if method == "cupl":
            columns.append([_around(name, phrase) for phrase in phrases])
        else:
            clauses = [as_clause(phrase) for phrase in phrases]
            columns.append([row[0] for row in of_descriptors(target, method, clauses).sayings])
    most = max(len(column) for column in columns)
    rows = tuple(tuple(column[j % len(column)] for column in columns) for j in range(most))
    return Augmentations(method, (None,) * most, rows)


def _around(name: str, prompt: str) -> Saying:
    """A whole prompt, taken apart at the class name, so that synonyms can stand in for it."""
    return tuple(re.split(rf"(?<!\w){re.escape(name)}(?!\w)", " ".join(prompt.split())))


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
