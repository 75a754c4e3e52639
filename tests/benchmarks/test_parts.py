"""Parts of a benchmark: each is run, told and kept, and the last line has them all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import record
from benchmarks.parts import Figures, Found, kept_as, parser_of, run_parts


def measure(part: str) -> Found:
    return {f"{part}_seconds": 1.23456}, {"part": part}


def test_parts_are_run_in_the_order_asked_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    run_parts(["two"], measure, kept_as("x"))
    capsys.readouterr()
    run_parts(["one"], measure, kept_as("x"), told=False)
    assert json.loads(capsys.readouterr().out) == {"two_seconds": 1.2346, "one_seconds": 1.2346}
    assert record.details("x") == {"two": {"part": "two"}, "one": {"part": "one"}}


def test_a_trial_is_told_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    seen: list[str] = []

    def measured(part: str) -> Found:
        seen.append(part)
        return measure(part)

    run_parts(["b", "a"], measured, kept_as("x", tiny=True))
    assert seen == ["b", "a"] and not list(tmp_path.iterdir())
    said = capsys.readouterr()
    assert json.loads(said.out) == {"b_seconds": 1.2346, "a_seconds": 1.2346}
    assert said.err.index("b …") < said.err.index('"part": "b"') < said.err.index("a …")


def test_figures_are_kept_as_a_benchmark_likes(capsys: pytest.CaptureFixture[str]) -> None:
    def kept(part: str, line: Figures, detail: Figures) -> Figures:
        return {"last": detail["part"]}

    run_parts(["a", "b"], measure, kept, told=False)
    said = capsys.readouterr()
    assert json.loads(said.out) == {"last": "b"} and said.err == ""


def test_parts_that_are_not_there_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = parser_of("What it does.", ["one", "two"])
    assert parser.parse_args([]).parts == [] and not parser.parse_args([]).tiny
    asked = parser.parse_args(["two", "one", "--tiny"])
    assert (asked.parts, asked.tiny) == (["two", "one"], True)
    for wrong, other in ((["three"], parser), (["--tiny"], parser_of("", ["one"], tiny=False))):
        with pytest.raises(SystemExit):
            other.parse_args(wrong)
    assert "invalid choice: 'three'" in capsys.readouterr().err
