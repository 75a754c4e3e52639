"""Bar charts: accuracy by domain, labels before and after, the losses of descriptors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from markupsafe import Markup

from mudg_core.report.charts.svg import bar, chart, group, line, name_room, tag, text, ticks
from mudg_core.report.data import Descriptor, DomainScores
from mudg_core.report.words import arm_name, count, number, shorten

WIDTH = 800.0
MAX_DOMAINS = 8
MAX_ROWS = 30
MAX_BINS = 24
CHARTED = ("zero_shot", "nearest_neighbours", "mudg")
AVERAGED = tuple(f"{arm}_averaged" for arm in CHARTED)


def accuracy(scores: Mapping[str, DomainScores]) -> Markup:
    """Grouped bars, a group for each domain and one, set apart, for their mean with its spread over seeds."""
    arms = charted(scores)
    domains = list(dict.fromkeys(d for arm in arms for d in scores[arm].domains))[:MAX_DOMAINS]
    grid = ticks(0, max([1.0, *(_top(scores[arm]) for arm in arms)]), 5)
    scale = 210 / grid[-1]
    step = (WIDTH - 60) / (len(domains) + 1.25)
    parts = [_gridline(34, WIDTH - 6, 240 - value * scale, number(value, 0)) for value in grid]
    for place, domain in enumerate(domains):
        values = [(arm, scores[arm].domains.get(domain, math.nan), 0.0) for arm in arms]
        parts.append(_cluster(values, domain, 44 + place * step, step, scale))
    left = 44 + (len(domains) + 0.25) * step
    means = [(arm, scores[arm].mean, scores[arm].std) for arm in arms]
    parts.append(bar(left - 4, 6, step + 8, 262, "panel", round_=6))
    parts.append(_cluster(means, "mean ± std" if any(m[2] for m in means) else "mean", left, step, scale))
    return chart("Accuracy in percent by domain: " + _spoken(arms, scores), WIDTH, 272.0, *parts)


def charted(scores: Mapping[str, DomainScores]) -> list[str]:
    """The arms that the chart shows: those with a single prompt, or else those with averaged ones."""
    return [arm for arm in CHARTED if arm in scores] or [arm for arm in AVERAGED if arm in scores]


def _top(score: DomainScores) -> float:
    values = (score.mean + score.std, *score.domains.values())
    return max((value for value in values if math.isfinite(value)), default=1.0)


def _spoken(arms: Sequence[str], scores: Mapping[str, DomainScores]) -> str:
    return ", ".join(f"{arm_name(arm)} {number(scores[arm].mean)} on average" for arm in arms)


def _gridline(left: float, right: float, y: float, words: str) -> Markup:
    return group([line((left, y), (right, y), "grid"), text(left - 8, y + 4, words, "tick", "end")])


def _cluster(
    values: Sequence[tuple[str, float, float]], name: str, left: float, step: float, scale: float
) -> Markup:
    """One bar for each arm, its value above it, the name of the group below."""
    width = min(step * 0.84 / max(len(values), 1), 46)
    start = left + (step - width * len(values)) / 2
    parts = [
        _column(arm, value, spread, name, start + place * width, width, scale)
        for place, (arm, value, spread) in enumerate(values)
        if math.isfinite(value)
    ]
    label = text(left + step / 2, 260, shorten(name, int(step / 7)), "name", "middle", tip=name)
    return group([*parts, label])


def _column(arm: str, value: float, spread: float, name: str, x: float, width: float, scale: float) -> Markup:
    top = 240 - value * scale
    tip = f"{arm_name(arm)}, {name}: {number(value)} %" + (f" ± {number(spread)}" if spread else "")
    middle, reach = x + width / 2, spread * scale
    whisker = [line((middle, top - reach), (middle, top + reach), "whisker")] if spread else []
    words = number(value, 1 if width >= 27 else 0)
    strong = "value strong" if arm.startswith("mudg") else "value"
    mark = bar(x + 1, top, width - 2, 240 - top, f"arm-{arm.removesuffix('_averaged')}", tip)
    return group([mark, *whisker, text(middle, top - 5 - reach, words, strong, "middle")])


def labels(classes: Sequence[str], before: Sequence[int], after: Sequence[int]) -> Markup:
    """Images of each class before and after selection, side by side.

    The two sides have their own scales: hundreds before and sixteen after would leave nothing to see.
    """
    rows = _ends(sorted(zip(before, after, classes, strict=False), key=lambda r: (-r[0], r[2])))
    tops = (max([1, *before]), max([1, *after]))
    room = name_room([name for _, _, name in rows])
    half = (WIDTH - room) / 2
    parts = [text(room, 14, "after pseudo-labelling", "head")]
    parts.append(text(room + half, 14, "in the training set", "head"))
    for place, (old, new, name) in enumerate(rows):
        y = 26.0 + place * 20
        parts.append(text(room - 12, y + 11, shorten(name, 24), "name", "end", tip=name))
        parts.append(_measure(room, y, (half - 70) * old / tops[0], old, "arm-zero_shot", name))
        parts.append(_measure(room + half, y, (half - 70) * new / tops[1], new, "arm-mudg", name))
    title = f"Images per class before and after selection, {count(len(rows), 'class')} shown"
    return chart(title, WIDTH, 34.0 + 20 * len(rows), *parts)


def _ends(rows: Sequence[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The first and the last when there are too many rows for one chart."""
    half = MAX_ROWS // 2
    return list(rows) if len(rows) <= MAX_ROWS else [*rows[:half], *rows[-half:]]


