"""The page of a comparison."""

from __future__ import annotations

import re

from mudg_core.evaluate.comparison import Comparison, RowScore
from mudg_core.evaluate.uncertainty import Estimate
from mudg_core.report.charts.bars import comparison
from mudg_core.report.page import render_comparison
from mudg_core.report.tables import comparison_summary as summary

HOSTILE = '<script>alert("1")</script>'


def made(mudg: float = 71.1, target: str = "pacs") -> Comparison:
    rows = (
        RowScore("zero-shot", "prompts", "plain", (60.0,), {"art": 55.0}, paper={"ViT-B/16": 96.0}),
        RowScore("mudg", "retrieval", "all of it", (mudg - 1, mudg + 1), {"art": mudg}),
        RowScore(
            "select-herding",
            "selection",
            "images by herding",
            (70.0, 72.0),
            {"art": 71.0},
            accuracy=Estimate(71.0, 0.6),
            method_gain=Estimate(mudg - 71.0, 1.0),
        ),
        RowScore("few-shot", "upper bound", "labels", (90.0, 90.0), {"art": 90.0}),
    )
    return Comparison(target, (0, 1), rows, {"cupl": "no file was given"})


def test_page_has_every_row_and_marks_what_is_the_papers() -> None:
    page = render_comparison("mudg compare", [made()])
    assert all(name in page for name in ("zero-shot", "select-herding", "few-shot", "no file was given"))
    assert (
        "paper, ViT-B/16" in page
        and "+11.1" in page
        and "[69.5, 72.5]" in page
        and "MUDG is better by" in page
    )
    assert "paper, ViT-L/14" not in page
    assert not re.search(r"(src|href)=\"(?!#)", page)


def test_the_summary_tells_who_is_better_and_leaves_the_upper_bound_out() -> None:
    assert summary(made(75.0)).endswith("select-herding is the best of the others: 71.0 %.")
    assert summary(made(65.0)).endswith("select-herding is better: 71.0 %.")
    assert summary(made(70.0)).endswith("select-herding is better: 71.0 %, within the uncertainty.")


def test_names_are_text() -> None:
    page = render_comparison(HOSTILE, [made(target=HOSTILE)])
    assert HOSTILE not in page and "&lt;script&gt;" in page


def test_chart_survives_a_diverged_row_and_equal_rows() -> None:
    odd = Comparison("t", (0,), (RowScore("mudg", "g", "", (float("nan"),), {}),))
    flat = Comparison("t", (0,), (RowScore("zero-shot", "g", "", (50.0,), {}),))
    assert "<svg" in comparison(odd) and "50.0" in comparison(flat)
