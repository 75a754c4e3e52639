"""Line charts: recall by probes, the two objectives of paired k-means, training losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import Markup

from mudg_core.report.charts.svg import Point, chart, group, line, path, tag, text, ticks
from mudg_core.report.words import count, number

WIDTH, HEIGHT = 800.0, 250.0
HALF = 380.0
MAX_POINTS = 240
MAX_SEEDS = 8
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

    def draw(self) -> Markup:
        return chart(self.title, self.width, self.height, *self.parts())

    def parts(self) -> list[Markup]:
        """What the picture consists of; bands lie behind every line."""
        bands = [self._band(series) for series in self.series if series.band]
        return [*self._grid(), *bands, *(self._line(series) for series in self.series)]

    def _at(self, point: Point) -> Point:
        left, right = (self.x(value) for value in (self.x_ticks[0][0], self.x_ticks[-1][0]))
        low, high = self.y_ticks[0], self.y_ticks[-1]
        across = (self.x(point[0]) - left) / ((right - left) or 1)
        up = (point[1] - low) / ((high - low) or 1)
        x = _LEFT + across * (self.width - _LEFT - 24)
        return x, self.height - _FOOT - up * (self.height - _FOOT - _TOP)

    def _grid(self) -> list[Markup]:
        right, foot = self.width - 16, self.height - _FOOT
        parts = []
        for value in self.y_ticks:
            y = self._at((self.x_ticks[0][0], value))[1]
            label = text(_LEFT - 8, y + 4, self.y_words(value), "tick", "end")
            parts.append(group([line((_LEFT, y), (right, y), "grid"), label]))
        for value, words in self.x_ticks:
            x = self._at((value, self.y_ticks[0]))[0]
            if self.upright:
                parts.append(line((x, _TOP), (x, foot), "grid"))
            parts.append(text(x, foot + 17, words, "tick", "middle"))
        return [*parts, text(right, foot + 34, self.x_name, "tick", "end")]

    def _line(self, series: Series) -> Markup:
        points = [self._at(point) for point in series.points]
        kind = f"line {series.class_}" + (" soft" if series.soft else "")
        parts = [path(points, kind)] if len(points) > 1 else []
        if series.dots or len(points) == 1:
            tips = series.tips or [self.y_words(value) for _, value in series.points]
            for (x, y), tip in zip(points, tips, strict=True):
                parts.append(
                    tag("circle", tag("title", tip), cx=x, cy=y, r=3.5, class_=f"dot {series.class_}")
                )
        return group(parts)

    def _band(self, series: Series) -> Markup:
        """There along the upper ends, and back along the lower ones; a single point has a whisker."""
        ends = list(zip(series.points, series.band, strict=True))
        there = [self._at((x, high)) for (x, _), (_, high) in ends]
        back = [self._at((x, low)) for (x, _), (low, _) in reversed(ends)]
        if len(ends) == 1:
            return line(there[0], back[0], f"line {series.class_}")
        return path([*there, *back], f"band {series.class_}")


def recall(recall_at_1: Mapping[int, float]) -> Markup:
    """Recall of held-out captions against cells probed; a doubling of the cost is one step right."""
    points = [(float(n), r) for n, r in sorted(recall_at_1.items()) if n > 0 and math.isfinite(r)]
    marks = [(n, f"{n:,.0f}") for n, _ in points] or [(1.0, "1")]
    plot = Plot(
        title="Recall at 1 by cells probed: " + ", ".join(f"{n:.0f}: {100 * r:.0f} %" for n, r in points),
        series=[Series(points, "arm-mudg", dots=True)],
        x_ticks=marks,
        x_name="cells probed (each step doubles the work)" if _doubling(marks) else "cells probed, log scale",
        y_ticks=ticks(0, max([0.2, *(r for _, r in points)]), 6),
        y_words=lambda value: f"{number(100 * value, 0)} %",
        x=math.log2,
    )
    return plot.draw()


def _doubling(marks: Sequence[tuple[float, str]]) -> bool:
    return all(b[0] == 2 * a[0] for a, b in pairwise(marks))


def objective(values: Sequence[float], title: str, class_: str, percent: bool = False) -> Markup:
    """One objective of k-means by iteration; two of them stand side by side, as their scales differ."""
    return by_iteration(values, title, class_, percent).draw()


def by_iteration(values: Sequence[float], title: str, class_: str, percent: bool = False) -> Plot:
    """The first value is that of the start. A share in 0..1 is shown as a percentage."""
    points = [(x, 100 * y if percent else y) for x, y in _finite(values, 0)]
    line = Series(points, class_, dots=len(values) <= 30)
    return _by_step([line], title, "iteration", HALF, " %" if percent else "")


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
