"""An SVG file that needs nothing around it: for an artifact, a README or a paper.

The report's page styles its charts; a file has to bring its colours along. Plain values, no variables: most
programs that show SVG outside a browser know only those.
"""

from __future__ import annotations

from markupsafe import Markup

from mudg_core.report.charts.svg import bar, chart, tag, text

TONES = ("#0a66ad", "#d55e00", "#008a65", "#b05a8d", "#7a6a00", "#55606c")
DARK_TONES = ("#59abeb", "#e87b35", "#3cc39b", "#d78fb6", "#d0b93a", "#9ba6b2")
HEAD = 62.0

_STYLE = """
svg { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.paper { fill: #fff; } text { fill: #1a1e24; } .tick { fill: #59636e; } .grid { stroke: #e4e8ec; }
.title { font-size: 17px; font-weight: 600; } .about { font-size: 12.5px; fill: #59636e; }
.name { font-size: 13px; }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
.plain { stroke: #59636e; } .line.dashed { stroke-dasharray: 5 5; } .band { stroke: none; fill-opacity: .14; }
.dot { stroke: #fff; stroke-width: 1.5; } .shade { fill: #59636e; fill-opacity: .25; }
"""
_DARK = """
.paper { fill: #14171b; } text { fill: #e8ebef; } .tick, .about { fill: #9ba6b2; } .grid { stroke: #2a3038; }
.plain { stroke: #9ba6b2; } .dot { stroke: #14171b; } .shade { fill: #9ba6b2; }
"""


def picture(title: str, about: str, width: float, height: float, *children: str, style: str = "") -> str:
    """The file: a heading, a line that says what is seen, and what is drawn; `style` has rules of its own."""
    heading = text(16, 28, title, "title"), text(16, 48, about, "about")
    rules = tag("style", Markup(_style() + style))
    paper = bar(0, 0, width, height, "paper", round_=0)
    svg = chart(f"{title}. {about}", width, height, rules, paper, *heading, *children)
    namespaced = str(svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{namespaced}\n'


def _style() -> str:
    dark = f"@media (prefers-color-scheme: dark) {{{_DARK}{_tones(DARK_TONES, '#14171b')}}}"
    return f"{_STYLE}{_tones(TONES, '#fff')}{dark}"


def _tones(colours: tuple[str, ...], paper: str) -> str:
    """Dots of a dashed line are hollow: two lines of one colour stay two, also where they cross."""
    rules = []
    for i, colour in enumerate(colours):
        rules.append(f".line.tone-{i}, .dot.dashed.tone-{i} {{ stroke: {colour}; }}")
        rules.append(f".dot.tone-{i}, .band.tone-{i} {{ fill: {colour}; }}")
        rules.append(f".dot.dashed.tone-{i} {{ fill: {paper}; }}")
    return "\n".join(rules)
