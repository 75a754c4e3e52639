"""Predictions as a table, JSON lines and CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from mudg_core.predict.model import Guess, Prediction
from mudg_core.predict.write import FORMS, write_all

CLASSES = ("cat", "=1+1", "a" * 60)
FOUND = [
    Prediction(Path("x/1.jpg"), (Guess(0, 0.9, 0.31), Guess(1, 0.1, 0.2))),
    Prediction(Path("bad\x1b[31m.jpg"), error="image: empty"),
    Prediction(Path("=x.jpg"), (Guess(1, 0.6, 0.3), Guess(2, 0.4, 0.29))),
]


def written(form: str, top: int = 2, found: list[Prediction] = FOUND) -> str:
    stream = io.StringIO()
    assert list(write_all(found, stream, form, CLASSES, top)) == found
    return stream.getvalue()


def test_a_table_is_aligned_and_harmless() -> None:
    lines = written("table").splitlines()
    assert lines[0].split() == ["probability", "class", "file"]
    assert lines[1].split() == ["90.0", "%", "cat", "x/1.jpg"]
    assert lines[3].endswith("bad?[31m.jpg  (image: empty)") and lines[3].split()[:2] == ["-", "-"]
    assert len({line.index(name) for line, name in zip(lines[1:3], ("x/1", "x/1"), strict=True)}) == 1
    assert "a" * 40 in lines[5] and "a" * 41 not in lines[5]


def test_json_has_one_object_a_line() -> None:
    lines = [json.loads(line) for line in written("json").splitlines()]
    assert lines[0]["file"] == "x/1.jpg"
    assert lines[0]["predictions"][0] == {"class": "cat", "label": 0, "probability": 0.9, "cosine": 0.31}
    assert lines[1] == {"file": "bad\x1b[31m.jpg", "error": "image: empty"}
    assert [guess["class"] for guess in lines[2]["predictions"]] == ["=1+1", "a" * 60]


def test_csv_has_a_column_for_everything() -> None:
    lines = list(csv.reader(io.StringIO(written("csv"))))
    assert lines[0] == ["file", "class", "probability", "class_2", "probability_2", "error"]
    assert lines[1] == ["x/1.jpg", "cat", "0.9", "'=1+1", "0.1", ""]
    assert lines[2] == ["bad [31m.jpg", "", "", "", "", "image: empty"]
    assert lines[3][:2] == ["'=x.jpg", "'=1+1"]  # a spreadsheet would compute it
    assert written("csv", top=99, found=[]).count(",") == 1 + 2 * 3


@pytest.mark.parametrize("form", FORMS)
def test_lines_are_written_as_they_come(form: str) -> None:
    stream = io.StringIO()
    found = iter(write_all(FOUND, stream, form, CLASSES, 2))
    next(found)
    assert "x/1.jpg" in stream.getvalue() and "=x.jpg" not in stream.getvalue()
