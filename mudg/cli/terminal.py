"""What all output of the command goes through: no control character of data reaches a terminal.

Standard output and error are wrapped: results, logs, warnings and tracebacks are clean, whoever writes
them. Rich has to move the cursor and to set colours: its consoles write past the wrapper, and what is cleaned
there is the text that they are given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from mudg_core.visible import visible

_render = Console.render
_file: Any = vars(Console)["file"]


class Guarded:
    """A text stream that shows control characters instead of sending them."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __iter__(self) -> Any:
        return iter(self.raw)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def guard_terminal() -> None:
    """For this process; all consoles of Rich in it, also those of typer and Prefect."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is not None and not isinstance(stream, Guarded):
            setattr(sys, name, Guarded(stream))
    guard_rich()


def guard_rich() -> None:
    rich: Any = Console
    rich.render = _clean_render
    rich.file = property(_raw_file, _file.fset)


def _clean_render(
    self: Console, renderable: RenderableType, options: ConsoleOptions | None = None
) -> Iterable[Segment]:
    """No links either: Rich sends their address as it is, and a reader would not see where they lead."""
    for segment in _render(self, renderable, options):
        style = segment.style
        if style is not None and style.link:
            style = style.update_link(None)
        yield segment if segment.control else Segment(visible(segment.text), style)


def _raw_file(self: Console) -> Any:
    stream: Any = _file.fget(self)
    return stream.raw if isinstance(stream, Guarded) else stream
