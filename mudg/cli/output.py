"""Results on standard output, all else on standard error; tables; large numbers as people read them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from rich.console import Console

from mudg_core.errors import InputError
from mudg_core.visible import one_line, visible

console = Console(stderr=True)
BYTES = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
TIMES = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))


def show(result: Mapping[str, Any], text: str, as_json: bool) -> None:
    """The result on standard output; everything else a command says goes to standard error."""
    sys.stdout.write((json.dumps(result) if as_json else visible(text.rstrip())) + "\n")
    sys.stdout.flush()


def say(text: str, style: str = "") -> None:
    """A line on standard error, word for word: without Rich's markup."""
    console.print(text, style=style or None, markup=False, highlight=False, soft_wrap=True)


def tick(title: str, detail: str = "") -> None:
    """A step that has ended; `title` may hold markup."""
    console.print(f"[green]✓[/] {title}" + (f" [dim]{detail}[/]" if detail else ""), highlight=False)


def table_of(rows: Sequence[Sequence[Any]], header: Sequence[str]) -> str:
    """Plain aligned columns: readable in a terminal, in a log and in a mail."""
    lines = [[one_line(str(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def size(number: float) -> str:
    """Bytes in decimal units, as disks are sold: 851 GB."""
    unit = 0
    while float(f"{number:.3g}") >= 1000 and unit < len(BYTES) - 1:
        number, unit = number / 1000, unit + 1
    return f"{three_digits(number)} {BYTES[unit]}" if number else "-"


def duration(hours: float) -> str:
    """In the largest unit of which there is at least one: 1.2 h."""
    seconds = hours * 3600
    if seconds < 1e-3:
        return "-" if seconds == 0 else "< 1 ms"
    scale, unit = next((each for each in TIMES if seconds >= each[0]), TIMES[-1])
    return f"{seconds / scale:.2g} {unit}" if seconds / scale < 99.5 else f"{seconds / scale:.0f} {unit}"


def flop(number: float) -> str:
    return f"{number:.1e}".replace("e+", "e") if number else "-"


def three_digits(number: float) -> str:
    return f"{number:.0f}" if number >= 99.95 else f"{number:.3g}"


def count(number: int) -> str:
    """Exact, unless nobody would read all its digits."""
    return f"{number:,}" if number < 1_000_000_000 else f"{number / 1e9:.3g} billion"


def age(text: str) -> timedelta:
    """A time as people write it: 30d, 12h, 90min; days without a unit."""
    match = re.fullmatch(r"\s*(\d{1,6}(?:\.\d{1,6})?)\s*(d|h|min)?\s*", text)
    if match is None:
        raise InputError(what=f"{text[:40]!r} is not an age", fix="write 30d, 12h or 90min")
    unit = {"d": "days", "h": "hours", "min": "minutes"}[match[2] or "d"]
    return timedelta(**{unit: float(match[1])})
