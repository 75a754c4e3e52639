"""Points of recall and speed, what the best of them is at a wanted recall, and a picture of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mudg_core.report.charts.plot import HEIGHT, Plot, Series
from mudg_core.report.charts.svg import WIDTH, bar, group, log_ticks, tag, text, ticks

COLOURS = ("#0b6e4f", "#c8553d", "#3d5a98", "#8a6d1d", "#7a4a8c", "#555555")
STYLE = (
    "text { font: 12px system-ui, sans-serif; fill: #333 } .head { font-weight: 600 } .paper { fill: #fff }"
    " .grid { stroke: #ddd } .line { fill: none; stroke-width: 2; background: none }"
)


@dataclass(frozen=True)
class Recall:
    recall_at_1: float
    recall_at_10: float


@dataclass(frozen=True)
class Point:
    """One setting: its recall on both sets of queries, its speed on the report's, and what its index cost.

    Speed is queries in a CPU second of all threads, and in a second on the wall.
    """

    params: dict[str, Any]
    tuning: Recall
    report: Recall
    qps_cpu: float
    qps_wall: float
    single_qps_cpu: float
    vectors_read: float | None
    build_cpu_seconds: float
    build_wall_seconds: float
    index_bytes: int


@dataclass(frozen=True)
class Curve:
    name: str
    points: Sequence[Point]


def best_qps(points: Iterable[Point], recall10: float) -> Point | None:
    """The quickest point that passes on the tuning queries; what it has on the report's is then no choice."""
    passed = [point for point in points if point.tuning.recall_at_10 >= recall10]
    return max(passed, key=lambda point: point.qps_cpu, default=None)


def front(points: Iterable[Point], cost: Callable[[Point], float]) -> list[Point]:
    """Those that no cheaper point reaches in recall of the tuning queries, the cheapest first."""
    kept: list[Point] = []
    for point in sorted(points, key=cost):
        if not kept or point.tuning.recall_at_10 > kept[-1].tuning.recall_at_10:
            kept.append(point)
    return kept


def plot(curves: Sequence[Curve], path: Path) -> None:
    """Recall of the report queries against speed and against vectors read, as one SVG file.

    Only some peers say how many vectors they read, so the second panel may show fewer curves.
    """
    speed = _panel("queries per CPU second", curves, lambda p: 1 / p.qps_cpu, lambda p: p.qps_cpu)
    told = [Curve(c.name, [p for p in c.points if p.vectors_read]) for c in curves]
    read = _panel("vectors read per query", told, _read, _read)
    parts = [tag("style", Markup(STYLE + _colours(len(curves)))), bar(0, 0, WIDTH, 2 * HEIGHT + 70, "paper")]
    parts += [_legend(curves), _down(speed, 35), _down(read, HEIGHT + 65)]
    box = f"0 0 {WIDTH:.0f} {2 * HEIGHT + 70:.0f}"
    picture = tag("svg", *parts, xmlns="http://www.w3.org/2000/svg", viewBox=box, role="img")
    path.write_text(picture + "\n")


def _panel(
    name: str, curves: Sequence[Curve], cost: Callable[[Point], float], x: Callable[[Point], float]
) -> Markup:
    fronts = [front(curve.points, cost) for curve in curves]
    lines = [[(x(p), p.report.recall_at_10) for p in points] for points in fronts]
    xs, ys = ([point[axis] for line in lines for point in line] for axis in (0, 1))
    plot = Plot(
        title=f"Recall at 10 by {name}",
        series=[Series(line, f"curve-{i}", dots=True) for i, line in enumerate(lines)],
        x_ticks=[(v, f"{v:,.10g}") for v in log_ticks(min(xs, default=1), max(xs, default=1))],
        x_name=f"{name}, log scale",
        y_ticks=ticks(min(ys, default=0), 1),
        y_words=lambda value: f"{100 * value:.4g} %",
        x=math.log10,
    )
    return group([plot.draw(), text(6, 4, "recall at 10", "head")])


def _read(point: Point) -> float:
    return point.vectors_read or math.nan


def _colours(count: int) -> str:
    rules = (
        f".curve-{i} {{ stroke: {_colour(i)} }} .dot.curve-{i} {{ fill: {_colour(i)} }}" for i in range(count)
    )
    return " ".join(rules)


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _legend(curves: Sequence[Curve]) -> Markup:
    step = WIDTH / max(len(curves), 1)
    marks = [
        group([bar(10 + i * step, 8, 11, 11, f"dot curve-{i}"), text(27 + i * step, 18, curve.name)])
        for i, curve in enumerate(curves)
    ]
    return group(marks)


def _down(part: Markup, by: float) -> Markup:
    return group([part], transform=f"translate(0 {by:.0f})")
