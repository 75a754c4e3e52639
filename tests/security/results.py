"""What attacks came to, and the one table that tells it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from textwrap import shorten

import pytest

WIDTH = 150
DETAIL = 400  # of what got through


class Verdict(Enum):
    REFUSED = "refused"
    GOT_THROUGH = "GOT THROUGH"
    NOT_TRIED = "NOT TRIED"
    SKIPPED = "skipped: needs root"


class NotTried(Exception):
    """An attack that could not be carried out: it says nothing about the defence."""


class NeedsRoot(NotTried):
    """Nobody else can act as another user: the table says so. For root it is a failure like others."""


@dataclass(frozen=True)
class Result:
    """`tried`: the attack in one line. Attacks of one kind share it, and differ in their `case`."""

    tried: str
    fault: int
    verdict: Verdict
    detail: str = ""
    case: str = ""
    topic: str = field(default="", kw_only=True)


Attack = Callable[[], str]


def attempt(tried: str, fault: int, attack: Attack, case: str = "") -> Result:
    """Carries out one attack: a function that returns how it was refused, and raises if it was not. Whatever
    else it raises counts as got through, as nobody knows what has happened; so does a failed `assert`."""
    try:
        verdict, detail = Verdict.REFUSED, attack()
    except NeedsRoot as error:
        verdict, detail = Verdict.NOT_TRIED if os.geteuid() == 0 else Verdict.SKIPPED, str(error)
    except (NotTried, pytest.skip.Exception) as error:
        verdict, detail = Verdict.NOT_TRIED, str(error)
    except (Exception, pytest.fail.Exception) as error:
        verdict, detail = Verdict.GOT_THROUGH, f"{type(error).__name__}: {error}"
    return Result(tried, fault, verdict, detail, case)


def attempts(tried: str, fault: int, attacks: Mapping[str, Attack]) -> Iterator[Result]:
    """Attacks of one kind by their cases."""
    for case, attack in attacks.items():
        yield attempt(tried, fault, attack, case)


Topic = Callable[[], Iterable[Result]]


def carried_out(topics: Mapping[str, Topic], tell: Callable[[str], None]) -> list[Result]:
    """All attacks of all topics."""
    results: list[Result] = []
    for name, topic in topics.items():
        tell(name)
        found = list(_carried_out(topic)) or [_not_tried("no attack was made")]
        results += [replace(one, topic=name) for one in found]
    return results


def _carried_out(topic: Topic) -> Iterator[Result]:
    """A topic that cannot prepare what it needs, or that ends early, is told as not tried: its silence is no
    success."""
    try:
        yield from topic()
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:
        yield _not_tried(f"{type(error).__name__}: {error}")


def _not_tried(why: str) -> Result:
    return Result("the rest of this topic", 0, Verdict.NOT_TRIED, why)


def exit_code(results: Iterable[Result]) -> int:
    """1 if anything got through or was not tried, also if nothing was tried at all. What needs root may be
    left to root."""
    verdicts = {one.verdict for one in results} - {Verdict.SKIPPED}
    return 0 if verdicts == {Verdict.REFUSED} else 1


def table(results: list[Result]) -> str:
    """Rows by topic. Refused attacks of one kind share a row; all others have one each."""
    rows = [
        row for topic, found in groupby(results, lambda one: one.topic) for row in _rows(topic, list(found))
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)] if rows else [0] * 4
    lines = ["  ".join((*map(str.ljust, row[:4], widths), row[4])).rstrip() for row in rows]
    return "\n".join([*lines, "", summary(results)])


def summary(results: list[Result]) -> str:
    count = {verdict: sum(one.verdict is verdict for one in results) for verdict in Verdict}
    tried = count[Verdict.REFUSED] + count[Verdict.GOT_THROUGH]
    said = f"{tried} tried, {count[Verdict.REFUSED]} refused, {count[Verdict.GOT_THROUGH]} got through"
    left = {"not tried": count[Verdict.NOT_TRIED], Verdict.SKIPPED.value: count[Verdict.SKIPPED]}
    return said + "".join(f", {number} {word}" for word, number in left.items() if number)


def _rows(topic: str, results: list[Result]) -> Iterator[tuple[str, str, str, str, str]]:
    """(what, fault, how many, verdict, detail)."""
    yield f"\n{topic}", "", "", "", ""
    for tried in dict.fromkeys(one.tried for one in results):
        found = [one for one in results if one.tried == tried]
        refused = [one for one in found if one.verdict is Verdict.REFUSED]
        if refused:
            yield _row(replace(refused[0], case=""), str(len(refused)))
        for one in found:
            if one.verdict is not Verdict.REFUSED:
                yield _row(one, "1")


def _row(one: Result, count: str) -> tuple[str, str, str, str, str]:
    room = DETAIL if one.verdict is not Verdict.REFUSED else max(30, _columns() - 95)
    what = f"  {one.tried}: {one.case}" if one.case else f"  {one.tried}"
    shown = one.detail.encode("unicode_escape").decode()  # what strangers wrote is in it
    return what, f"f{one.fault:02d}", count, one.verdict.value, shorten(shown, room, placeholder=" …")


def _columns() -> int:
    return shutil.get_terminal_size((WIDTH, 24)).columns
