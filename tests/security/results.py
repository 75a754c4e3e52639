"""Results of attacks, and the table of them."""

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


Topic = Callable[[], Iterable[Result]]


def run_topics(topics: Mapping[str, Topic], report: Callable[[str], None]) -> list[Result]:
    """All attacks of all topics."""
    results: list[Result] = []
    for name, topic in topics.items():
        report(name)
        of_topic = list(_run_topic(topic)) or [_not_tried("no attack was made")]
        results += [replace(result, topic=name) for result in of_topic]
    return results


def _run_topic(topic: Topic) -> Iterator[Result]:
    """A topic that cannot prepare what it needs, or that ends early, is not tried: that is no success."""
    try:
        yield from topic()
    except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:
        yield _not_tried(f"{type(error).__name__}: {error}")


def _not_tried(why: str) -> Result:
    return Result("the rest of this topic", 0, Verdict.NOT_TRIED, why)


def exit_code(results: Iterable[Result]) -> int:
    """1 if anything got through or was not tried, also if nothing was tried at all. What needs root may be
    left to root."""
    verdicts = {result.verdict for result in results} - {Verdict.SKIPPED}
    return 0 if verdicts == {Verdict.REFUSED} else 1


def table(results: list[Result]) -> str:
    """Rows by topic. Refused attacks of one kind share a row; all others have one each."""
    by_topic = groupby(results, lambda result: result.topic)
    rows = [row for topic, of_topic in by_topic for row in _rows(topic, list(of_topic))]
    widths = [max(len(row[column]) for row in rows) for column in range(4)] if rows else [0] * 4
    lines = ["  ".join((*map(str.ljust, row[:4], widths), row[4])).rstrip() for row in rows]
    return "\n".join([*lines, "", summary(results)])


def summary(results: list[Result]) -> str:
    count = {verdict: sum(result.verdict is verdict for result in results) for verdict in Verdict}
    tried = count[Verdict.REFUSED] + count[Verdict.GOT_THROUGH]
    text = f"{tried} tried, {count[Verdict.REFUSED]} refused, {count[Verdict.GOT_THROUGH]} got through"
    left = {"not tried": count[Verdict.NOT_TRIED], Verdict.SKIPPED.value: count[Verdict.SKIPPED]}
    return text + "".join(f", {number} {word}" for word, number in left.items() if number)


def _rows(topic: str, results: list[Result]) -> Iterator[tuple[str, str, str, str, str]]:
    """(attack, fault, count, verdict, detail)."""
    yield f"\n{topic}", "", "", "", ""
    for tried in dict.fromkeys(result.tried for result in results):
        of_kind = [result for result in results if result.tried == tried]
        refused = [result for result in of_kind if result.verdict is Verdict.REFUSED]
        if refused:
            yield _row(replace(refused[0], case=""), str(len(refused)))
        for result in of_kind:
            if result.verdict is not Verdict.REFUSED:
                yield _row(result, "1")


def _row(result: Result, count: str) -> tuple[str, str, str, str, str]:
    width = DETAIL if result.verdict is not Verdict.REFUSED else max(30, _columns() - 95)
    attack = f"  {result.tried}: {result.case}" if result.case else f"  {result.tried}"
    detail = result.detail.encode("unicode_escape").decode()  # attackers wrote parts of it
    return (
        attack,
        f"f{result.fault:02d}",
        count,
        result.verdict.value,
        shorten(detail, width, placeholder=" …"),
    )


def _columns() -> int:
    return shutil.get_terminal_size((WIDTH, 24)).columns
