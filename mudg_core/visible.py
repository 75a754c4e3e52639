"""Text from strangers for a terminal. Captions, names, links and messages of servers may hold sequences that
move the cursor, set the clipboard or turn text around; a reader sees them written out instead."""

from __future__ import annotations

import re

# C0 but tab and line end, DEL, C1, marks that turn text around, separators of lines, halves of surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with every control character written out: `\\x1b[31m`."""
    return _CONTROL.sub(lambda match: _written(match[0]), text)


def one_line(text: str) -> str:
    """The same for a cell of a table: its line ends and tabs are written out too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _written(char: str) -> str:
    number = ord(char)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
