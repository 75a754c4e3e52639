"""Bar charts: named rows of bars, and columns between the axes of a plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypeVar

from markupsafe import Markup

from mudg_core.dataset.pseudo_labels import Hubness
from mudg_core.evaluate.comparison import Comparison, RowScore
from mudg_core.report.charts.plot import Plot
from mudg_core.report.charts.svg import WIDTH, bar, chart, dot, group, line, name_room, tag, text, ticks
from mudg_core.report.data import Descriptor, DomainScores, Timing
from mudg_core.report.words import OUTCOMES, arm_name, count, duration, number, shorten, signed
from mudg_core.stage_names import stage_name

T = TypeVar("T")
MAX_DOMAINS = 8
MAX_LABELS = 30
MAX_BINS = 24
MAX_GAINS = 24
MAX_STAGES = 30
MAX_HUBS = 14
CHARTED = ("zero_shot", "nearest_neighbours", "mudg")
COLOURS = {"zero-shot": "arm-zero_shot", "nearest-neighbours": "arm-nearest_neighbours", "mudg": "arm-mudg"}


@dataclass(frozen=True)
class Bar:
    """Its words stand at its end, or at `reach` where that is further right; `aside` follows in grey."""

    value: float
    class_: str
    words: str
    tip: str = ""
    style: str = "value"
    aside: str = ""
    reach: float = 0.0


@dataclass(frozen=True)
class Row:
    """A name and the bars beside it, one below the other."""

    name: str
    bars: Sequence[Bar]
    tip: str = ""


@dataclass(frozen=True)
class Bars:
    """Rows whose bars start at `left`; a value is as many pixels long as `scale` says."""

    rows: Sequence[Row]
    left: float
    scale: float
    step: float = 26.0
    thick: float = 18.0
    top: float = 0.0
    named: bool = True

    @property
    def bottom(self) -> float:
        return self.top + self.step * len(self.rows)

    def parts(self) -> list[Markup]:
        return [part for place, row in enumerate(self.rows) for part in self._row(row, place)]

    def _row(self, row: Row, place: int) -> list[Markup]:
        top = self.top + place * self.step
        middle = top + self.thick * len(row.bars) / 2 + 5
        label = text(self.left - 12, middle, shorten(row.name, 24), "name", "end", tip=row.tip)
        parts = [label] if self.named else []
        for one in row.bars:
            width, y = one.value * self.scale, top + self.thick / 2 + 5
            x = self.left + max(one.value, one.reach) * self.scale + 8
            parts.append(bar(self.left, top, width, self.thick, one.class_, one.tip))
            parts.append(text(x, y, one.words, one.style))
            if one.aside:
                parts.append(text(x + 12 + 8.2 * len(one.words), y, one.aside, "tick"))
            top += self.thick
        return parts


def _ends(rows: Sequence[T], limit: int) -> list[T]:
    """The first and the last when there are too many rows for one chart."""
    return list(rows) if len(rows) <= limit else [*rows[: limit // 2], *rows[-(limit // 2) :]]


def labels(classes: Sequence[str], before: Sequence[int], after: Sequence[int]) -> Markup:
    """Images of each class before and after selection, side by side.

    The two sides have their own scales: hundreds before and sixteen after would leave nothing to see.
    """
    order = sorted(zip(before, after, classes, strict=False), key=lambda row: (-row[0], row[2]))
    shown = _ends(order, MAX_LABELS)
    room = name_room(name for _, _, name in shown)
    half = (WIDTH - room) / 2
    parts = [text(room, 14, "after pseudo-labelling", "head")]
    parts.append(text(room + half, 14, "in the training set", "head"))
    sides = [
        ("arm-zero_shot", before, [old for old, _, _ in shown]),
        ("arm-mudg", after, [new for _, new, _ in shown]),
    ]
    for place, (class_, counts, amounts) in enumerate(sides):
        rows = [
            Row(name, [Bar(amount, class_, f"{amount:,}", f"{name}: {amount:,}")], name)
            for amount, (_, _, name) in zip(amounts, shown, strict=True)
        ]
        scale = (half - 70) / max([1, *counts])
        bars = Bars(rows, room + place * half, scale, step=20, thick=14, top=26, named=place == 0)
        parts += bars.parts()
    title = f"Images per class before and after selection, {count(len(shown), 'class')} shown"
    return chart(title, WIDTH, 34.0 + 20 * len(shown), *parts)


def timings(stages: Sequence[Timing]) -> Markup:
    """Wall time of each stage in the order it ran."""
    rows = []
    for stage in stages[:MAX_STAGES]:
        seconds, words = stage.seconds if math.isfinite(stage.seconds) else 0.0, duration(stage.seconds)
        name, artifacts = stage_name(stage.stage), count(stage.artifacts, "artifact")
        one = Bar(seconds, "arm-mudg", words, f"{name}: {words}, {artifacts}", "value strong", artifacts)
        rows.append(Row(name, [one], f"stage {stage.stage}"))
    most = max([1e-9, *(row.bars[0].value for row in rows)])
    bars = Bars(rows, name_room(row.name for row in rows), 440 / most, top=2)
    title = f"Time of {count(len(rows), 'stage')}, {duration(sum(s.seconds for s in stages))} in all"
    return chart(title, WIDTH, bars.bottom + 2, *bars.parts())


def hubness(classes: Sequence[str], hubs: Hubness) -> Markup:
    """Images of each class by cosine and by rank: the classes on which the two rules differ most, those that
    cosines favour first."""
    counts = list(zip(hubs.by_cosine, hubs.by_rank, range(len(classes)), strict=False))
    greatest = sorted(counts, key=lambda row: (-abs(row[0] - row[1]), row[2]))[:MAX_HUBS]
    rows = []
    for cosine, rank, label in sorted(greatest, key=lambda row: (row[1] - row[0], row[2])):
        name, hub = classes[label], label in hubs.cosine_hubs
        tip = f"{name}: {cosine:,} by cosine, {rank:,} by rank{', a hub' if hub else ''}"
        mark = "hub" if hub else ""
        by_cosine = Bar(cosine, "arm-nearest_neighbours", f"{cosine:,}", tip, aside=mark)
        rows.append(Row(name, [by_cosine, Bar(rank, "arm-mudg", f"{rank:,}", tip, "value strong")], tip))
    room = name_room(row.name for row in rows)
    most = max([1, *(one.value for row in rows for one in row.bars)])
    bars = Bars(rows, room, (WIDTH - room - 90) / most, step=36, thick=13, top=3)
    title = f"Images by cosine and by rank, {count(len(rows), 'class')} with the greatest differences"
    return chart(title, WIDTH, bars.bottom, *bars.parts())


def funnel(steps: Sequence[tuple[str, int]]) -> Markup:
    """What is left after each step, with the share of the step before it."""
    rows = []
    for place, (name, value) in enumerate(steps):
        tip, share = f"{name}: {value:,}", _share(steps[max(place - 1, 0)], value)
        rows.append(Row(name, [Bar(value, "arm-mudg", f"{value:,}", tip, "value strong big", share)], name))
    room = name_room((name for name, _ in steps), 20)
    bars = Bars(rows, room, 440 / max([1, *(value for _, value in steps)]), step=46, thick=30, top=4)
    necks = []
    for place, (above, below) in enumerate(pairwise(value * bars.scale for _, value in steps), 1):
        y = bars.top + place * bars.step
        corners = [(room, y - 16), (room + above, y - 16), (room + below, y), (room, y)]
        points = " ".join(f"{x:.1f},{at:.1f}" for x, at in corners)
        necks.append(tag("polygon", points=points, class_="arm-mudg faint"))
    title = "Funnel: " + ", ".join(f"{name} {value:,}" for name, value in steps)
    return chart(title, WIDTH, max(bars.bottom - 14, 0.0), *necks, *bars.parts())


def _share(before: tuple[str, int], value: int) -> str:
    """What part of the step before is left; nothing when nothing was lost. More can come of less only where
    images replace others."""
    name, total = before
    if total <= 0 or value == total:
        return ""
    if value > total:
        return f"at least {value - total:,} replacements"
    return f"{number(100 * value / total, 0 if value * 10 >= total else 1)} % of {name}"


def outcomes(counts: Mapping[str, int]) -> Markup:
    """One bar of all images that were tried, cut by outcome; the words are a legend beside it."""
    total = max(sum(counts.values()), 1)
    parts, x = [], 0.0
    for outcome, class_ in outcome_classes(counts):
        width = WIDTH * counts[outcome] / total
        words = f"{outcome}: {counts[outcome]:,} ({number(100 * counts[outcome] / total)} %)"
        parts.append(bar(x, 0, max(width - 2, 1), 22, class_, words, round_=3))
        x += width
    spoken = ", ".join(f"{outcome} {counts[outcome]:,}" for outcome, _ in outcome_classes(counts))
    return chart(f"Outcomes of the images that were tried: {spoken}", WIDTH, 22.0, *parts, kind="strip")


def outcome_classes(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """(outcome, its CSS class) in the order of the bar; unknown outcomes last."""
    known = [(name, f"outcome-{place}") for place, name in enumerate(OUTCOMES) if counts.get(name)]
    return known + [(name, "outcome-other") for name in sorted(counts) if name not in OUTCOMES]


def comparison(table: Comparison) -> Markup:
    """All rows, group by group, against a line at zero-shot. The axis starts near the lowest bar: rows differ
    by points, and from 0 they would all look the same."""
    values = [value for row in table.rows for value in _values(row) if math.isfinite(value)]
    marks = ticks(max(0.0, min(values, default=0.0) - 2), max(values, default=1.0), 6)
    left = name_room(row.name for row in table.rows)
    scale = (WIDTH - left - 70) / (marks[-1] - marks[0])

    def at(value: float) -> float:
        return left + (value - marks[0]) * scale

    parts, bottom = list[Markup](), 0.0
    for name, rows in groupby(table.rows, key=lambda row: row.group):
        own = list(rows)
        compared = [_compared(row, marks[0]) for row in own]
        bars = Bars(compared, left, scale, step=22, thick=15, top=bottom + 30)
        parts += [text(left, bottom + 20, name, "head"), *bars.parts()]
        for place, row in enumerate(own):
            middle = bars.top + place * bars.step + 7.5
            if row.accuracy:
                low, high = at(row.accuracy.low), at(row.accuracy.high)
                parts.append(line((low, middle), (high, middle), "whisker"))
            for backbone, value in row.paper.items():
                tip = f"paper, {backbone}: {number(value)} %"
                parts.append(dot(at(value), middle, 4, "dot arm-zero_shot", tip))
        bottom = bars.bottom
    plain = table.row("zero-shot")
    axis = [line((at(plain.mean), 8), (at(plain.mean), bottom), "axis")] if plain else []
    grid = [line((at(value), 8), (at(value), bottom), "grid") for value in marks]
    names = [text(at(value), bottom + 16, number(value, 0), "tick", "middle") for value in marks]
    spoken = ", ".join(f"{row.name} {number(row.mean)}" for row in table.rows)
    title = f"Accuracy in percent on {table.target}: {spoken}"
    return chart(title, WIDTH, bottom + 24, *grid, *names, *axis, *parts)


def _values(row: RowScore) -> list[float]:
    return [row.mean, *_interval(row), *row.paper.values()]


def _interval(row: RowScore) -> tuple[float, ...]:
    """The ends of the 95 % interval, where there is one."""
    return (row.accuracy.low, row.accuracy.high) if row.accuracy else ()


def _compared(row: RowScore, start: float) -> Row:
    if not math.isfinite(row.mean):
        return Row(row.name, [], row.about)
    interval = [number(value) for value in _interval(row)]
    tip = f"{row.name} ({row.about}): {number(row.mean)} %"
    tip += f", 95 % interval {' to '.join(interval)}" if interval else ""
    style = "value strong" if row.name == "mudg" else "value"
    reach, class_ = max(_values(row)) - start, COLOURS.get(row.name, "arm-mudg soft")
    mean = Bar(row.mean - start, class_, number(row.mean), tip, style, reach=reach)
    return Row(row.name, [mean], row.about)


def class_gains(classes: Sequence[str], before: Sequence[float], after: Sequence[float]) -> Markup:
    """Zero-shot to MUDG for each class, greatest gain first; of many, the ends, where the news is."""
    rows = [(b, a, n) for b, a, n in zip(before, after, classes, strict=False) if math.isfinite(a - b)]
    shown = _ends(sorted(rows, key=lambda row: (row[0] - row[1], row[2])), MAX_GAINS)
    bottom, left = 30.0 + 22 * len(shown), name_room(name for _, _, name in shown)
    scale = (WIDTH - left - 80) / 100
    parts: list[Markup] = []
    for value in ticks(0, 100, 5):
        x, words = left + value * scale, f"{value:.0f}" + (" %" if value == 100 else "")
        parts += [line((x, 22), (x, bottom), "grid"), text(x, 14, words, "tick", "middle")]
    for place, (plain, ours, name) in enumerate(shown):
        parts.append(_dumbbell(plain, ours, name, left, scale, 38.0 + 22 * place))
    title = f"Accuracy of each class, zero-shot to MUDG, {count(len(shown), 'class')} shown"
    return chart(title, WIDTH, bottom + 4, *parts)


def _dumbbell(plain: float, ours: float, name: str, left: float, scale: float, y: float) -> Markup:
    start, end = left + plain * scale, left + ours * scale
    gain = round(ours, 1) - round(plain, 1)
    side = "up" if gain > 0 else "down" if gain < 0 else "same"
    return group(
        [
            tag("title", f"{name}: {number(plain)} % to {number(ours)} %"),
            text(left - 12, y + 4, shorten(name, 24), "name", "end"),
            line((start, y), (end, y), f"link {side}"),
            dot(start, y, 4.0, "arm-zero_shot"),
            dot(end, y, 5.5, "arm-mudg"),
            text(WIDTH - 6, y + 4, signed(gain), f"value {side}", "end"),
        ]
    )


def accuracy(scores: Mapping[str, DomainScores]) -> Markup:
    """Grouped columns, a group for each domain and one, set apart, for their mean with its spread over
    seeds."""
    arms = charted_arms(scores)
    domains = list(dict.fromkeys(d for arm in arms for d in scores[arm].domains))[:MAX_DOMAINS]
    tops = [v for arm in arms for v in (scores[arm].mean + scores[arm].std, *scores[arm].domains.values())]
    apart = len(domains) + 0.25
    room = int(740 / (apart + 1) / 7)
    mean = "mean ± std" if any(scores[arm].std for arm in arms) else "mean"
    names = [(place + 0.5, shorten(name, room)) for place, name in enumerate(domains)]
    spoken = ", ".join(f"{arm_name(arm)} {number(scores[arm].mean)} on average" for arm in arms)
    plot = Plot(
        title=f"Accuracy in percent by domain: {spoken}",
        series=[],
        x_ticks=[(0.0, ""), *names, (apart + 0.5, mean), (apart + 1, "")],
        x_name="",
        y_ticks=ticks(0, max([1.0, *(value for value in tops if math.isfinite(value))]), 5),
        y_words=lambda value: number(value, 0),
        height=284.0,
    )
    (left, _), (right, _) = plot.at((apart, 0)), plot.at((apart + 1, 0))
    panel = bar(left, 6, right - left, 262, "panel", round_=6)
    parts = []
    for place, name in enumerate(domains):
        values = [(arm, scores[arm].domains.get(name, math.nan), 0.0) for arm in arms]
        parts += _columns(plot, place, name, values)
    parts += _columns(plot, apart, mean, [(arm, scores[arm].mean, scores[arm].std) for arm in arms])
    return plot.draw(*parts, behind=[panel])


def charted_arms(scores: Mapping[str, DomainScores]) -> list[str]:
    """The arms that the chart shows: those with a single prompt, or else those with averaged ones."""
    averaged = [f"{arm}_averaged" for arm in CHARTED]
    return [arm for arm in CHARTED if arm in scores] or [arm for arm in averaged if arm in scores]


def _columns(plot: Plot, start: float, name: str, values: Sequence[tuple[str, float, float]]) -> list[Markup]:
    """One column for each arm, with its spread, and its value above it."""
    pixel = 1 / (plot.at((1, 0))[0] - plot.at((0, 0))[0])
    width = min(0.84 / max(len(values), 1), 46 * pixel)
    parts = []
    for place, (arm, value, spread) in enumerate(values):
        if not math.isfinite(value):
            continue
        left = start + 0.5 + (place - len(values) / 2) * width
        middle, colour = left + width / 2, f"arm-{arm.removesuffix('_averaged')}"
        tip = f"{arm_name(arm)}, {name}: {number(value)} %" + (f" ± {number(spread)}" if spread else "")
        parts.append(plot.column(left + pixel, left + width - pixel, value, colour, tip))
        low, high = plot.at((middle, value - spread)), plot.at((middle, value + spread))
        parts += [line(low, high, "whisker")] if spread else []
        style = "value strong" if arm.startswith("mudg") else "value"
        words = number(value, 1 if width >= 27 * pixel else 0)
        parts.append(text(high[0], high[1] - 5, words, style, "middle"))
    return parts


def descriptor_losses(descriptors: Sequence[Descriptor], groups: int) -> Markup:
    """How many descriptors have which loss out of `groups`, the chosen ones in colour."""
    losses = [d.loss for d in descriptors]
    low, high = min(losses, default=0), max(losses, default=0)
    size = max(1, math.ceil((high - low + 1) / MAX_BINS))
    edges = list(range(low, high + size + 1, size))
    names = [str(a) if size == 1 else f"{a}-{b - 1}" for a, b in pairwise(edges)]
    bins = [[d for d in descriptors if a <= d.loss < b] for a, b in pairwise(edges)]
    words = f"loss: in how many of {count(groups, 'group')} of similar classes it raises the mean cosine"
    plot = Plot(
        title=f"Losses of {count(len(losses), 'descriptor')}",
        series=[],
        x_ticks=[(0.0, ""), *((i + 0.5, name) for i, name in enumerate(names)), (max(len(bins), 12), "")],
        x_name=f"{words}; lower is better",
        y_ticks=ticks(0, max(1, *(len(inside) for inside in bins)), 4),
        y_words=lambda value: number(value, 0),
        height=210.0,
    )
    parts = []
    for place, (name, inside) in enumerate(zip(names, bins, strict=True)):
        chosen = sum(d.chosen for d in inside)
        tip = f"loss {name}: {count(len(inside), 'descriptor')}, {chosen} chosen"
        for amount, class_ in ((len(inside), "arm-zero_shot soft"), (chosen, "arm-mudg")):
            parts += [plot.column(place + 0.04, place + 0.96, amount, class_, tip)] if amount else []
        x, top = plot.at((place + 0.5, len(inside)))
        parts += [text(x, top - 5, str(len(inside)), "value", "middle")] if inside else []
    return plot.draw(*parts)
