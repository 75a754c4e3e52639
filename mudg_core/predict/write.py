"""Predictions as lines: a table for people, JSON or CSV for programs. Written as they come."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from typing import TextIO

from mudg_core.dataset.export.formats import cell
from mudg_core.predict.model import Prediction

WIDEST = 40  # letters of a class name in a table


class Table:
    """Aligned columns, the file last: it may be of any length. What could not be read says so."""

    def __init__(self, stream: TextIO, classes: Sequence[str], top: int) -> None:
        self._stream, self._classes = stream, [str(cell(name))[:WIDEST] for name in classes]
        self._width = max(len("class"), *map(len, self._classes))
        self._line("probability", "class", "file")

    def write(self, prediction: Prediction) -> None:
        name = str(prediction.file)
        for guess in prediction.guesses:
            self._line(f"{100 * guess.probability:.1f} %", self._classes[guess.label], name)
        if prediction.error:
            self._line("-", "-", f"{name}  ({prediction.error})")

    def _line(self, share: str, label: str, file: str) -> None:
        printable = "".join(letter if letter.isprintable() else "?" for letter in file)
        self._stream.write(f"{share:>11}  {label:<{self._width}}  {printable}\n")


class JsonLines:
    """One object a line."""

    def __init__(self, stream: TextIO, classes: Sequence[str], top: int) -> None:
        self._stream, self._classes = stream, classes

    def write(self, prediction: Prediction) -> None:
        guesses = [
            {
                "class": self._classes[guess.label],
                "label": guess.label,
                "probability": round(guess.probability, 6),
                "cosine": round(guess.cosine, 6),
            }
            for guess in prediction.guesses
        ]
        result = {"error": prediction.error} if prediction.error else {"predictions": guesses}
        self._stream.write(json.dumps({"file": str(prediction.file)} | result) + "\n")


class Csv:
    """One line an image: class and probability, the second-best ones in further columns, then the error."""

    def __init__(self, stream: TextIO, classes: Sequence[str], top: int) -> None:
        self._lines, self._classes = csv.writer(stream, lineterminator="\n"), classes
        self._top = min(top, len(classes))
        more = [f"{name}_{n}" for n in range(2, self._top + 1) for name in ("class", "probability")]
        self._lines.writerow(["file", "class", "probability", *more, "error"])

    def write(self, prediction: Prediction) -> None:
        cells: list[object] = [str(prediction.file)]
        for guess in prediction.guesses:
            cells += [self._classes[guess.label], guess.probability]
        cells += [""] * (1 + 2 * self._top - len(cells))
        self._lines.writerow([cell(value) for value in (*cells, prediction.error)])


FORMS: dict[str, type[Table | JsonLines | Csv]] = {"table": Table, "json": JsonLines, "csv": Csv}


def write_all(
    predictions: Iterable[Prediction], stream: TextIO, form: str, classes: Sequence[str], top: int
) -> Iterable[Prediction]:
    """Writes predictions as they go by."""
    lines = FORMS[form](stream, classes, top)
    for one in predictions:
        lines.write(one)
        yield one
