"""All rows of a comparison as bars, group by group, against a line at zero-shot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby

from markupsafe import Markup

from mudg_core.evaluate.comparison import Comparison, RowScore
from mudg_core.report.charts.svg import bar, chart, group, line, name_room, tag, text, ticks
from mudg_core.report.words import number, shorten

WIDTH = 800.0
ROW, HEADING = 22.0, 30.0
COLOURS = {"zero-shot": "arm-zero_shot", "nearest-neighbours": "arm-nearest_neighbours", "mudg": "arm-mudg"}


def comparison(made: Comparison) -> Markup:
    """The axis starts near the lowest bar: rows differ by points, and from 0 they would all look the same."""
    values = [value for row in made.rows for value in _ends(row) if math.isfinite(value)]
    marks = ticks(max(0.0, min(values, default=0.0) - 2), max(values, default=1.0), 6)
    room = name_room([row.name for row in made.rows])
    scale = (WIDTH - room - 70) / (marks[-1] - marks[0])

    def place(value: float) -> float:
        return room + (value - marks[0]) * scale

    parts, y = list[Markup](), 0.0
    for name, rows in groupby(made.rows, key=lambda row: row.group):
        parts.append(text(room, y + 20, name, "head"))
        y += HEADING
        for row in rows:
            parts.append(_bar(row, y, room, place))
            y += ROW
    plain = made.row("zero-shot")
    marked = [line((place(plain.mean), 8), (place(plain.mean), y), "axis")] if plain else []
    axis = [_tick(place(value), y, number(value, 0)) for value in marks]
    return chart(_spoken(made), WIDTH, y + 24, *axis, *marked, *parts)


def _ends(row: RowScore) -> list[float]:
    return [row.mean, *_whisker(row), *row.paper.values()]


def _whisker(row: RowScore) -> tuple[float, ...]:
    """The ends of the 95 % interval, where there is one."""
    return (row.accuracy.low, row.accuracy.high) if row.accuracy else ()


def _bar(row: RowScore, y: float, room: float, at: Callable[[float], float]) -> Markup:
    if not math.isfinite(row.mean):
        return group([text(room - 12, y + 12, shorten(row.name, 24), "name", "end", tip=row.about)])
    end = at(row.mean)
    whisker = _whisker(row)
    ends = f", 95 % interval {number(whisker[0])} to {number(whisker[1])}" if whisker else ""
    tip = f"{row.name} ({row.about}): {number(row.mean)} %{ends}"
    parts = [text(room - 12, y + 12, shorten(row.name, 24), "name", "end", tip=row.about)]
    parts.append(bar(room, y, end - room, 15, COLOURS.get(row.name, "arm-mudg soft"), tip))
    if whisker:
        parts.append(line((at(whisker[0]), y + 7.5), (at(whisker[1]), y + 7.5), "whisker"))
    for backbone, value in row.paper.items():
        said = tag("title", f"paper, {backbone}: {number(value)} %")
        parts.append(tag("circle", said, cx=at(value), cy=y + 7.5, r=4, class_="dot arm-zero_shot"))
    strong = "value strong" if row.name == "mudg" else "value"
    furthest = max(_ends(row))
    parts.append(text(at(furthest) + 8, y + 12, number(row.mean), strong))
    return group(parts)


def _tick(x: float, bottom: float, words: str) -> Markup:
    return group([line((x, 8), (x, bottom), "grid"), text(x, bottom + 16, words, "tick", "middle")])


def _spoken(made: Comparison) -> str:
    said: Sequence[str] = [f"{row.name} {number(row.mean)}" for row in made.rows]
    return f"Accuracy in percent on {made.target}: {', '.join(said)}"
