"""Class names and synonyms: each readable, and none that two classes share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import normalize

from mudg_core.errors import InputError
from mudg_core.settings import Json
from mudg_core.target.user_files import Lines, Location, line_of

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
        self.seen: dict[str, str] = {}
        self.spelt: dict[str, str] = {}

    def take(self, name: Any, where: str, fix: str = ONE_NAME) -> None:
        if problem := self._problem(name, where):
            raise InputError(what=problem, where=where, fix=fix)
        self.seen[same(name)] = where
        self.spelt[same(name)] = name.strip()

    def _problem(self, name: Any, where: str) -> str:
        if not isinstance(name, str):
            return "a class name is a mapping or a list"
        if not name.strip():
            return "a class name is empty"
        if len(name) > MAX_NAME:
            return f"a class name has {len(name)} characters, {MAX_NAME} at most"
        if not name.isprintable():
            return "a class name holds a character that cannot be shown"
        if (before := self.seen.get(same(name))) is not None:
            first = self.spelt[same(name)]
            spelt = f", as {first!r}" if first != name.strip() else ""
            return f"{name.strip()!r} is there already{_told(before, where)}{spelt}"
        return ""


def _told(before: str, where: str) -> str:
    """Where the first of two is: a line of the same file, or another place."""
    file, _, line = before.rpartition(":")
    if file == where.rpartition(":")[0]:
        return f", on line {line}"
    return f", in {before}" if before != where else ""


def check_classes(names: Iterable[tuple[Any, str]], check: NameCheck) -> list[str]:
    """The names of (name, place) pairs, each looked at."""
    kept = []
    for number, (name, where) in enumerate(names):
        if number == MAX_CLASSES:
            raise InputError(
                what=f"more than {MAX_CLASSES} classes",
                where=where,
                fix="split the target",
            )
        check.take(name, where)
        kept.append(name)
    return kept


def check_synonyms(tree: Any, classes: list[str], lines: Lines, where: str, check: NameCheck) -> Json:
    """Synonyms by the class they belong to, spelt as it is; what is not a mapping is left to the model."""
    if not isinstance(tree, dict):
        return {"synonyms": tree}
    known = {same(name): name.strip() for name in classes}
    kept: dict[str, list[Any]] = {}
    for name, others in tree.items():
        at: Location = ("synonyms", name)
        owner = known.get(same(name))
        if owner is None or owner in kept:
            raise InputError(
                what=f"synonyms of {name[:80]!r}, which is "
                + ("no class" if owner is None else "there already"),
                where=f"{where}:{line_of(lines, at)}",
                fix="write `synonyms: {class: [other name]}` with classes of this target",
            )
        kept[owner] = _checked(others, at, lines, where, check)
    return {"synonyms": kept}


def _checked(others: Any, at: Location, lines: Lines, where: str, check: NameCheck) -> list[Any]:
    here = f"{where}:{line_of(lines, at)}"
    if not isinstance(others, list):
        raise InputError(what="synonyms are a list of names", where=here, fix="write [one, another]")
    if len(others) > MAX_SYNONYMS:
        raise InputError(
            what=f"{len(others)} synonyms of one class, {MAX_SYNONYMS} at most",
            where=f"{where}:{line_of(lines, (*at, MAX_SYNONYMS))}",
        )
    for number, other in enumerate(others):
        line = line_of(lines, (*at, number))
        check.take(other, f"{where}:{line}", "a synonym belongs to one class and is none of the classes")
    return others


def same(name: str) -> str:
    """What two names share that differ only by case, space, how an accent is stored, or what nobody sees."""
    folded = normalize("NFC", normalize("NFC", UNSEEN.sub("", name)).casefold())
    return " ".join(folded.split())


def lookalikes(names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of names that differ and look the same, as with a Cyrillic letter in one of them."""
    seen: dict[str, str] = {}
    return [(seen[key], name) for name in names if seen.setdefault(key := _skeleton(name), name) != name]


def _skeleton(name: str) -> str:
    return same(normalize("NFKC", name).translate(CAPITALS)).translate(SMALL)
