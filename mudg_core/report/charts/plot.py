"""Line charts: axes, series with dots and bands, and what the report draws between them. Also the map."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from mudg_core.dataset.image_map import ClassMap
from mudg_core.evaluate.measures import BINS, Calibration
from mudg_core.report.charts.svg import WIDTH, Point, bar, chart, dot, group, line, path, tag, text, ticks
from mudg_core.report.data import AlphaPoint
from mudg_core.report.words import arm_name, count, number

HEIGHT, HALF = 250.0, 380.0
MAX_POINTS = 240
MAX_SEEDS = 8
MAP_HEIGHT, MAP_MARGIN = 560.0, 10.0
MAX_COLOURS = 12
KINDS = {  # what is drawn later lies on top
    "candidate": "candidate",
    "nearest": "nearest to the plain prompt",
    "chosen": "chosen",
    "both": "both",
}
RADIUS = {"candidate": 2.4, "nearest": 4.0, "chosen": 4.4, "both": 4.4}
_LEFT, _TOP, _FOOT = 52.0, 14.0, 40.0


@dataclass(frozen=True)
class Series:
    """One line; `soft` ones are the raw data behind a smoothed line. A band is (low, high) of each point."""

    points: Sequence[Point]
    class_: str
    soft: bool = False
    dots: bool = False
    band: Sequence[tuple[float, float]] = ()
    tips: Sequence[str] = ()


@dataclass(frozen=True)
class Plot:
    """Axes and what is drawn between them. Ticks of x are given as (value, words)."""

    title: str
    series: Sequence[Series]
    x_ticks: Sequence[tuple[float, str]]
    x_name: str
    y_ticks: Sequence[float]
    y_words: Callable[[float], str]
    width: float = WIDTH
    x: Callable[[float], float] = field(default=lambda value: value)
    height: float = HEIGHT
    upright: bool = False  # grid lines at the ticks of x too

    def draw(self, *marks: Markup, behind: Sequence[Markup] = ()) -> Markup:
        return chart(self.title, self.width, self.height, *behind, *self.parts(), *marks)

    def parts(self) -> list[Markup]:
        """What the picture consists of; bands lie behind every line."""
        bands = [self._band(series) for series in self.series if series.band]
        return [*self._grid(), *bands, *(self._line(series) for series in self.series)]

    def at(self, point: Point) -> Point:
        left, right = (self.x(value) for value in (self.x_ticks[0][0], self.x_ticks[-1][0]))
        low, high = self.y_ticks[0], self.y_ticks[-1]
        across = (self.x(point[0]) - left) / ((right - left) or 1)
        up = (point[1] - low) / ((high - low) or 1)
        x = _LEFT + across * (self.width - _LEFT - 24)
        return x, self.height - _FOOT - up * (self.height - _FOOT - _TOP)

    def column(self, start: float, end: float, value: float, class_: str, tip: str) -> Markup:
        """A bar that stands on the lowest tick."""
        (left, top), (right, foot) = self.at((start, value)), self.at((end, self.y_ticks[0]))
        return bar(left, top, right - left, foot - top, class_, tip)

    def _grid(self) -> list[Markup]:
        right, foot = self.width - 16, self.height - _FOOT
        parts = []
        for value in self.y_ticks:
            y = self.at((self.x_ticks[0][0], value))[1]
            label = text(_LEFT - 8, y + 4, self.y_words(value), "tick", "end")
            parts.append(group([line((_LEFT, y), (right, y), "grid"), label]))
        for value, words in self.x_ticks:
            x = self.at((value, self.y_ticks[0]))[0]
            if self.upright:
                parts.append(line((x, _TOP), (x, foot), "grid"))
            if words:
                parts.append(text(x, foot + 17, words, "tick", "middle"))
        return [*parts, text(right, foot + 34, self.x_name, "tick", "end")] if self.x_name else parts

    def _line(self, series: Series) -> Markup:
        points = [self.at(point) for point in series.points]
        kind = f"line {series.class_}" + (" soft" if series.soft else "")
        parts = [path(points, kind)] if len(points) > 1 else []
        if series.dots or len(points) == 1:
            tips = series.tips or [self.y_words(value) for _, value in series.points]
            pairs = zip(points, tips, strict=True)
            parts += [dot(x, y, 3.5, f"dot {series.class_}", tip) for (x, y), tip in pairs]
        return group(parts)

    def _band(self, series: Series) -> Markup:
        """There along the upper ends, and back along the lower ones; a single point has a whisker."""
        ends = list(zip(series.points, series.band, strict=True))
        there = [self.at((x, high)) for (x, _), (_, high) in ends]
        back = [self.at((x, low)) for (x, _), (low, _) in reversed(ends)]
        if len(ends) == 1:
            return line(there[0], back[0], f"line {series.class_}")
        return path([*there, *back], f"band {series.class_}")


def recall(recall_at_1: Mapping[int, float]) -> Markup:
    """Recall of held-out captions against cells probed; a doubling of the cost is one step right."""
    points = [(float(n), r) for n, r in sorted(recall_at_1.items()) if n > 0 and math.isfinite(r)]
    probes = [n for n, _ in points] or [1.0]
    doubling = all(b == 2 * a for a, b in pairwise(probes))
    return Plot(
        title="Recall at 1 by cells probed: " + ", ".join(f"{n:.0f}: {100 * r:.0f} %" for n, r in points),
        series=[Series(points, "arm-mudg", dots=True)],
        x_ticks=[(n, f"{n:,.0f}") for n in probes],
        x_name="cells probed (each step doubles the work)" if doubling else "cells probed, log scale",
        y_ticks=ticks(0, max([0.2, *(r for _, r in points)]), 6),
        y_words=lambda value: f"{number(100 * value, 0)} %",
        x=math.log2,
    ).draw()


def objective(values: Sequence[float], title: str, class_: str, percent: bool = False) -> Markup:
    """One objective of k-means by iteration; two of them stand side by side, as their scales differ."""
    return by_iteration(values, title, class_, percent).draw()


def by_iteration(values: Sequence[float], title: str, class_: str, percent: bool = False) -> Plot:
    """The first value is that of the start. A share in 0..1 is shown as a percentage."""
    points = [(x, 100 * y if percent else y) for x, y in _finite(values, 0)]
    series = Series(points, class_, dots=len(values) <= 30)
    return _by_step([series], title, "iteration", HALF, " %" if percent else "")


def training(losses: Sequence[Sequence[float]]) -> Markup:
    """Training loss of each seed, smoothed, over the raw values."""
    curves = [_finite(curve) for curve in losses[:MAX_SEEDS]]
    raw = [Series(thin(curve), f"seed-{i % 4}", soft=True) for i, curve in enumerate(curves)]
    bold = [Series(thin(smooth(curve)), f"seed-{i % 4}") for i, curve in enumerate(curves)]
    return _by_step([*raw, *bold], f"Training loss, {count(len(curves), 'seed')}", "step", WIDTH).draw()


def _by_step(series: Sequence[Series], title: str, x_name: str, width: float, unit: str = "") -> Plot:
    points = [point for one in series for point in one.points] or [(0.0, 0.0)]
    values = [y for _, y in points]
    marks = [v for v in ticks(0, max(x for x, _ in points), 6) if v == int(v)]
    levels = ticks(min(values), max(values), 5)
    digits = max((len(f"{v:.6f}".rstrip("0").split(".")[1]) for v in levels), default=0)
    return Plot(
        title,
        series,
        [(v, f"{v:,.0f}") for v in marks],
        x_name,
        levels,
        lambda value: number(value, digits) + unit,
        width,
    )


def _finite(values: Sequence[float], first: int = 1) -> list[Point]:
    """(step, value) without the steps at which a run diverged."""
    return [(float(i), value) for i, value in enumerate(values, first) if math.isfinite(value)]


def smooth(points: Sequence[Point]) -> list[Point]:
    """Running means from both ends, averaged: one from the start alone would lag behind a falling loss."""
    there = _running([y for _, y in points])
    back = _running([y for _, y in reversed(points)])[::-1]
    return [(x, (a + b) / 2) for (x, _), a, b in zip(points, there, back, strict=True)]


def _running(values: Sequence[float]) -> list[float]:
    """A mean that forgets over a fortieth of the run, without the usual pull towards its start."""
    keep = 1 - 1 / max(len(values) / 40, 1)
    total = weight = 0.0
    means = []
    for value in values:
        total, weight = keep * total + value, keep * weight + 1
        means.append(total / weight)
    return means


def thin(points: Sequence[Point]) -> list[Point]:
    """At most MAX_POINTS, first and last among them: a run of a million steps must not make a 30 MB page."""
    if len(points) <= MAX_POINTS:
        return list(points)
    step = (len(points) - 1) / (MAX_POINTS - 1)
    return [points[round(i * step)] for i in range(MAX_POINTS)]


def _by_confidence(title: str, series: Sequence[Series], y_ticks: Sequence[float]) -> Plot:
    return Plot(
        title=title,
        series=series,
        x_ticks=[(value, f"{value:.0f}") for value in ticks(0, 100, 6)],
        x_name="confidence, percent",
        y_ticks=y_ticks,
        y_words=lambda value: f"{number(value, 0)} %",
        width=HALF,
        height=300.0,
    )


def reliability(arms: Mapping[str, Calibration]) -> Markup:
    """Accuracy by confidence. On the diagonal a classifier is right as often as it says; below it, it is
    overconfident."""
    errors = [f"{arm_name(arm)} calibration error {number(own.ece)} percent" for arm, own in arms.items()]
    diagonal = Series([(0.0, 0.0), (100.0, 100.0)], "ideal")
    answers = [_answers(arm, own) for arm, own in arms.items()]
    title = "Accuracy by confidence: " + ", ".join(errors)
    return _by_confidence(title, [diagonal, *answers], ticks(0, 100, 6)).draw()


def _answers(arm: str, calibration: Calibration) -> Series:
    tips = [
        f"{arm_name(arm)}: {count(one.images, 'prediction')}, confidence {number(one.confidence)} %, "
        f"accuracy {number(one.accuracy)} %"
        for one in calibration.bins
    ]
    points = [(one.confidence, one.accuracy) for one in calibration.bins]
    return Series(points, f"arm-{arm}", dots=True, tips=tips)


def confidences(arms: Mapping[str, Calibration]) -> Markup:
    """How many of the predictions have which confidence."""
    shares = {arm: _shares(calibration) for arm, calibration in arms.items()}
    levels = ticks(0, max([1.0, *(share for bins in shares.values() for _, share in bins)]), 5)
    plot = _by_confidence("Share of predictions by confidence", [], levels)
    width = 100 / BINS * 0.84 / max(len(arms), 1)
    bars = []
    for place, (arm, bins) in enumerate(shares.items()):
        for low, share in bins:
            start = low + 100 / BINS * 0.08 + place * width
            tip = f"{arm_name(arm)}: {number(share)} % of predictions"
            bars.append(plot.column(start, start + width, share, f"arm-{arm}", tip))
    return plot.draw(*bars)


def _shares(calibration: Calibration) -> list[Point]:
    """(lower end, share) of each bin, in percent."""
    total = max(sum(one.images for one in calibration.bins), 1)
    return [(100 * one.low, 100 * one.images / total) for one in calibration.bins]


def alpha_curve(points: Sequence[AlphaPoint]) -> Markup:
    """Accuracy with single and averaged prompts from the initial to the finetuned weights. The axis does not
    start at 0: a few points of difference would be a flat line."""
    finite = [point for point in points if math.isfinite(point.single + point.averaged)]
    spread = any(point.std for point in finite)
    single = Series(
        [(point.alpha, point.single) for point in finite],
        "arm-mudg",
        dots=True,
        band=[(point.single - point.std, point.single + point.std) for point in finite] if spread else (),
        tips=[f"alpha {one.alpha:g}, single prompt: {number(one.single)} %" for one in finite],
    )
    averaged = Series(
        [(point.alpha, point.averaged) for point in finite],
        "arm-nearest_neighbours dashed",
        dots=True,
        tips=[f"alpha {one.alpha:g}, averaged prompts: {number(one.averaged)} %" for one in finite],
    )
    low = min((min(point.single - point.std, point.averaged) for point in finite), default=0.0)
    high = max((max(point.single + point.std, point.averaged) for point in finite), default=100.0)
    values = ", ".join(f"{point.alpha:g}: {number(point.single)} %" for point in finite)
    return Plot(
        title=f"Accuracy by alpha, single prompt: {values}",
        series=[averaged, single],
        x_ticks=[(value, f"{value:g}") for value in ticks(0, 1, 6)],
        x_name="alpha: share of the finetuned weights; 0 is the initial model",
        y_ticks=ticks(low, high, 5),
        y_words=lambda value: f"{number(value, 0 if value == round(value) else 1)} %",
    ).draw()


def class_map(points: ClassMap, classes: Sequence[str]) -> Markup:
    """A target's images: a point each with its class, kind and row as a tooltip, coloured by class while
    colours can be told apart, else by kind. Distances mean something only among neighbours."""
    kinds = kinds_of(points)
    parts = []
    for kind in KINDS:
        here = np.flatnonzero(kinds == kind)
        for tone in np.unique(points.label[here]) if len(classes) <= MAX_COLOURS else [None]:
            some = here if tone is None else here[points.label[here] == tone]
            colour = f"kind-{kind}" if tone is None else f"tone-{int(tone) % MAX_COLOURS}"
            dots = [_map_dot(points, int(place), kind, classes) for place in some]
            parts.append(group(dots, class_=f"points {kind} {colour}"))
    counts = ", ".join(f"{int((kinds == kind).sum()):,} {words}" for kind, words in KINDS.items())
    return chart(f"Map of {count(len(points.row), 'image')}: {counts}", WIDTH, MAP_HEIGHT, *parts, kind="map")


def kinds_of(points: ClassMap) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    alone = np.where(points.chosen, "chosen", np.where(points.nearest, "nearest", "candidate"))
    return np.where(points.chosen & points.nearest, "both", alone)


def _map_dot(points: ClassMap, place: int, kind: str, classes: Sequence[str]) -> Markup:
    x = MAP_MARGIN + float(points.x[place]) * (WIDTH - 2 * MAP_MARGIN)
    y = MAP_MARGIN + float(points.y[place]) * (MAP_HEIGHT - 2 * MAP_MARGIN)
    label = int(points.label[place])
    name = classes[label] if 0 <= label < len(classes) else f"class {label}"
    words = f"{KINDS['chosen']}, and {KINDS['nearest']}" if kind == "both" else KINDS[kind]
    tip = tag("title", f"{name}: {words}, row {int(points.row[place])}")
    return tag("circle", tip, cx=x, cy=y, r=RADIUS[kind])
