"""Where the boxes and arrows of a layered graph go: columns by longest path, then heights by relaxation.

An arrow over several columns bends in each of them; arrows from one box share their bends until they part, so
that what feeds many stages is one line with branches and not a bundle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Edge = tuple[str, str]
ROOM, BEND_ROOM = 66.0, 26.0  # height of a box with the space around it, and of a line
ROUNDS = 13  # odd, so that the last one goes from parents to children


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
    made = {b for _, b in edges}
    first = {a: min(column[b] for x, b in edges if x == a) for a, _ in edges if a not in made}
    return column | {stage: max(at - 1, 0) for stage, at in first.items()}


def _heights(column: Mapping[str, int], neighbours: Mapping[str, set[str]]) -> dict[str, float]:
    """Everything moves towards the mean of its neighbours, column by column, as far as there is room."""
    last = max(column.values(), default=-1)
    columns = [[name for name, at in column.items() if at == place] for place in range(last + 1)]
    height = {name: y for names in columns for name, y in zip(names, _stacked(names), strict=True)}
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


def _stacked(names: Sequence[str]) -> list[float]:
    return _spread(names, [0.0] * len(names))


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
