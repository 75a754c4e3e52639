"""Provenance as CSV, for people with a spreadsheet.

Captions are strangers' words. A cell that begins with `=` is a formula to a spreadsheet, and may send what is
in the other cells to somebody; a line break or a NUL in one breaks simple readers. Both are taken out here;
the parquet of the artifact has the words as they were.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from mudg_core.dataset.export.source import COLUMNS, Item

HEADER = ("file", "class", *COLUMNS)
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


class ProvenanceCsv:
    """One line an image, in the order they are added."""

    def __init__(self, path: Path, classes: Sequence[str]) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="")
        self._lines = csv.writer(self._stream, lineterminator="\n")
        self._classes = classes
        self._lines.writerow(HEADER)

    def __enter__(self) -> ProvenanceCsv:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def add(self, file: str, item: Item) -> None:
        values = item.facts | {"label": item.label}
        cells = [file, self._classes[item.label], *(values.get(name) for name in COLUMNS)]
        self._lines.writerow([cell(value) for value in cells])


def cell(value: object) -> object:
    """Numbers as they are; words on one line, and with a quote in front where they would be a formula."""
    if value is None or value != value:
        return ""
    if not isinstance(value, str):
        return round(value, 6) if isinstance(value, float) else value
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in value).split())
    return f"'{line}" if line.startswith(_FORMULA) else line
