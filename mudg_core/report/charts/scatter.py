"""The map of a target's images: a point each, by class while colours can be told apart, else by kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from mudg_core.dataset.image_map import ClassMap
from mudg_core.report.charts.svg import chart, group, tag
from mudg_core.report.words import count

WIDTH, HEIGHT, MARGIN = 800.0, 560.0, 10.0
MAX_COLOURS = 12
KINDS = {  # what is drawn later lies on top
    "candidate": "candidate",
    "nearest": "nearest to the plain prompt",
    "chosen": "chosen",
    "both": "both",
}
RADIUS = {"candidate": 2.4, "nearest": 4.0, "chosen": 4.4, "both": 4.4}


def class_map(points: ClassMap, classes: Sequence[str]) -> Markup:
    """Points with their class, kind and row as a tooltip. Distances mean something only among neighbours."""
    kinds = kinds_of(points)
    coloured = len(classes) <= MAX_COLOURS
    parts = []
    for kind in KINDS:
        here = np.flatnonzero(kinds == kind)
        for tone in np.unique(points.label[here]) if coloured else [None]:
            some = here if tone is None else here[points.label[here] == tone]
            colour = f"kind-{kind}" if tone is None else f"tone-{int(tone) % MAX_COLOURS}"
            dots = [_dot(points, int(place), kind, classes) for place in some]
            parts.append(group(dots, class_=f"points {kind} {colour}"))
    title = f"Map of {count(len(points.row), 'image')}: {spoken(points)}"
    return chart(title, WIDTH, HEIGHT, *parts, kind="map")


def kinds_of(points: ClassMap) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    alone = np.where(points.chosen, "chosen", np.where(points.nearest, "nearest", "candidate"))
    return np.where(points.chosen & points.nearest, "both", alone)


def spoken(points: ClassMap) -> str:
    chosen, nearest = int(points.chosen.sum()), int(points.nearest.sum())
    both = int((points.chosen & points.nearest).sum())
    return f"{chosen:,} chosen, {nearest:,} nearest to the plain prompt, {both:,} of them both"


def _dot(points: ClassMap, place: int, kind: str, classes: Sequence[str]) -> Markup:
    x = MARGIN + float(points.x[place]) * (WIDTH - 2 * MARGIN)
    y = MARGIN + float(points.y[place]) * (HEIGHT - 2 * MARGIN)
    label = int(points.label[place])
    name = classes[label] if 0 <= label < len(classes) else f"class {label}"
    words = f"{KINDS['chosen']}, and {KINDS['nearest']}" if kind == "both" else KINDS[kind]
    tip = tag("title", f"{name}: {words}, row {int(points.row[place])}")
    return tag("circle", tip, cx=x, cy=y, r=RADIUS[kind])
