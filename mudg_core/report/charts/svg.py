"""The few SVG words that the charts are written in.

Everything goes through `tag`, which escapes text and attributes, so no chart can be broken by a class name.
Colours are CSS classes, never attributes: the page then follows light, dark and print by itself, and needs no
`style` attribute, which its content security policy forbids.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from mudg_core.report.words import columns

Point = tuple[float, float]
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Without the characters that no HTML or XML document may hold."""
    return _NOT_XML.sub("\ufffd", text)


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """One element; `class_` becomes class and `stroke_width` stroke-width. None leaves an attribute out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean(_plain(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(escape(child if isinstance(child, Markup) else clean(child)) for child in children)
    return Markup(f"<{name}{said}>{inside}</{name}>")


def chart(title: str, width: float, height: float, *children: str, kind: str = "") -> Markup:
    """The picture itself; its title is what a screen reader says."""
    box = f"0 0 {_plain(width)} {_plain(height)}"
    classes = f"chart {kind}".strip()
    return tag(
        "svg",
        *children,
        class_=classes,
        viewBox=box,
        width=width,
        height=height,
        role="img",
        aria_label=title,
    )


def text(
    x: float, y: float, words: str, class_: str = "", anchor: str | None = None, tip: str = ""
) -> Markup:
    """Words at a point; `tip` is shown when the pointer rests on them."""
    more = (tag("title", tip),) if tip else ()
    return tag("text", words, *more, x=x, y=y, class_=class_ or None, text_anchor=anchor)


def bar(
    x: float, y: float, width: float, height: float, class_: str, tip: str = "", round_: float = 2
) -> Markup:
    """A rectangle; one that stands for something is never invisible."""
    more = (tag("title", tip),) if tip else ()
    size = {"width": max(width, 0.5), "height": max(height, 0.5)}
    return tag("rect", *more, x=x, y=y, **size, rx=round_, class_=class_)


def line(start: Point, end: Point, class_: str) -> Markup:
    return tag("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=class_)


def path(points: Sequence[Point], class_: str) -> Markup:
    """A line through points."""
    steps = " ".join(f"{'L' if i else 'M'}{_plain(x)} {_plain(y)}" for i, (x, y) in enumerate(points))
    return tag("path", d=steps, class_=class_)


def group(children: Iterable[str], **attributes: object) -> Markup:
    return tag("g", *children, **attributes)


def name_room(names: Sequence[str], limit: int = 24) -> float:
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
    """1, 2, 5, 10, 20 and so on around low..high, for axes on which a step is a factor; both are positive."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    marks = [m * 10.0**power for power in range(first, last + 1) for m in (1, 2, 5)]
    start = max(i for i, mark in enumerate(marks) if mark <= low * 1.001)
    stop = min(i for i, mark in enumerate(marks) if mark >= high * 0.999)
    return [round(mark, 12) for mark in marks[start : max(stop, start + 1) + 1]]


def _plain(value: object) -> str:
    """Numbers to a tenth of a pixel: smaller files, and the same bytes on every machine."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0") if math.isfinite(value) else "0"
    return str(value)
