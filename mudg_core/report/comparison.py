"""The page of a comparison: a chart and a table for each target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from mudg_core import __version__
from mudg_core.evaluate.comparison import METHOD, REFERENCE, Comparison, RowScore
from mudg_core.evaluate.uncertainty import Estimate
from mudg_core.report import charts
from mudg_core.report.charts.svg import clean
from mudg_core.report.html import environment, policy, resource
from mudg_core.report.words import count, number, signed


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    name: str
    about: str
    mean: str
    interval: str
    gain: str
    method_gain: str
    method_interval: str
    cells: tuple[str, ...]
    paper: tuple[str, ...]
    best: bool


@dataclass(frozen=True)
class ComparisonView:
    """One target; `groups` are (name, lines)."""

    data: Comparison
    anchor: str
    summary: str
    chart: Markup
    domains: tuple[str, ...]
    backbones: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Line, ...]], ...]
    left_out: tuple[tuple[str, str], ...]


def render_comparison(title: str, comparisons: Sequence[Comparison]) -> str:
    """The whole page. The same figures give the same bytes."""
    style, script = resource("style.css"), resource("script.js.j2")
    page = environment().from_string(resource("comparison.html.j2"))
    views = [_view(made, f"c{place}") for place, made in enumerate(comparisons)]
    text = page.render(
        title=title,
        version=__version__,
        style=Markup(style),
        policy=policy(style, script),
        views=views,
    )
    return clean(text.strip()) + "\n"


def _view(made: Comparison, anchor: str) -> ComparisonView:
    domains = tuple(dict.fromkeys(domain for row in made.rows for domain in row.domains))
    backbones = tuple(made.backbones())
    plain = made.row(REFERENCE)
    top = max((round(row.mean, 1) for row in made.rows if row.group != "upper bound"), default=0.0)
    groups: dict[str, list[Line]] = {}
    for row in made.rows:
        line = _line(row, plain, domains, backbones, round(row.mean, 1) == top)
        groups.setdefault(row.group, []).append(line)
    return ComparisonView(
        made,
        anchor,
        summary(made),
        charts.comparison(made),
        domains,
        backbones,
        tuple((name, tuple(lines)) for name, lines in groups.items()),
        tuple(made.left_out.items()),
    )


def _line(
    row: RowScore, plain: RowScore | None, domains: Sequence[str], backbones: Sequence[str], best: bool
) -> Line:
    gain = signed(round(row.mean, 1) - round(plain.mean, 1)) if plain and row is not plain else ""
    cells = tuple(number(row.domains[name]) if name in row.domains else "" for name in domains)
    paper = tuple(number(row.paper[name]) if name in row.paper else "" for name in backbones)
    against = row.method_gain
    return Line(
        row.name,
        row.about,
        number(row.mean),
        _interval(row.accuracy, number),
        gain,
        signed(against.mean) if against else "",
        _interval(against, signed),
        cells,
        paper,
        best,
    )


def _interval(estimate: Estimate | None, words: Callable[[float], str]) -> str:
    return f"[{words(estimate.low)}, {words(estimate.high)}]" if estimate else ""


def summary(made: Comparison) -> str:
    """What the table says of the method, in a sentence: also where another row is better."""
    ours, plain = made.row(METHOD), made.row(REFERENCE)
    seeds = count(len(made.seeds), "seed")
    if ours is None or plain is None:
        return f"{count(len(made.rows), 'row')}, {seeds}."
    others = [row for row in made.rows if row.group not in ("upper bound",) and row is not ours]
    best = max(others, key=lambda row: row.mean)
    figures = f"MUDG {number(ours.mean)} %, zero-shot {number(plain.mean)} %, {seeds}."
    ranked = "is better" if best.mean > ours.mean else "is the best of the others"
    unsure = "" if best.method_gain is None or best.method_gain.certain else ", within the uncertainty"
    return f"{figures} {best.name} {ranked}: {number(best.mean)} %{unsure}."
