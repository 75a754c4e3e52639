"""What prompts alone are worth, as an SVG file: methods side by side, ensembles by size, and descriptors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from mudg_core.report.charts.lines import HALF, HEIGHT, WIDTH, Plot, Series
from mudg_core.report.charts.standalone import HEAD, picture
from mudg_core.report.charts.svg import bar, group, line, name_room, text, ticks
from mudg_core.report.words import number, shorten

if TYPE_CHECKING:  # it brings faiss along, which nobody needs who draws other charts
    from mudg_core.evaluate.prompts import MethodScore, PromptStudy, Spot

ROW = 26.0
GAP = 34.0
OWN = "adaptive"


def prompt_study(study: PromptStudy) -> str:
    bars = _methods(study.methods)
    top = HEAD + ROW * len(study.methods) + GAP
    halves = [("by the number of augmentations", _curves(study)), (_fitted(study), _spots(study))]
    panels: list[Markup] = [group(bars, transform=f"translate(0 {HEAD:.0f})")]
    for place, (name, plot) in enumerate(halves):
        inside = [text(16, -4, name, "name"), *plot.parts()]
        panels.append(group(inside, transform=f"translate({place * (WIDTH - HALF):.0f} {top:.0f})"))
    panels.append(group(_legend(list(study.curves)), transform=f"translate(0 {top + HEIGHT + 14:.0f})"))
    about = "Zero-shot accuracy in percent, mean over domains, of the student before any training"
    return picture("What prompts alone are worth", about, WIDTH, top + HEIGHT + 30, *panels)


def _methods(methods: Sequence[MethodScore]) -> list[Markup]:
    room = name_room([item.method for item in methods])
    scale = (WIDTH - room - 90) / max([1.0, *(item.mean for item in methods)])
    parts: list[Markup] = []
    for place, item in enumerate(methods):
        y, width = place * ROW, item.mean * scale
        tip = f"{item.method}: {number(item.mean)} % with {item.augmentations} a class"
        parts.append(text(room - 12, y + 14, shorten(item.method, 24), "name", "end"))
        parts.append(bar(room, y, width, 18, "dot tone-0" if item.method == OWN else "shade", tip))
        parts.append(text(room + width + 8, y + 14, number(item.mean), "name"))
    return parts


def _curves(study: PromptStudy) -> Plot:
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
    tips = [f"{spot.descriptor}: {_percent(spot.accuracy)}" for spot in study.spots]
    dots = [Series([_at(s)], "tone-2", tips=[tip]) for s, tip in zip(study.spots, tips, strict=True)]
    across = [spot.variance for spot in study.spots] or [0.0, 1.0]
    up = [spot.accuracy for spot in study.spots] or [0.0]
    marks = ticks(min(across), max(across), 4)
    return Plot(
        title="",
        series=[*dots, *_fit(study.spots, study.correlation)],
        x_ticks=[(value, f"{value:g}") for value in marks],
        x_name="variance of label features",
        y_ticks=ticks(min(up), max(up)),
        y_words=_percent,
        width=HALF,
    )


def _fit(spots: Sequence[Spot], correlation: float | None) -> list[Series]:
    """The straight line through the spots."""
    if correlation is None:
        return []
    x, y = np.array([_at(spot) for spot in spots]).T
    slope, start = np.polyfit(x, y, 1)
    ends = [(float(value), float(start + slope * value)) for value in (x.min(), x.max())]
    return [Series(ends, "plain dashed")]


def _fitted(study: PromptStudy) -> str:
    said = "" if study.correlation is None else f", correlation {study.correlation:.2f}"
    return f"one descriptor at a time{said}"


def _at(spot: Spot) -> tuple[float, float]:
    return spot.variance, spot.accuracy


def _legend(names: Sequence[str]) -> list[Markup]:
    parts: list[Markup] = []
    x = 52.0
    for tone, name in enumerate(names):
        parts += [line((x, 0), (x + 22, 0), f"line tone-{tone}"), text(x + 28, 4, name, "tick")]
        x += 44 + name_room([name])
    return parts


def _percent(value: float) -> str:
    return f"{number(value, 1)} %"