def _measure(x: float, y: float, width: float, value: int, class_: str, name: str) -> Markup:
    mark = bar(x, y, width, 14, class_, f"{name}: {value:,}")
    return group([mark, text(x + width + 6, y + 11, f"{value:,}", "value")])


def descriptor_losses(descriptors: Sequence[Descriptor], groups: int) -> Markup:
    """How many descriptors have which loss out of `groups`, the chosen ones in colour."""
    values = [d.loss for d in descriptors]
    low, high = min(values, default=0), max(values, default=0)
    size = max(1, math.ceil((high - low + 1) / MAX_BINS))
    edges = list(range(low, high + size + 1, size))
    bins = [[d for d in descriptors if a <= d.loss < b] for a, b in pairwise(edges)]
    width = min(WIDTH / len(bins), 64)
    scale = 130 / max(len(b) for b in bins) if values else 0.0
    parts: list[str] = [line((0, 155), (width * len(bins), 155), "axis")]
    for place, inside in enumerate(bins):
        name = str(edges[place]) if size == 1 else f"{edges[place]}-{edges[place + 1] - 1}"
        parts.append(_stack(inside, name, place * width, width, scale))
    words = f"loss: how many of {count(groups, 'group')} of similar classes are pulled together"
    parts.append(text(1, 192, f"{words}; lower is better", "tick"))
    return chart(f"Losses of {count(len(values), 'descriptor')}", WIDTH, 198.0, *parts)


def _stack(inside: Sequence[Descriptor], name: str, x: float, width: float, scale: float) -> Markup:
    chosen = sum(d.chosen for d in inside)
    full, part = len(inside) * scale, chosen * scale
    tip = f"loss {name}: {count(len(inside), 'descriptor')}, {chosen} chosen"
    marks = [bar(x + 1, 155 - full, width - 2, full, "arm-zero_shot soft", tip)] if inside else []
    if chosen:
        marks.append(bar(x + 1, 155 - part, width - 2, part, "arm-mudg", tip))
    if inside:
        marks.append(text(x + width / 2, 150 - full, str(len(inside)), "value", "middle"))
    return tag("g", *marks, text(x + width / 2, 172, name, "tick", "middle"))
