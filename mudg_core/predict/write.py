"""Predictions as lines: a table for people, JSON or CSV for programs. Written as they come."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from mudg_core.dataset.export.formats import cell
from mudg_core.predict.model import Prediction

WIDEST = 40  # letters of a class name in a table
Writer = Callable[[Prediction], object]


def table(stream: TextIO, classes: Sequence[str], top: int) -> Writer:
    """Aligned columns, the file last: it may be of any length. What could not be read says so."""
    names = [str(cell(name))[:WIDEST] for name in classes]
    width = max(len("class"), *map(len, names))

    def line(share: str, label: str, file: str) -> None:
        printable = "".join(letter if letter.isprintable() else "?" for letter in file)
        stream.write(f"{share:>11}  {label:<{width}}  {printable}\n")

    def write(prediction: Prediction) -> None:
        for guess in prediction.guesses:
            line(f"{100 * guess.probability:.1f} %", names[guess.label], str(prediction.file))
        if prediction.error:
            line("-", "-", f"{prediction.file}  ({prediction.error})")

    line("probability", "class", "file")
    return write


def json_lines(stream: TextIO, classes: Sequence[str], top: int) -> Writer:
    """One object a line."""

    def write(prediction: Prediction) -> None:
        guesses = [
            {
                "class": classes[guess.label],
                "label": guess.label,
                "probability": round(guess.probability, 6),
                "cosine": round(guess.cosine, 6),
            }
            for guess in prediction.guesses
        ]
        result = {"error": prediction.error} if prediction.error else {"predictions": guesses}
        stream.write(json.dumps({"file": str(prediction.file)} | result) + "\n")

    return write


def csv_lines(stream: TextIO, classes: Sequence[str], top: int) -> Writer:
    """One line an image: class and probability, the second-best ones in further columns, then the error."""
    lines, top = csv.writer(stream, lineterminator="\n"), min(top, len(classes))

    def write(prediction: Prediction) -> None:
        cells: list[object] = [str(prediction.file)]
        for guess in prediction.guesses:
            cells += [classes[guess.label], guess.probability]
        cells += [""] * (1 + 2 * top - len(cells))
        lines.writerow([cell(value) for value in (*cells, prediction.error)])

    more = [f"{name}_{n}" for n in range(2, top + 1) for name in ("class", "probability")]
    lines.writerow(["file", "class", "probability", *more, "error"])
    return write


FORMS = {"table": table, "json": json_lines, "csv": csv_lines}


def write_all(
    predictions: Iterable[Prediction], stream: TextIO, form: str, classes: Sequence[str], top: int
) -> Iterable[Prediction]:
    """Writes predictions as they go by."""
    write = FORMS[form](stream, classes, top)
    for one in predictions:
        write(one)
        yield one
