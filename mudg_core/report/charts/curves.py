"""What an index is judged by, as SVG files: recall against what is read, and how its training went.

No clock enters them, so that a rerun draws the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from mudg_core.index.recall import At, share
from mudg_core.index.recall import Point as Measured
from mudg_core.report.charts.lines import HALF, HEIGHT, WIDTH, Plot, Series, by_iteration
from mudg_core.report.charts.standalone import HEAD, TONES, picture
from mudg_core.report.charts.svg import Point, bar, group, line, name_room, text, ticks
from mudg_core.report.words import number, shorten

LEGEND = 36.0
PLOT = 340.0
AT: tuple[At, At] = (1, 10)


def recall_curves(measured: Mapping[str, Sequence[Measured]]) -> str:
    """Recall at 1 (solid) and at 10 (dashed) of each named kind of query, with 95 % bands.

    The share of the gallery read is on a log axis: an index is worth what it saves, and savings are ratios.
    """
    shown = {name: _usable(points) for name, points in list(measured.items())[: len(TONES)]}
    lines = [_line(name, points, at, tone) for tone, (name, points) in enumerate(shown.items()) for at in AT]
    shares = [x for one in lines for x, _ in one.points] or [0.01, 1.0]
    lowest = min((low for one in lines for low, _ in one.band), default=0.0)
    plot = Plot(
        title="",
        series=lines,
        x_ticks=[(value, _percent(value)) for value in log_ticks(min(shares), max(shares))],
        x_name="share of the gallery read for a query (log scale)",
        y_ticks=ticks(min(lowest, 0.9), 1.0, 6),
        y_words=lambda value: f"{number(100 * value, 0)} %",
        x=math.log10,
        height=PLOT,
        upright=True,
    )
    about = "Share of the true nearest images that are found, by how much of the gallery is read to find them"
    inside = [text(16, 2, "recall", "tick"), *plot.parts(), _strokes()]
    body = group(inside, transform=f"translate(0 {HEAD + LEGEND:.0f})")
    return picture("Recall against cost", about, WIDTH, HEAD + LEGEND + PLOT, _queries(list(shown)), body)


def objective_curves(kmeans: Sequence[float], cross_modal: Sequence[float]) -> str:
    """Both objectives of Eq. 3 by iteration, side by side: one is a distance, the other a share."""
    plots = [
        ("L_kmeans, mean squared distance", by_iteration(kmeans, "L_kmeans", "tone-0")),
        ("L_cross-modal, texts in a wrong cell", by_iteration(cross_modal, "L_cross-modal", "tone-1", True)),
    ]
    panels = []
    for place, (name, plot) in enumerate(plots):
        label = text(16, -4, name, "name")
        left = place * (WIDTH - HALF)
        panels.append(group([label, *plot.parts()], transform=f"translate({left:.0f} {HEAD + 22:.0f})"))
    about = (
        "By iteration: squared distance of images from the centroid of their cell, and share of texts whose "
        "nearest centroid is not that of their nearest image; lower is better"
    )
    return picture("Training the cells", about, WIDTH, HEAD + 22 + HEIGHT, *panels)


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers that cover low..high: 1, 2, 5 of each power of ten; over a wide range, powers alone."""
    first, last = math.floor(math.log10(low) - 1e-9), math.ceil(math.log10(high) + 1e-9)
    steps = (1.0, 2.0, 5.0) if math.log10(high / low) <= 3 else (1.0,)
    marks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    start = max((mark for mark in marks if mark <= low * (1 + 1e-9)), default=marks[0])
    end = min((mark for mark in marks if mark >= high * (1 - 1e-9) and mark > start), default=marks[-1])
    return [mark for mark in marks if start <= mark <= end]


def _usable(points: Sequence[Measured]) -> list[Measured]:
    """In order of cost, without what a log axis cannot show."""
    real = [p for p in points if math.isfinite(p.share_read) and p.share_read > 0]
    return sorted(real, key=lambda p: (p.share_read, p.recall_at_1.value))


def _line(name: str, points: Sequence[Measured], at: At, tone: int) -> Series:
    recalls = [point.recall(at) for point in points]
    at_points: list[Point] = [(p.share_read, r.value) for p, r in zip(points, recalls, strict=True)]
    return Series(
        at_points,
        f"tone-{tone}" + (" dashed" if at == 10 else ""),
        dots=True,
        band=[(r.low, r.high) for r in recalls],
        tips=[f"{name}: R@{at} {r} at {p.cost()}" for p, r in zip(points, recalls, strict=True)],
    )


def _queries(names: Sequence[str]) -> Markup:
    """Which queries a colour stands for."""
    y, step = HEAD + 12, (WIDTH - 32) / max(len(names), 1)
    parts, x = [], 16.0
    for tone, name in enumerate(names):
        label = shorten(name, min(28, int((step - 45) / 7.4)))
        parts += [
            line((x, y - 4), (x + 22, y - 4), f"line tone-{tone}"),
            text(x + 29, y, label, "name", tip=name),
        ]
        x += 37 + name_room([label])
    return group(parts)


def _strokes() -> Markup:
    """Which recall a stroke stands for; below, where the name of the axis leaves room."""
    y = PLOT - 6
    return group(
        [
            line((52, y - 4), (78, y - 4), "line plain"),
            text(85, y, "R@1", "tick"),
            line((124, y - 4), (150, y - 4), "line plain dashed"),
            text(157, y, "R@10", "tick"),
            bar(202, y - 10, 24, 12, "shade"),
            text(233, y, "95 % interval", "tick"),
        ]
    )


def _percent(of_gallery: float) -> str:
    return share(of_gallery).removesuffix(" of the gallery")
