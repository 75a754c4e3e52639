"""Prompts of a target's classes, by one of the methods of `augment.method`.

    adaptive            the descriptors of the pool that keep the labels apart (Eq. 4)
    random              descriptors of the pool, drawn at random
    waffle-words        random words after the class name: what they gain, they gain without meaning
    waffle-characters   random letters after the class name
    templates           an ensemble of handcrafted templates, in place of the target's own
    per-class           each class with its own phrases (`augment.descriptors`)
    cupl                each class with its own whole prompts (`augment.prompts`)
    none                the plain prompt

All give `templates[j][i]`: the prompt of class i in augmentation j, split where the class name stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    word_list,
)
from mudg_core.target.descriptor_selection import Encoder, Scored, random_choice, score
from mudg_core.target.spec import Target

METHODS: tuple[str, ...] = get_args(AugmentSettings.model_fields["method"].annotation)
POOLED = ("adaptive", "random")
FILES = {"per-class": "descriptors", "cupl": "prompts"}  # methods that need a file of the user's, and which
WAFFLES = 8  # in an ensemble, whatever augment.count is: a baseline as it was published
WORDS_PER_WAFFLE = 2
LETTERS_PER_WORD = (4, 8)  # the shortest and the longest random word
Template = tuple[str, ...]  # joined by the class name: ("a photo of a ", "."); one without a name is one text


@dataclass(frozen=True)
class Augmentations:
    """`descriptors` has an entry for each augmentation: what it adds, if that is the same for all classes.

    `scored` and `clusters` (lists of class names) say why these, where they were measured.
    """

    method: str
    descriptors: tuple[str | None, ...]
    templates: tuple[tuple[Template, ...], ...]
    scored: tuple[Scored, ...] = ()
    clusters: tuple[tuple[str, ...], ...] = ()

    def prompts(self, target: Target) -> list[list[str]]:
        """`[j][i]` is the prompt of class i in augmentation j."""
        names = target.classes
        return [[name.join(parts) for name, parts in zip(names, row, strict=True)] for row in self.templates]

    def texts(self, target: Target) -> list[tuple[int, str]]:
        """(label, text) of all queries, label by label: each name with each augmentation, no text twice."""
        return [
            (label, text)
            for label, column in enumerate(zip(*self.templates, strict=True))
            for text in dict.fromkeys(name.join(parts) for name in target.names(label) for parts in column)
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
    pooled = settings.method in POOLED
    pool = read_pool(settings.descriptors) if pooled and settings.descriptors else ()
    return Wording(
        classes=list(target.classes),
        template=target.template,
        synonyms={name: list(others) for name, others in target.synonyms.items()},
        pool=list(pool),
        pool_digest=pool_digest(pool or built_in()) if pooled else "",
        by_class=phrases_by_class(settings, target, settings.method) if settings.method in FILES else [],
    )


def phrases_by_class(settings: AugmentSettings, target: Target, method: str) -> list[list[str]]:
    """The phrases of the user's file for each class, as many of them as are used."""
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
        return _of_templates(target, word_list("templates")[:count])
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
    clusters = tuple(
        tuple(target.classes[label] for label in np.flatnonzero(ranking.assigned == number))
        for number in range(int(ranking.assigned.max()) + 1)
    )
    chosen = tuple(ranking.choose(settings.count, settings.near_copy))
    templates = of_descriptors(target, "adaptive", chosen).templates
    return Augmentations("adaptive", chosen, templates, ranking.scored, clusters)


def of_descriptors(target: Target, method: str, chosen: Sequence[str | None]) -> Augmentations:
    """The target's own template, with a clause after it."""
    before, after = target.template.split("{}")
    rows = [(before, after if d is None else f"{after.removesuffix('.')}, {d}.") for d in chosen]
    return Augmentations(method, tuple(chosen), tuple((row,) * len(target.classes) for row in rows))


def _of_templates(target: Target, templates: Sequence[str]) -> Augmentations:
    rows = [tuple(template.split("{}")) for template in templates]
    return Augmentations("templates", tuple(templates), tuple((row,) * len(target.classes) for row in rows))


def of_classes(target: Target, method: str, by_class: Sequence[Sequence[str]]) -> Augmentations:
    """Each class with its own phrases, from the start again where another class has more of them."""
    columns: list[list[Template]] = []
    for name, phrases in zip(target.classes, by_class, strict=True):
        if method == "cupl":
            columns.append([_split_at_name(name, phrase) for phrase in phrases])
        else:
            clauses = [as_clause(phrase) for phrase in phrases]
            columns.append([row[0] for row in of_descriptors(target, method, clauses).templates])
    longest = max(len(column) for column in columns)
    rows = tuple(tuple(column[j % len(column)] for column in columns) for j in range(longest))
    return Augmentations(method, (None,) * longest, rows)


def _split_at_name(name: str, prompt: str) -> Template:
    """A whole prompt, split at the class name, so that synonyms can stand in for it."""
    return tuple(re.split(rf"(?<!\w){re.escape(name)}(?!\w)", " ".join(prompt.split())))


def waffle_words(count: int, seed: int) -> list[str]:
    """Clauses of random words, no two alike."""
    words = word_list("waffle_words")

    def draw(random: np.random.Generator) -> list[str]:
        return [words[i] for i in random.choice(len(words), size=WORDS_PER_WAFFLE, replace=False)]

    return _waffles(draw, count, seed)


def waffle_characters(count: int, seed: int) -> list[str]:
    """Clauses of random letters, no two alike."""
    shortest, longest = LETTERS_PER_WORD

    def draw(random: np.random.Generator) -> list[str]:
        lengths = random.integers(shortest, longest + 1, size=WORDS_PER_WAFFLE)
        return ["".join(ascii_lowercase[i] for i in random.integers(0, 26, size=n)) for n in lengths]

    return _waffles(draw, count, seed)


def _waffles(draw: Callable[[np.random.Generator], list[str]], count: int, seed: int) -> list[str]:
    random, waffles = np.random.default_rng(seed), dict[str, None]()
    while len(waffles) < count:
        waffles["which has " + " ".join(draw(random))] = None
    return list(waffles)
