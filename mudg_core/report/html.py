"""The report: one HTML file that loads nothing, so it can be mailed, archived and opened in ten years."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import BaseLoader, Environment, StrictUndefined
from markupsafe import Markup

from mudg_core.report import charts
from mudg_core.report.charts.svg import clean
from mudg_core.report.data import ReportData
from mudg_core.report.view import MAX_NOTES, headline, index_view, page_figures, target_views
from mudg_core.report.words import number, signed

MAX_ARTIFACTS = 300
MAX_OPEN_ROWS = 40  # classes listed before the rest is folded away


def render(data: ReportData) -> str:
    """The whole page. The same data gives the same bytes."""
    style, script = resource("style.css"), resource("script.js.j2")
    views = target_views(data)
    page = (
        environment()
        .from_string(resource("template.html.j2"))
        .render(
            data=data,
            style=Markup(style),
            script=Markup(script),
            policy=policy(style, script),
            headline=headline(data, views),
            page_figures=page_figures(data),
            targets=views,
            index=index_view(data.index),
            timings=charts.timings(data.timings) if data.timings else Markup(),
            lineage=charts.lineage(data.lineage) if data.lineage else Markup(),
            max_notes=MAX_NOTES,
            max_artifacts=MAX_ARTIFACTS,
            max_open_rows=MAX_OPEN_ROWS,
        )
    )
    return clean(page.strip()) + "\n"


def policy(style: str, script: str) -> str:
    """A content security policy that allows this style, this script and embedded images, and nothing else.

    Even if something in a class name got past the escaping, the browser would refuse to run or load it.
    """
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def environment() -> Environment:
    """Escapes everything, and treats a misspelt variable as an error rather than as nothing."""
    made = Environment(
        loader=BaseLoader(), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters.update(number=number, signed=signed)
    return made


def resource(name: str) -> str:
    """A file of this package, wherever it is installed."""
    return files("mudg_core.report").joinpath(name).read_text(encoding="utf-8")
