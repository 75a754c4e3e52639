"""Class names and synonyms: each readable, and none that two classes share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import normalize

from mudg_core.errors import InputError
from mudg_core.settings import Json
from mudg_core.target.user_files import Lines, line_of

MAX_CLASSES = 10_000
MAX_NAME = 200
MAX_SYNONYMS = 32
# Letters of Cyrillic and Greek, and digits, that look like Latin letters. Capitals are told apart before
# case is folded, as many look like others than their small ones do.
CAPITALS = str.maketrans(
    "\u0410\u0391\u0412\u0392\u0421\u03f9\u0415\u0395\u041d\u0397I\u0406\u0399\u04c0\u0408"
    "\u041a\u039a\u041c\u039c\u039d\u041e\u039f\u0420\u03a1\u0405\u0422\u03a4\u0425\u03a7\u0423"
    "\u03a5\u0396",
    "AABBCCEEHHllllJKKMMNOOPPSTTXXYYZ",
)
SMALL = str.maketrans(
    "\u0430\u03b1\u0251\u0435\u043e\u03bf0\u0440\u03c1\u0441\u03f2\u0443\u0445\u03c7\u0456"
    "\u03b9\u0131\u0458\u0455\u0501\u04bb\u03bd\u04751\u04cf\u043a\u03ba\u0442\u03c4\u043c"
    "\u051b\u051d\u0261\u03c5",
    "aaaeoooppccyxxiiijsdhvvllkkttmqwgu",
)
# Take no place, or none that can be seen, though Unicode calls them printable.
UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
ONE_NAME = "give each class one distinct, readable name"


class NameCheck:
    """Takes names one after the other and refuses the first that cannot be used, naming its place."""

    def __init__(self) -> None:
        self.seen: dict[str, tuple[str, str]] = {}  # name key -> the name and its place

    def take(self, name: Any, where: str, fix: str = ONE_NAME) -> None:
        if problem := self._problem(name, where):
            raise InputError(what=problem, where=where, fix=fix)
        self.seen[name_key(name)] = name.strip(), where

    def _problem(self, name: Any, where: str) -> str:
        if not isinstance(name, str):
            return "a class name is a mapping or a list"
        if not name.strip():
            return "a class name is empty"
        if len(name) > MAX_NAME:
            return f"a class name has {len(name)} characters, {MAX_NAME} at most"
        if not name.isprintable():
            return "a class name holds a character that cannot be shown"
        if name_key(name) in self.seen:
            first, place = self.seen[name_key(name)]
            spelling = f", as {first!r}" if first != name.strip() else ""
            return f"{name.strip()!r} is there already{_other_place(place, where)}{spelling}"
        return ""


def _other_place(first: str, where: str) -> str:
    """Where the first of two names is: a line of the same file, or another place."""
    file, _, line = first.rpartition(":")
    if file == where.rpartition(":")[0]:
        return f", on line {line}"
    return f", in {first}" if first != where else ""


def check_classes(names: Iterable[tuple[Any, str]], check: NameCheck) -> list[str]:
    """The names of (name, place) pairs, each checked."""
    kept = []
    for number, (name, where) in enumerate(names):
        if number == MAX_CLASSES:
            raise InputError(what=f"more than {MAX_CLASSES} classes", where=where, fix="split the target")
        check.take(name, where)
        kept.append(name)
    return kept


def check_synonyms(tree: Any, classes: list[str], lines: Lines, where: str, check: NameCheck) -> Json:
    """Synonyms by the class they belong to, spelt as it is; what is not a mapping is left to the model."""
    if not isinstance(tree, dict):
        return {"synonyms": tree}

    def place(*location: str | int) -> str:
        return f"{where}:{line_of(lines, ('synonyms', *location))}"

    known = {name_key(name): name.strip() for name in classes}
    kept: dict[str, list[Any]] = {}
    for name, others in tree.items():
        owner = known.get(name_key(name))
        if owner is None or owner in kept:
            problem = "no class" if owner is None else "there already"
            raise InputError(
                what=f"synonyms of {name[:80]!r}, which is {problem}",
                where=place(name),
                fix="write `synonyms: {class: [other name]}` with classes of this target",
            )
        if not isinstance(others, list):
            raise InputError(
                what="synonyms are a list of names", where=place(name), fix="write [one, another]"
            )
        if len(others) > MAX_SYNONYMS:
            what = f"{len(others)} synonyms of one class, {MAX_SYNONYMS} at most"
            raise InputError(what=what, where=place(name, MAX_SYNONYMS))
        for number, other in enumerate(others):
            check.take(
                other, place(name, number), "a synonym belongs to one class and is none of the classes"
            )
        kept[owner] = others
    return {"synonyms": kept}


def name_key(name: str) -> str:
    """What two names share that differ only by case, space, how an accent is stored, or what nobody sees."""
    folded = normalize("NFC", normalize("NFC", UNSEEN.sub("", name)).casefold())
    return " ".join(folded.split())


def lookalikes(names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of names that differ and look the same, as with a Cyrillic letter in one of them."""
    seen: dict[str, str] = {}
    return [(seen[key], name) for name in names if seen.setdefault(key := _skeleton(name), name) != name]


def _skeleton(name: str) -> str:
    return name_key(normalize("NFKC", name).translate(CAPITALS)).translate(SMALL)
