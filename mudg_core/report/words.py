"""Numbers, names and verdicts in words, in one place so that headline, tables and charts agree. (Names of
stages: mudg_core/stage_names.py.)"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from mudg_core.report.data import DomainScores, GalleryImage, TargetReport

ARMS = {
    "zero_shot": "Zero-shot",
    "nearest_neighbours": "Nearest neighbours",
    "mudg": "MUDG",
    "zero_shot_averaged": "Zero-shot, averaged prompts",
    "nearest_neighbours_averaged": "Nearest neighbours, averaged prompts",
    "mudg_averaged": "MUDG, averaged prompts",
}
# The first pair that was measured carries the headline.
PAIRS = (("mudg", "zero_shot", ""), ("mudg_averaged", "zero_shot_averaged", ", prompts averaged"))
OUTCOMES = {  # of an image that was tried, in the order of the chart
    "chosen": "in the training set",
    "not needed": "not tried: its group was full",
    "unlike its query": "the image at the link does not match its query any more",
    "dead link": "the link gave no image",
    "unreadable image": "the file at the link is not a readable image",
}
DETAILS = {
    "HTTP 401": "login required (HTTP 401)",
    "HTTP 403": "access denied (HTTP 403)",
    "HTTP 404": "page not found (HTTP 404)",
    "HTTP 410": "removed for good (HTTP 410)",
    "HTTP 429": "too many requests (HTTP 429)",
    "HTTP 5xx": "server error (HTTP 5xx)",
    "bad TLS": "no secure connection (bad TLS)",
    "connection cut": "connection lost",
    "dead host": "server not found",
    "hash mismatch": "content changed since the crawl",
    "no answer": "no answer",
    "no result": "no answer",
    "opted out": "opted out by its owner",
    "over a limit": "too large or too slow",
    "timed out": "timed out",
}
MINUS, TIMES = "\u2212", "\u00d7"
PLURALS = {"class": "classes"}


def arm_name(arm: str) -> str:
    """An arm that this version does not know keeps its own name."""
    return ARMS.get(arm, arm.replace("_", " "))


def number(value: float, digits: int = 1) -> str:
    """A fixed number of digits with a true minus sign, or n/a: a report must survive a diverged run."""
    if not math.isfinite(value):
        return "n/a"
    text = f"{value:,.{digits}f}"
    return text.replace("-", MINUS) if float(text.replace(",", "")) else text.lstrip("-")


def signed(value: float, digits: int = 1) -> str:
    """A difference, with its sign always shown."""
    text = number(value, digits)
    return text if text.startswith((MINUS, "n")) or not float(text.replace(",", "")) else f"+{text}"


def count(value: int, noun: str) -> str:
    """'1 seed', '4 domains'."""
    return f"{value:,} {noun if value == 1 else PLURALS.get(noun, noun + 's')}"


def duration(seconds: float) -> str:
    """Time to two units, which is as much as anybody reads."""
    if not math.isfinite(seconds) or seconds < 60:
        return f"{number(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def shorten(text: str, limit: int) -> str:
    """One line of at most `limit` characters; charts keep the full text in a tooltip."""
    line = " ".join(text.split())
    if columns(line) <= limit:
        return line
    while columns(line) > limit - 1:
        line = line[: min(len(line) - 1, limit - 1)]
    return line.rstrip() + "…"


def columns(text: str) -> int:
    """Width in columns of a terminal: Chinese, Japanese and Korean take two a character."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def detail(reason: str) -> str:
    """A counted reason (`HTTP 404`, `image: truncated`, `refused: scheme`) in plain words."""
    if reason in DETAILS:
        return DETAILS[reason]
    kind, colon, rest = reason.partition(": ")
    if colon and kind == "refused":
        return f"not fetched, for safety: {rest}"
    return rest if colon and kind in ("image", "tar", "text") else reason


def why(image: GalleryImage, min_cosine: float | None) -> str:
    """The exact reason, in a few words; empty when the outcome says all there is."""
    if image.detail:
        return detail(image.detail)
    if image.outcome != "unlike its query" or image.fresh_cosine is None:
        return ""
    cosine = number(image.fresh_cosine, 2)
    if min_cosine is None:
        return f"cosine {cosine}"
    least = number(min_cosine, 2)  # more digits where two would hide the difference
    return f"cosine {number(image.fresh_cosine, 4) if cosine == least else cosine}, below {least}"


