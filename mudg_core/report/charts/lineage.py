"""The lineage graph: stages from left to right, arrows from parents to what was made of them.

All artifacts of one stage are one box ('embedding-shard x 12'), so the graph has the shape of the pipeline
whatever the size of the corpus. Columns are by longest path, heights by relaxation. An arrow over several
columns bends in each of them; arrows from one box share their bends until they part, so that what feeds many
stages is one line with branches and not a bundle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from mudg_core.report.charts.svg import HEAD, Point, bar, chart, group, picture, tag, text
from mudg_core.report.data import LineageNode
from mudg_core.report.words import TIMES, count, shorten
from mudg_core.stage_names import stage_name

Edge = tuple[str, str]
ROOM, BEND_ROOM = 66.0, 26.0  # height of a box with the space around it, and of a line
ROUNDS = 13  # odd, so that the last one goes from parents to children
BOX, GAP, TALL = 100.0, 26.0, 50.0
MAX_STAGES = 60
MARGIN, MIN_WIDTH = 16, 560.0  # room around a picture, and for its heading

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
    title, width, height, parts = _draw(nodes)
    return chart(title, width, height, *parts, kind="graph")


def lineage_picture(nodes: Sequence[LineageNode], about: str) -> str:
    """The same as a file that needs nothing around it; `about` says whose lineage it is."""
    title, width, height, parts = _draw(nodes)
    inside = group(parts, transform=f"translate({MARGIN} {HEAD + MARGIN})")
    width = max(width + 2 * MARGIN, MIN_WIDTH)
    return picture(title, about, width, HEAD + height + 2 * MARGIN, inside, style=_STYLE)


def _draw(nodes: Sequence[LineageNode]) -> tuple[str, float, float, list[Markup]]:
    """Title, width, height and parts."""
    by_stage: dict[str, list[LineageNode]] = {}
    for node in nodes:
        by_stage.setdefault(node.stage, []).append(node)
    stages = list(by_stage)[:MAX_STAGES]
    plan = layout(stages, edges(nodes, stages))
    middle = {
        name: (2 + column * (BOX + GAP) + BOX / 2, plan.height[name]) for name, column in plan.column.items()
    }
    arrows = [_arrow([middle[name] for name in route]) for route in plan.routes]
    boxes = [_box(stage, by_stage[stage], middle[stage]) for stage in stages]
    width = (max(plan.column.values(), default=0) + 1) * (BOX + GAP) - GAP + 8
    title = f"Lineage of {count(len(nodes), 'artifact')} in {count(len(stages), 'stage')}"
    return title, width, plan.bottom, [_arrowhead(), *arrows, *boxes]


def edges(nodes: Sequence[LineageNode], stages: Sequence[str]) -> list[Edge]:
    """Which stage feeds which, each pair once; parents outside the report are left out."""
    order = {stage: place for place, stage in enumerate(stages)}
    stage_of = {node.ref: node.stage for node in nodes if node.stage in order}
    pairs = ((stage_of[p], n.stage) for n in nodes if n.stage in order for p in n.parents if p in stage_of)
    return sorted({(a, b) for a, b in pairs if a != b}, key=lambda edge: (order[edge[0]], order[edge[1]]))


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
    lines = _name_lines(stage_name(stage))
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


@dataclass(frozen=True)
class Layout:
    """Column and height of each place (a stage or a bend), and each arrow as the places it runs through."""

    column: dict[str, int]
    height: dict[str, float]
    routes: list[list[str]]

    @property
    def bottom(self) -> float:
        return max((y + _room(name) / 2 for name, y in self.height.items()), default=0.0)


def layout(stages: Sequence[str], edges: Sequence[Edge]) -> Layout:
    column = _late(depths(stages, edges), edges)
    routes = []
    for a, b in (edge for edge in edges if column[edge[0]] < column[edge[1]]):
        bends = {f"{a}\0{at}": at for at in range(column[a] + 1, column[b])}
        column |= bends
        routes.append([a, *bends, b])
    neighbours: dict[str, set[str]] = {}
    for a, b in (step for route in routes for step in pairwise(route)):
        neighbours.setdefault(a, set()).add(b)
        neighbours.setdefault(b, set()).add(a)
    return Layout(column, _heights(column, neighbours), routes)


def depths(stages: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """Length of the longest path to each stage. As many rounds as stages, so even a cycle comes to an end."""
    depth = dict.fromkeys(stages, 0)
    for _ in stages:
        for a, b in edges:
            if depth[b] <= depth[a] < len(stages) - 1:
                depth[b] = depth[a] + 1
    used = {value: place for place, value in enumerate(sorted(set(depth.values())))}
    return {stage: used[value] for stage, value in depth.items()}


def _late(column: dict[str, int], edges: Sequence[Edge]) -> dict[str, int]:
    """Stages without parents move to just before their first use: queries belong beside the index."""
    children = {b for _, b in edges}
    first = {a: min(column[b] for x, b in edges if x == a) for a, _ in edges if a not in children}
    return column | {stage: max(at - 1, 0) for stage, at in first.items()}


def _heights(column: Mapping[str, int], neighbours: Mapping[str, set[str]]) -> dict[str, float]:
    """Everything moves towards the mean of its neighbours, column by column, as far as there is room."""
    last = max(column.values(), default=-1)
    columns = [[name for name, at in column.items() if at == place] for place in range(last + 1)]
    height: dict[str, float] = {}
    for names in columns:
        height |= dict(zip(names, _spread(names, [0.0] * len(names)), strict=True))
    for turn in range(ROUNDS):
        for names in columns if turn % 2 == 0 else columns[::-1]:
            wanted = {
                name: _mean([height[o] for o in sorted(neighbours.get(name, ()))], height[name])
                for name in names
            }
            names.sort(key=wanted.__getitem__)
            height |= dict(zip(names, _spread(names, [wanted[name] for name in names]), strict=True))
    top = min((y - _room(name) / 2 for name, y in height.items()), default=0.0)
    return {name: y - top for name, y in height.items()}


def _spread(names: Sequence[str], wanted: Sequence[float]) -> list[float]:
    """As near to the wanted heights as their order and sizes allow, and not lower on the whole."""
    placed: list[float] = []
    for place, (name, want) in enumerate(zip(names, wanted, strict=True)):
        least = placed[-1] + (_room(names[place - 1]) + _room(name)) / 2 if placed else want
        placed.append(max(want, least))
    shift = sum(w - p for w, p in zip(wanted, placed, strict=True)) / max(len(placed), 1)
    return [y + shift for y in placed]


def _room(name: str) -> float:
    return BEND_ROOM if "\0" in name else ROOM


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
