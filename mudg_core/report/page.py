"""Pages of one HTML file that loads nothing, so that it can be mailed, archived and opened in ten years."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined
from markupsafe import Markup

from mudg_core import __version__
from mudg_core.evaluate.comparison import METHOD, REFERENCE, Comparison, RowScore
from mudg_core.evaluate.uncertainty import Estimate
from mudg_core.report import tables
from mudg_core.report.charts import bars, lineage, plot
from mudg_core.report.charts.svg import clean
from mudg_core.report.data import ReportData, TargetReport
from mudg_core.report.gallery import ClassGallery, galleries, previews, shown_images
from mudg_core.report.words import OUTCOMES, Verdict, arm_name, count, number, signed, summary, verdict

LIMITS = {
    "notes": 6,
    "artifacts": 300,
    "open_rows": 40,  # classes listed before the rest is folded away
    "descriptors": 40,
    "worst": 5,
}


@dataclass(frozen=True)
class TargetView:
    """One target with what is worked out for it; the rest is called from the template."""

    data: TargetReport
    anchor: str
    verdict: Verdict
    galleries: tuple[ClassGallery, ...]


def render(data: ReportData) -> str:
    """The report of a run. The same data gives the same bytes."""
    every = zip(data.targets, galleries(data.targets), strict=True)
    views = [
        TargetView(target, f"t{place}", verdict(target), own) for place, (target, own) in enumerate(every)
    ]
    return _page("template.html.j2", data=data, targets=views, headline=_headline(views))


def _headline(views: Sequence[TargetView]) -> tuple[tuple[str, str], ...]:
    """One target: its result. Several: how many of them were won; the cards below have the numbers."""
    if len(views) == 1:
        return views[0].verdict.pieces(views[0].data.name)
    return ((summary([view.verdict for view in views]), ""),)


def _page(template: str, **values: Any) -> str:
    """Escapes everything, and treats a misspelt variable as an error rather than as nothing."""
    environment = Environment(
        loader=BaseLoader(), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(number=number, signed=signed)
    environment.globals.update(bars=bars, plot=plot, tables=tables, limits=LIMITS, outcomes=OUTCOMES)
    environment.globals.update(arm_name=arm_name, previews=previews, shown_images=shown_images)
    environment.globals.update(draw_lineage=lineage.lineage, version=__version__)
    style, script = _resource("style.css"), _resource("script.js.j2")
    page = environment.from_string(_resource(template)).render(
        style=Markup(style), script=Markup(script), policy=_policy(style, script), **values
    )
    return clean(page.strip()) + "\n"


def _policy(style: str, script: str) -> str:
    """A content security policy that allows this style, this script and embedded images, and nothing else.

    Even if something in a class name got past the escaping, the browser would refuse to run or load it.
    """
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _resource(name: str) -> str:
    """A file of this package, wherever it is installed."""
    return files("mudg_core.report").joinpath(name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class ComparisonRow:
    """One row of the table of a comparison."""

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


def render_comparison(title: str, comparisons: Sequence[Comparison]) -> str:
    """A chart and a table for each target. The same figures give the same bytes."""
    views = [_comparison(one, f"c{place}") for place, one in enumerate(comparisons)]
    return _page("comparison.html.j2", title=title, views=views)


def _comparison(one: Comparison, anchor: str) -> dict[str, Any]:
    domains = list(dict.fromkeys(domain for row in one.rows for domain in row.domains))
    top = max((round(row.mean, 1) for row in one.rows if row.group != "upper bound"), default=0.0)
    groups: dict[str, list[ComparisonRow]] = {}
    for row in one.rows:
        groups.setdefault(row.group, []).append(_row(row, one, domains, round(row.mean, 1) == top))
    return {
        "data": one,
        "anchor": anchor,
        "summary": comparison_summary(one),
        "domains": domains,
        "backbones": one.backbones(),
        "groups": groups,
    }


def _row(row: RowScore, one: Comparison, domains: Sequence[str], best: bool) -> ComparisonRow:
    plain, against = one.row(REFERENCE), row.method_gain
    gain = signed(round(row.mean, 1) - round(plain.mean, 1)) if plain and row is not plain else ""
    return ComparisonRow(
        row.name,
        row.about,
        number(row.mean),
        _interval(row.accuracy, number),
        gain,
        signed(against.mean) if against else "",
        _interval(against, signed),
        tuple(number(row.domains[name]) if name in row.domains else "" for name in domains),
        tuple(number(row.paper[name]) if name in row.paper else "" for name in one.backbones()),
        best,
    )


def _interval(estimate: Estimate | None, words: Callable[[float], str]) -> str:
    return f"[{words(estimate.low)}, {words(estimate.high)}]" if estimate else ""


def comparison_summary(one: Comparison) -> str:
    """What the table says of the method, in a sentence: also where another row is better."""
    ours, plain = one.row(METHOD), one.row(REFERENCE)
    seeds = count(len(one.seeds), "seed")
    if ours is None or plain is None:
        return f"{count(len(one.rows), 'row')}, {seeds}."
    best = max(
        (row for row in one.rows if row.group != "upper bound" and row is not ours), key=lambda row: row.mean
    )
    figures = f"MUDG {number(ours.mean)} %, zero-shot {number(plain.mean)} %, {seeds}."
    ranked = "is better" if best.mean > ours.mean else "is the best of the others"
    unsure = "" if best.method_gain is None or best.method_gain.certain else ", within the uncertainty"
    return f"{figures} {best.name} {ranked}: {number(best.mean)} %{unsure}."
