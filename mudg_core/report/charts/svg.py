"""The few SVG elements that charts are written in, and pictures that stand alone.

Everything goes through `tag`, which escapes text and attributes, so no chart can be broken by a class name.
Colours are CSS classes, never attributes: the page then follows light, dark and print by itself, and needs no
`style` attribute, which its content security policy forbids. A picture that is a file of its own (in an
artifact, a README or a paper) has no page to style it and brings its colours along, as plain values: most
programs that show SVG outside a browser know no variables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from mudg_core.report.words import columns

Point = tuple[float, float]
WIDTH = 800.0
TONES = ("#0a66ad", "#d55e00", "#008a65", "#b05a8d", "#7a6a00", "#55606c")
DARK_TONES = ("#59abeb", "#e87b35", "#3cc39b", "#d78fb6", "#d0b93a", "#9ba6b2")
HEAD = 62.0  # height of a picture's heading
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

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


def clean(text: str) -> str:
    """Without the characters that no HTML or XML document may hold."""
    return _NOT_XML.sub("\ufffd", text)


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """One element; `class_` becomes class and `stroke_width` stroke-width. None leaves an attribute out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean(_plain(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(escape(child if isinstance(child, Markup) else clean(child)) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def chart(title: str, width: float, height: float, *children: str, kind: str = "") -> Markup:
    """The drawing itself; its title is what a screen reader says."""
    return tag(
        "svg",
        *children,
        class_=f"chart {kind}".strip(),
        viewBox=f"0 0 {_plain(width)} {_plain(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
    )


def text(
    x: float, y: float, words: str, class_: str = "", anchor: str | None = None, tip: str = ""
) -> Markup:
    """Words at a point; `tip` is shown when the pointer rests on them."""
    return tag("text", words, *_tip(tip), x=x, y=y, class_=class_ or None, text_anchor=anchor)


def bar(
    x: float, y: float, width: float, height: float, class_: str, tip: str = "", round_: float = 2
) -> Markup:
    """A rectangle; one that stands for something is never invisible."""
    size = {"width": max(width, 0.5), "height": max(height, 0.5)}
    return tag("rect", *_tip(tip), x=x, y=y, **size, rx=round_, class_=class_)


def dot(x: float, y: float, radius: float, class_: str, tip: str = "") -> Markup:
    return tag("circle", *_tip(tip), cx=x, cy=y, r=radius, class_=class_)


def line(start: Point, end: Point, class_: str) -> Markup:
    return tag("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=class_)


def path(points: Sequence[Point], class_: str) -> Markup:
    """A line through points."""
    steps = " ".join(f"{'L' if i else 'M'}{_plain(x)} {_plain(y)}" for i, (x, y) in enumerate(points))
    return tag("path", d=steps, class_=class_)


def group(children: Iterable[str], **attributes: object) -> Markup:
    return tag("g", *children, **attributes)


def _tip(words: str) -> tuple[Markup, ...]:
    return (tag("title", words),) if words else ()


def name_room(names: Iterable[str], limit: int = 24) -> float:
    """Width of a column of names. SVG cannot measure text, so it takes the width of a wide system font."""
    return 16 + 7.4 * min(max((columns(name) for name in names), default=0), limit)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers that cover low..high: people read 20, 40, 60, not 17, 34, 51."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        low, high, span = (low - 0.5, low + 0.5, 1.0) if math.isfinite(low) else (0.0, 1.0, 1.0)
    rough = span / max(wanted - 1, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers that cover low..high: 1, 2, 5 of each power of ten; over a wide range, powers alone."""
    first, last = math.floor(math.log10(low) - 1e-9), math.ceil(math.log10(high) + 1e-9)
    steps = (1.0, 2.0, 5.0) if math.log10(high / low) <= 3 else (1.0,)
    marks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    start = max((mark for mark in marks if mark <= low * (1 + 1e-9)), default=marks[0])
    end = min((mark for mark in marks if mark >= high * (1 - 1e-9) and mark > start), default=marks[-1])
    return [mark for mark in marks if start <= mark <= end]


def _plain(value: object) -> str:
    """Numbers to a tenth of a pixel: smaller files, and the same bytes on every machine."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0") if math.isfinite(value) else "0"
    return str(value)


def picture(title: str, about: str, width: float, height: float, *children: str, style: str = "") -> str:
    """A file: a heading, a line that says what is seen, and what is drawn; `style` has rules of its own."""
    heading = text(16, 28, title, "title"), text(16, 48, about, "about")
    dark = f"@media (prefers-color-scheme: dark) {{{_DARK}{_tones(DARK_TONES, '#14171b')}}}"
    rules = tag("style", Markup(f"{_STYLE}{_tones(TONES, '#fff')}{dark}" + style))
    paper = bar(0, 0, width, height, "paper", round_=0)
    svg = chart(f"{title}. {about}", width, height, rules, paper, *heading, *children)
    namespaced = str(svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{namespaced}\n'


def _tones(colours: tuple[str, ...], paper: str) -> str:
    """Dots of a dashed line are hollow: two lines of one colour stay two, also where they cross."""
    rules = []
    for i, colour in enumerate(colours):
        rules.append(f".line.tone-{i}, .dot.dashed.tone-{i} {{ stroke: {colour}; }}")
        rules.append(f".dot.tone-{i}, .band.tone-{i} {{ fill: {colour}; }}")
        rules.append(f".dot.dashed.tone-{i} {{ fill: {paper}; }}")
    return "\n".join(rules)
