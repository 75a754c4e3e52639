"""Charts that read as a list: the funnel, the outcomes, the gain of each class, the time of each stage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from mudg_core.report.charts.svg import Point, bar, chart, group, line, name_room, tag, text, ticks
from mudg_core.report.data import Timing
from mudg_core.report.reasons import MEANING
from mudg_core.report.words import count, duration, number, shorten, signed

WIDTH = 800.0
MAX_GAINS = 24
MAX_STAGES = 30
OUTCOMES = ("chosen", "not needed", "unlike its query", "dead link", "unreadable image")


def funnel(steps: Sequence[tuple[str, int]]) -> Markup:
    """What is left after each step, with the share of the step before it."""
    most = max([1, *(value for _, value in steps)])
    widths = [max(440 * value / most, 2.0) for _, value in steps]
    room = name_room([name for name, _ in steps], 20)
    parts: list[str] = []
    for place, (name, value) in enumerate(steps):
        y = 4.0 + place * 46
        if place:
            parts.append(_neck(room, widths[place - 1], widths[place], y))
        parts.append(_stage(name, value, room, widths[place], y, _share(steps[max(place - 1, 0)], value)))
    title = "Funnel: " + ", ".join(f"{name} {value:,}" for name, value in steps)
    return chart(title, WIDTH, 46.0 * len(steps) - 10, *parts)


def _share(before: tuple[str, int], value: int) -> str:
    """What part of the step before is left; nothing when nothing was lost. More can come of less only where
    images stand in for others."""
    name, total = before
    if total <= 0 or value == total:
        return ""
    if value > total:
        return f"at least {value - total:,} stand-ins"
    return f"{number(100 * value / total, 0 if value * 10 >= total else 1)} % of {name}"


def _neck(room: float, above: float, below: float, y: float) -> Markup:
    corners: list[Point] = [(room, y - 16), (room + above, y - 16), (room + below, y), (room, y)]
    return tag("polygon", points=" ".join(f"{x:.1f},{at:.1f}" for x, at in corners), class_="arm-mudg faint")


def _stage(name: str, value: int, room: float, width: float, y: float, share: str) -> Markup:
    label = text(room - 12, y + 20, shorten(name, 20), "name", "end", tip=name)
    amount = text(room + width + 10, y + 20, f"{value:,}", "value strong big")
    aside = text(room + width + 24 + 8.5 * len(f"{value:,}"), y + 20, share, "tick")
    return group([bar(room, y, width, 30, "arm-mudg", f"{name}: {value:,}"), label, amount, aside])


def outcomes(counts: Mapping[str, int]) -> Markup:
    """One bar of all images that were tried, cut by what became of them; the words are a legend beside it."""
    known = [o for o in OUTCOMES if counts.get(o)] + sorted(o for o in counts if o not in OUTCOMES)
    total = max(sum(counts[o] for o in known), 1)
    parts: list[str] = []
    x = 0.0
    for outcome in known:
        width = WIDTH * counts[outcome] / total
        words = f"{outcome}: {counts[outcome]:,} ({number(100 * counts[outcome] / total)} %)"
        parts.append(bar(x, 0, max(width - 2, 1), 22, _outcome_class(outcome), words, round_=3))
        x += width
    spoken = ", ".join(f"{o} {counts[o]:,}" for o in known)
    return chart(f"What became of the images that were tried: {spoken}", WIDTH, 22.0, *parts, kind="strip")


def _outcome_class(outcome: str) -> str:
    return f"outcome-{OUTCOMES.index(outcome)}" if outcome in OUTCOMES else "outcome-other"


def outcome_legend(counts: Mapping[str, int]) -> list[tuple[str, str, str, str]]:
    """(CSS class, words, count, what it means), in the order of the bar."""
    known = [o for o in OUTCOMES if counts.get(o)] + sorted(o for o in counts if o not in OUTCOMES)
    return [(_outcome_class(o), o, f"{counts[o]:,}", MEANING.get(o, "")) for o in known]


def class_gains(classes: Sequence[str], before: Sequence[float], after: Sequence[float]) -> Markup:
    """Zero-shot to MUDG for each class, greatest gain first; of many, the ends, where the news is."""
    rows = [(b, a, n) for b, a, n in zip(before, after, classes, strict=False) if math.isfinite(a - b)]
    rows.sort(key=lambda row: (row[0] - row[1], row[2]))
    half = MAX_GAINS // 2
    shown = rows if len(rows) <= MAX_GAINS else rows[:half] + rows[-half:]
    bottom = 30.0 + 22 * len(shown)
    room = name_room([row[2] for row in shown])
    parts: list[str] = [_rule(value, room, bottom) for value in ticks(0, 100, 5)]
    parts += [_dumbbell(*row, room=room, y=38.0 + 22 * place) for place, row in enumerate(shown)]
    title = f"Accuracy of each class, zero-shot to MUDG, {count(len(shown), 'class')} shown"
    return chart(title, WIDTH, bottom + 4, *parts)


def _across(value: float, room: float) -> float:
    return room + value / 100 * (WIDTH - room - 80)


def _rule(value: float, room: float, bottom: float) -> Markup:
    x = _across(value, room)
    words = text(x, 14, f"{value:.0f}" + (" %" if value == 100 else ""), "tick", "middle")
    return group([line((x, 22), (x, bottom), "grid"), words])


def _dumbbell(before: float, after: float, name: str, room: float, y: float) -> Markup:
    start, end = _across(before, room), _across(after, room)
    gain = round(after, 1) - round(before, 1)
    tip = tag("title", f"{name}: {number(before)} % to {number(after)} %")
    side = "up" if gain > 0 else "down" if gain < 0 else "same"
    return group(
        [
            tip,
            text(room - 12, y + 4, shorten(name, 24), "name", "end"),
            line((start, y), (end, y), f"link {side}"),
            tag("circle", cx=start, cy=y, r=4.0, class_="arm-zero_shot"),
            tag("circle", cx=end, cy=y, r=5.5, class_="arm-mudg"),
            text(WIDTH - 6, y + 4, signed(gain), f"value {side}", "end"),
        ]
    )


def timings(stages: Sequence[Timing]) -> Markup:
    """Wall time of each stage in the order it ran."""
    shown = stages[:MAX_STAGES]
    most = max([1e-9, *(s.seconds for s in shown if math.isfinite(s.seconds))])
    room = name_room([stage.stage for stage in shown])
    parts: list[str] = []
    for place, stage in enumerate(shown):
        y, width = 2.0 + place * 26, 440 * stage.seconds / most if math.isfinite(stage.seconds) else 0.0
        words = f"{duration(stage.seconds)}"
        many = f"  {count(stage.artifacts, 'artifact')}"
        parts.append(text(room - 12, y + 14, shorten(stage.stage, 24), "name", "end", tip=stage.stage))
        parts.append(bar(room, y, width, 18, "arm-mudg", f"{stage.stage}: {words},{many}"))
        parts.append(text(room + 10 + width, y + 14, words, "value strong"))
        parts.append(text(room + 22 + width + 7.4 * len(words), y + 14, many, "tick"))
    title = f"Time of {count(len(shown), 'stage')}, {duration(sum(s.seconds for s in stages))} in all"
    return chart(title, WIDTH, 26.0 * len(shown) + 4, *parts)
