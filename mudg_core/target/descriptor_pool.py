"""Pools of descriptors and other phrases: the built-in pool, and files that users bring.

A descriptor is the clause after a class name: "a photo of a boat, *which is small and red*." The built-in
pool is broad rather than apt: which phrases suit a target is measured (`descriptor_selection.py`). Files are

JSON, class -> phrases     Menon and Vondrick's form, "two legs": one pool, or each class its own
JSON, class -> prompts     CuPL's form: "A cat is a small, furry animal."
text                       one phrase a line: a pool
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from mudg_core.errors import InputError
from mudg_core.settings import Json
from mudg_core.target.class_names import name_key
from mudg_core.target.user_files import MAX_LINE, numbered_lines, parse_json, read_text
from mudg_core.yaml_text import load as load_yaml

MAX_BYTES = 16 << 20
MAX_PHRASES = 100_000
FIX = 'give {"class": ["phrase", ...]} as .json, or UTF-8 text with one phrase a line'
FIX_BY_CLASS = 'give {"class": ["phrase", ...]} with every class of the target'
_ARTICLE = re.compile(r"\ba (?=[aeio])")
_SLOT = re.compile(r"{(.*?)}")


@cache
def built_in() -> tuple[str, ...]:
    """All descriptors of the built-in pool, each once, in a fixed order."""
    rules = grammar()
    phrases = [_ARTICLE.sub("an ", rule.format(*words)) for rule, lists in rules for words in product(*lists)]
    pairs = [f"which is {one} and {other}" for one, other in combinations(word_list("colours")[:10], 2)]
    return tuple(dict.fromkeys([*phrases, *pairs]))


def grammar() -> list[tuple[str, list[tuple[str, ...]]]]:
    """Each rule of `phrases.yaml` with empty slots, and the lists that fill them from left to right."""
    rules = phrase_file()["rules"]
    return [(_SLOT.sub("{}", rule), [_fillers(slot) for slot in _SLOT.findall(rule)]) for rule in rules]


def word_list(name: str) -> tuple[str, ...]:
    """The entries of a list of `phrases.yaml`."""
    return _entries(phrase_file()["lists"][name])


@cache
def phrase_file() -> Json:
    text = files("mudg_core.target").joinpath("phrases.yaml").read_text(encoding="utf-8")
    tree: Json = load_yaml(text)
    return tree


def _fillers(slot: str) -> tuple[str, ...]:
    if "," in slot:
        return _entries(slot)
    names, _, count = slot.partition(":")
    words = [word for name in names.split("+") for word in word_list(name)]
    return tuple(words[: int(count)] if count else words)


def _entries(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(","))


def read_pool(path: str | Path) -> tuple[str, ...]:
    """The descriptors of a file, each once, in its order."""
    text, where = read_text(path, "descriptor file", MAX_BYTES, FIX), str(path)
    if Path(path).suffix.lower() == ".json":
        phrases = [phrase for _, of_class in _by_class(text, where) for phrase in of_class]
    else:
        phrases = [phrase for phrase, place in numbered_lines(text, where) if _has_words(phrase, place)]
    pool = tuple(dict.fromkeys(as_clause(phrase) for phrase in phrases))
    if not 1 <= len(pool) <= MAX_PHRASES:
        raise InputError(what=f"{len(pool)} descriptors; 1 to {MAX_PHRASES} are possible", where=where)
    return pool


def read_by_class(path: str | Path, classes: Sequence[str]) -> list[list[str]]:
    """The phrases of a file for each class, in the order of `classes`; it may have those of others too."""
    phrases = _phrases_by_name(path)
    missing = [name for name in classes if not phrases.get(name_key(name))]
    if missing:
        some = ", ".join(repr(name) for name in missing[:5]) + (" …" if len(missing) > 5 else "")
        raise InputError(
            what=f"nothing is said about {len(missing)} of {len(classes)} classes: {some}",
            where=str(path),
            fix=FIX_BY_CLASS,
        )
    return [phrases[name_key(name)] for name in classes]


def covers_classes(path: str | Path, classes: Sequence[str]) -> bool:
    """Whether a file has phrases for every one of these classes."""
    if Path(path).suffix.lower() != ".json":
        return False
    phrases = _phrases_by_name(path)
    return all(phrases.get(name_key(name)) for name in classes)


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


def _phrases_by_name(path: str | Path) -> dict[str, list[str]]:
    text = read_text(path, "file of phrases by class", MAX_BYTES, FIX_BY_CLASS)
    return {name_key(name): phrases for name, phrases in _by_class(text, str(path))}


def _by_class(text: str, where: str) -> Iterator[tuple[str, list[str]]]:
    """(class, phrases) of a JSON object, blank phrases left out."""
    tree = parse_json(text, where, FIX)
    if not isinstance(tree, dict):
        raise InputError(what="not an object of lists", where=where, fix=FIX)
    for name, phrases in tree.items():
        if not isinstance(phrases, list):
            raise InputError(what=f"{name[:80]!r} has no list", where=where, fix=FIX)
        yield name, [phrase for phrase in phrases if _has_words(phrase, f"{where}, {name[:80]!r}")]


def _has_words(phrase: Any, place: str) -> bool:
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
