"""Pages of one HTML file that loads nothing, so that it can be mailed, archived and opened in ten years."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined
from markupsafe import Markup

from mudg_core import __version__
from mudg_core.evaluate.comparison import Comparison
from mudg_core.report import gallery, tables
from mudg_core.report.charts import bars, lineage, plot
from mudg_core.report.charts.svg import clean
from mudg_core.report.data import ReportData, TargetReport
from mudg_core.report.words import OUTCOMES, Verdict, arm_name, number, shorten, signed, summary, verdict, why

LIMITS = {
    "notes": 6,
    "artifacts": 300,
    "open_rows": 40,  # classes listed before the rest is folded away
    "descriptors": 40,
    "worst": 5,
    "named": 12,  # classes that one warning names
}


@dataclass(frozen=True)
class TargetView:
    """One target with what is worked out for it; the rest is called from the template."""

    data: TargetReport
    anchor: str
    verdict: Verdict
    galleries: tuple[gallery.ClassGallery, ...]


def render(data: ReportData) -> str:
    """The report of a run. The same data gives the same bytes."""
    every = zip(data.targets, gallery.galleries(data.targets), strict=True)
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
    environment.globals.update(arm_name=arm_name, number=number, shorten=shorten, signed=signed, why=why)
    environment.globals.update(draw_lineage=lineage.lineage, gallery=gallery, version=__version__)
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


def render_comparison(title: str, comparisons: Sequence[Comparison]) -> str:
    """A chart and a table for each target. The same figures give the same bytes."""
    return _page("comparison.html.j2", title=title, comparisons=comparisons)
