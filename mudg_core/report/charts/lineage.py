"""The lineage graph: stages from left to right, arrows from parents to what was made of them.

All artifacts of one stage are one box ('embedding-shard x 12'), so the graph has the shape of the pipeline
whatever the size of the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from mudg_core.report.charts.layers import Edge, Layout, layout
from mudg_core.report.charts.standalone import HEAD, picture
from mudg_core.report.charts.svg import Point, bar, chart, group, tag, text
from mudg_core.report.data import LineageNode
from mudg_core.report.words import TIMES, count, shorten

BOX, GAP, TALL = 100.0, 26.0, 50.0
MAX_STAGES = 60
MARGIN, LEAST = 16, 560.0  # room around a picture, and for its heading

_STYLE = """
.node { fill: #fff; stroke: #55606c; } .node.back { fill: #f1f3f5; stroke: #c9d0d7; }
.arrow { fill: none; stroke: #55606c; stroke-width: 1.25; } .arrowhead { fill: #55606c; }
.name { font-size: 11px; } .strong { font-weight: 600; } .value { font-size: 11px; }
.key { font: 10px ui-monospace, monospace; fill: #59636e; }
@media (prefers-color-scheme: dark) {
.node { fill: #1c2127; stroke: #9ba6b2; } .node.back { fill: #14171b; stroke: #3a424c; }
.arrow { stroke: #9ba6b2; } .arrowhead { fill: #9ba6b2; } .key { fill: #9ba6b2; }
}
"""


def lineage(nodes: Sequence[LineageNode]) -> Markup:
    drawn = _draw(nodes)
    return chart(drawn.title, drawn.width, drawn.height, *drawn.parts, kind="graph")


def lineage_picture(nodes: Sequence[LineageNode], about: str) -> str:
    """The same as a file that needs nothing around it; `about` says whose lineage it is."""
    drawn = _draw(nodes)
    inside = group(drawn.parts, transform=f"translate({MARGIN} {HEAD + MARGIN})")
    width = max(drawn.width + 2 * MARGIN, LEAST)
    return picture(drawn.title, about, width, HEAD + drawn.height + 2 * MARGIN, inside, style=_STYLE)


class Drawn(NamedTuple):
    title: str
    width: float
    height: float
    parts: list[Markup]


def _draw(nodes: Sequence[LineageNode]) -> Drawn:
    stages = list(dict.fromkeys(node.stage for node in nodes))[:MAX_STAGES]
    plan = layout(stages, edges(nodes, stages))
    middle = {name: _middle(plan, name) for name in plan.column}
    arrows = [_arrow([middle[name] for name in route]) for route in plan.routes]
    boxes = [_box(stage, [n for n in nodes if n.stage == stage], middle[stage]) for stage in stages]
    width = (max(plan.column.values(), default=0) + 1) * (BOX + GAP) - GAP + 8
    title = f"Lineage of {count(len(nodes), 'artifact')} in {count(len(stages), 'stage')}"
    return Drawn(title, width, plan.bottom, [_arrowhead(), *arrows, *boxes])


def edges(nodes: Sequence[LineageNode], stages: Sequence[str]) -> list[Edge]:
    """Which stage feeds which, each pair once; parents outside the report are left out."""
    order = {stage: place for place, stage in enumerate(stages)}
    stage_of = {node.ref: node.stage for node in nodes if node.stage in order}
    pairs = ((stage_of[p], n.stage) for n in nodes if n.stage in order for p in n.parents if p in stage_of)
    return sorted({(a, b) for a, b in pairs if a != b}, key=lambda edge: (order[edge[0]], order[edge[1]]))


def _middle(plan: Layout, name: str) -> Point:
    return 2 + plan.column[name] * (BOX + GAP) + BOX / 2, plan.height[name]


def _arrow(stops: Sequence[Point]) -> Markup:
    """A smooth line that leaves a box on its right, passes its bends level, and enters on the left."""
    x, y = stops[0][0] + BOX / 2, stops[0][1]
    steps = [f"M{x:.1f} {y:.1f}"]
    for place, (middle, level) in enumerate(stops[1:], 1):
        last = place == len(stops) - 1
        near, far = middle - BOX / 2 - (5 if last else 0), middle + BOX / 2
        bend = (near - x) / 2
        steps.append(f"C{x + bend:.1f} {y:.1f} {near - bend:.1f} {level:.1f} {near:.1f} {level:.1f}")
        if not last:
            steps.append(f"H{far:.1f}")
        x, y = far, level
    return tag("path", d=" ".join(steps), class_="arrow", marker_end="url(#tip)")


def _arrowhead() -> Markup:
    shape = tag("path", d="M0 0L7 3.5L0 7z", class_="arrowhead")
    marker = tag(
        "marker",
        shape,
        id="tip",
        viewBox="0 0 7 7",
        refX=2.5,
        refY=3.5,
        markerWidth=7,
        markerHeight=7,
        orient="auto",
        markerUnits="userSpaceOnUse",
    )
    return tag("defs", marker)


def _box(stage: str, nodes: Sequence[LineageNode], middle: Point) -> Markup:
    """The name of a stage over the beginning of its key, or over how many artifacts it has."""
    x, y = middle[0] - BOX / 2, middle[1] - TALL / 2
    one, many = nodes[0], len(nodes) > 1
    below = f"{TIMES} {len(nodes):,}" if many else one.key[:10]
    tip = f"{stage} {below}" if many else f"{one.ref}, {one.rows}, digest {one.digest}"
    lines = _name_lines(stage)
    first = middle[1] - (1 if len(lines) == 1 else 9)
    names = [text(middle[0], first + 13 * i, line, "name strong", "middle") for i, line in enumerate(lines)]
    low = first + (15 if len(lines) == 1 else 28)
    under = text(middle[0], low, below, "value" if many else "key", "middle")
    shadow = [bar(x + 4, y - 4, BOX, TALL, "node back", round_=7)] if many else []
    return group([tag("title", tip), *shadow, bar(x, y, BOX, TALL, "node", round_=7), *names, under])


def _name_lines(stage: str) -> list[str]:
    """A long name on two lines, parted at a hyphen where there is one."""
    if len(stage) <= 13:
        return [stage]
    head, dash, tail = stage.partition("-")
    return [shorten(head + dash, 14), shorten(tail, 14)] if tail and len(head) < 14 else [shorten(stage, 14)]
