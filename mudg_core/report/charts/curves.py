"""Charts that are files of their own: what an index is judged by, and what prompts alone are worth.

They are artifacts, so no clock enters them: a rerun draws the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from mudg_core.index.recall import At, share
from mudg_core.index.recall import Point as RecallPoint
from mudg_core.report.charts.bars import Bar, Bars, Row
from mudg_core.report.charts.plot import HALF, HEIGHT, Plot, Series, by_iteration
from mudg_core.report.charts.svg import (
    HEAD,
    TONES,
    WIDTH,
    bar,
    group,
    line,
    log_ticks,
    name_room,
    picture,
    text,
    ticks,
)
from mudg_core.report.words import number, shorten

if TYPE_CHECKING:  # it brings faiss along, which nobody needs who draws other charts
    from mudg_core.evaluate.prompts import MethodScore, PromptStudy, Spot

LEGEND = 36.0
PLOT = 340.0
AT: tuple[At, At] = (1, 10)
OWN_METHOD = "adaptive"
GAP = 34.0


def recall_curves(measured: Mapping[str, Sequence[RecallPoint]]) -> str:
    """Recall at 1 (solid) and at 10 (dashed) of each named kind of query, with 95 % bands.

    The share of the gallery read is on a log axis: an index is worth what it saves, and savings are ratios.
    """
    usable = {name: _usable(points) for name, points in list(measured.items())[: len(TONES)]}
    named = enumerate(usable.items())
    lines = [_recall(name, points, at, tone) for tone, (name, points) in named for at in AT]
    shares = [x for one in lines for x, _ in one.points] or [0.01, 1.0]
    lowest = min((low for one in lines for low, _ in one.band), default=0.0)
    plot = Plot(
        title="",
        series=lines,
        x_ticks=[
            (value, share(value).removesuffix(" of the gallery"))
            for value in log_ticks(min(shares), max(shares))
        ],
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
    return picture("Recall against cost", about, WIDTH, HEAD + LEGEND + PLOT, _queries(list(usable)), body)


def _usable(points: Sequence[RecallPoint]) -> list[RecallPoint]:
    """In order of cost, without what a log axis cannot show."""
    real = [p for p in points if math.isfinite(p.share_read) and p.share_read > 0]
    return sorted(real, key=lambda p: (p.share_read, p.recall_at_1.value))


def _recall(name: str, points: Sequence[RecallPoint], at: At, tone: int) -> Series:
    recalls = [point.recall(at) for point in points]
    return Series(
        [(point.share_read, own.value) for point, own in zip(points, recalls, strict=True)],
        f"tone-{tone}" + (" dashed" if at == 10 else ""),
        dots=True,
        band=[(own.low, own.high) for own in recalls],
        tips=[f"{name}: R@{at} {own} at {p.cost()}" for p, own in zip(points, recalls, strict=True)],
    )


def _queries(names: Sequence[str]) -> Markup:
    """Which queries a colour stands for."""
    y, step = HEAD + 12, (WIDTH - 32) / max(len(names), 1)
    parts, x = [], 16.0
    for tone, name in enumerate(names):
        label = shorten(name, min(28, int((step - 45) / 7.4)))
        parts.append(line((x, y - 4), (x + 22, y - 4), f"line tone-{tone}"))
        parts.append(text(x + 29, y, label, "name", tip=name))
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


def _side_by_side(plots: Sequence[tuple[str, Plot]], top: float) -> list[Markup]:
    """Two named plots of half the width."""
    return [
        group(
            [text(16, -4, name, "name"), *plot.parts()],
            transform=f"translate({place * (WIDTH - HALF):.0f} {top:.0f})",
        )
        for place, (name, plot) in enumerate(plots)
    ]


def objective_curves(kmeans: Sequence[float], cross_modal: Sequence[float]) -> str:
    """Both objectives of Eq. 3 by iteration, side by side: one is a distance, the other a share."""
    plots = [
        ("L_kmeans, mean squared distance", by_iteration(kmeans, "L_kmeans", "tone-0")),
        ("L_cross-modal, texts in a wrong cell", by_iteration(cross_modal, "L_cross-modal", "tone-1", True)),
    ]
    about = (
        "By iteration: squared distance of images from the centroid of their cell, and share of texts whose "
        "nearest centroid is not that of their nearest image; lower is better"
    )
    panels = _side_by_side(plots, HEAD + 22)
    return picture("Training the cells", about, WIDTH, HEAD + 22 + HEIGHT, *panels)


def prompt_study(study: PromptStudy) -> str:
    """Methods side by side, ensembles by size, and single descriptors."""
    top = HEAD + 26.0 * len(study.methods) + GAP
    fit = "" if study.correlation is None else f", correlation {study.correlation:.2f}"
    plots = [
        ("by the number of augmentations", _sizes(study)),
        (f"one descriptor at a time{fit}", _spots(study)),
    ]
    parts = [group(_methods(study.methods), transform=f"translate(0 {HEAD:.0f})"), *_side_by_side(plots, top)]
    parts.append(group(_legend(list(study.curves)), transform=f"translate(0 {top + HEIGHT + 14:.0f})"))
    about = "Zero-shot accuracy in percent, mean over domains, of the student before any training"
    return picture("What prompts alone are worth", about, WIDTH, top + HEIGHT + 30, *parts)


def _methods(methods: Sequence[MethodScore]) -> list[Markup]:
    rows = []
    for item in methods:
        class_ = "dot tone-0" if item.method == OWN_METHOD else "shade"
        tip = f"{item.method}: {number(item.mean)} % with {item.augmentations} a class"
        rows.append(Row(item.method, [Bar(item.mean, class_, number(item.mean), tip, "name")]))
    room = name_room(item.method for item in methods)
    return Bars(rows, room, (WIDTH - room - 90) / max([1.0, *(item.mean for item in methods)])).parts()


def _sizes(study: PromptStudy) -> Plot:
    series = [
        Series(points, f"tone-{tone}", dots=True, tips=[f"{name}, {n}: {number(y)} %" for n, y in points])
        for tone, (name, points) in enumerate(study.curves.items())
    ]
    sizes = sorted({n for points in study.curves.values() for n, _ in points}) or [1]
    values = [y for points in study.curves.values() for _, y in points] or [0.0]
    return Plot(
        title="",
        series=series,
        x_ticks=[(float(n), str(n)) for n in sizes],
        x_name="augmentations (log scale)",
        y_ticks=ticks(min(values), max(values)),
        y_words=_percent,
        width=HALF,
        x=math.log2,
    )


def _spots(study: PromptStudy) -> Plot:
    at = [(spot.variance, spot.accuracy) for spot in study.spots]
    tips = [f"{spot.descriptor}: {_percent(spot.accuracy)}" for spot in study.spots]
    dots = [Series([point], "tone-2", tips=[tip]) for point, tip in zip(at, tips, strict=True)]
    across, up = [x for x, _ in at] or [0.0, 1.0], [y for _, y in at] or [0.0]
    fit = [] if study.correlation is None else [_fit(study.spots)]
    return Plot(
        title="",
        series=[*dots, *fit],
        x_ticks=[(value, f"{value:g}") for value in ticks(min(across), max(across), 4)],
        x_name="variance of label features",
        y_ticks=ticks(min(up), max(up)),
        y_words=_percent,
        width=HALF,
    )


def _fit(spots: Sequence[Spot]) -> Series:
    """The straight line through the spots."""
    x, y = np.array([(spot.variance, spot.accuracy) for spot in spots]).T
    slope, start = np.polyfit(x, y, 1)
    ends = [(float(value), float(start + slope * value)) for value in (x.min(), x.max())]
    return Series(ends, "plain dashed")


def _legend(names: Sequence[str]) -> list[Markup]:
    parts: list[Markup] = []
    x = 52.0
    for tone, name in enumerate(names):
        parts += [line((x, 0), (x + 22, 0), f"line tone-{tone}"), text(x + 28, 4, name, "tick")]
        x += 44 + name_room([name])
    return parts


def _percent(value: float) -> str:
    return f"{number(value, 1)} %"