def sentence(image: GalleryImage, min_cosine: float | None) -> str:
    """All of it: `dead link: the link gave no image; page not found (HTTP 404)`."""
    parts = [part for part in (OUTCOMES.get(image.outcome, ""), why(image, min_cosine)) if part]
    return f"{image.outcome}: {'; '.join(parts)}" if parts else image.outcome


@dataclass(frozen=True)
class Verdict:
    """The result of one target: who won, by how much, and what to keep in mind."""

    outcome: str  # "better" | "worse" | "level" | "unknown"
    mudg: str = ""
    zero_shot: str = ""
    points: str = ""
    scope: str = ""  # 'over 4 domains, 1 seed'
    caveats: tuple[str, ...] = ()

    def pieces(self, name: str) -> tuple[tuple[str, str], ...]:
        """The headline as (words, role), as honest when the method did not help as when it did."""
        if self.outcome == "unknown":
            return (name, "name"), (" was not evaluated: the target has no evaluation data.", "")
        ours = "mudg" if self.outcome == "better" else self.outcome
        both = ((f"{self.mudg} %", ours), (" against ", ""), (f"{self.zero_shot} % zero-shot", "plain"))
        points = ((f"{self.points} points", self.outcome), (f" {self.scope}.", ""))
        if self.outcome == "better":
            return ("MUDG ", ""), *both, (" on ", ""), (name, "name"), (": ", ""), *points
        opening = {"worse": "MUDG is not better on ", "level": "MUDG makes no difference on "}[self.outcome]
        return (opening, ""), (name, "name"), (": ", ""), *both, (", ", ""), *points


def verdict(target: TargetReport) -> Verdict:
    """Compares MUDG with zero-shot; the difference is of rounded numbers, so that readers can add."""
    for ours, theirs, note in PAIRS:
        if ours in target.scores and theirs in target.scores:
            mudg, plain = target.scores[ours], target.scores[theirs]
            if math.isfinite(mudg.mean) and math.isfinite(plain.mean):
                return _compare(target, mudg, plain, note)
    return Verdict("unknown")


def _compare(target: TargetReport, mudg: DomainScores, plain: DomainScores, note: str) -> Verdict:
    points = round(round(mudg.mean, 1) - round(plain.mean, 1), 1)
    return Verdict(
        outcome="level" if points == 0 else "better" if points > 0 else "worse",
        mudg=number(mudg.mean),
        zero_shot=number(plain.mean),
        points=signed(points),
        scope=f"over {count(len(mudg.domains), 'domain')}, {count(len(target.seeds), 'seed')}{note}",
        caveats=tuple(_caveats(target, mudg, plain, points)),
    )


def _caveats(target: TargetReport, mudg: DomainScores, plain: DomainScores, points: float) -> list[str]:
    """What a careful reader would ask about next."""
    caveats = []
    if len(target.seeds) < 2:
        caveats.append("One seed: the spread between runs is unknown.")
    elif 0 < abs(points) <= math.hypot(mudg.std, plain.std):
        caveats.append("The difference is within the spread between seeds.")
    lower = [d for d, value in mudg.domains.items() if value < plain.domains.get(d, -math.inf)]
    if lower and points > 0:
        caveats.append(f"MUDG is below zero-shot on {', '.join(shorten(d, 40) for d in lower[:5])}.")
    near = target.scores.get("nearest_neighbours")
    if near and mudg is target.scores.get("mudg") and near.mean >= mudg.mean:
        caveats.append(f"Nearest neighbours alone reach {number(near.mean)} %, no less than MUDG.")
    return caveats


def summary(verdicts: Sequence[Verdict]) -> str:
    """One line over several targets."""
    known = [v for v in verdicts if v.outcome != "unknown"]
    if not known:
        return f"{count(len(verdicts), 'classifier')} trained, none evaluated: no target has evaluation data."
    wins = sum(v.outcome == "better" for v in known)
    evaluated = count(len(known), "evaluated target")
    opening = f"MUDG is better than zero-shot on {wins} of {evaluated}"
    if not wins:
        opening = f"MUDG is not better than zero-shot on {evaluated}"
    missing = len(verdicts) - len(known)
    return f"{opening}; {count(missing, 'target')} not evaluated." if missing else f"{opening}."
