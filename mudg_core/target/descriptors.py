"""Phrases that users bring: pools of descriptors, descriptors by class, and whole prompts by class.

JSON, class -> phrases     Menon and Vondrick's form, "two legs": one pool, or each class its own
JSON, class -> prompts     CuPL's form: "A cat is a small, furry animal."
text                       one phrase a line: a pool
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mudg_core.errors import InputError
from mudg_core.target.names import same
from mudg_core.target.text import MAX_LINE, listed, parse_json, read_text

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
