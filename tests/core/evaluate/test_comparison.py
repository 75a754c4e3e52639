"""Rows of a comparison, and their mean over targets."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.evaluate.comparison import Comparison, Estimate, RowScore, interval_text, overall, row_score
from mudg_core.settings import Json

META = {"name": "mudg", "group": "retrieval", "about": "all of it"}


def scores(mean: float, averaged: float = 1.0) -> dict[str, Json]:
    return {
        "single": {"mean": mean, "domains": {"sketch": mean - 1, "photo": mean + 1}},
        "averaged": {"mean": averaged, "domains": {"sketch": averaged, "photo": averaged}},
    }


def row(name: str, *by_seed: float) -> RowScore:
    return RowScore(name, "g", "", tuple(by_seed), {"d": by_seed[0]})


def test_a_row_is_the_mean_over_its_seeds() -> None:
    found = row_score(META, [scores(60, 70), scores(64, 72)], "single", {"ViT-B/16": 70.4})
    assert (found.mean, found.averaged, found.domains) == (62, 71, {"sketch": 61, "photo": 63})
    assert found.std == pytest.approx(8**0.5)
    plain = row_score(META, [scores(60, 70)], "averaged", {})
    assert (plain.mean, plain.std, plain.averaged) == (70, 0, None)


def test_json_keeps_all() -> None:
    rows = (row_score(META, [scores(60), scores(64)], "single", {"ViT-L/14": 76.4}),)
    made = Comparison("animals", (0, 1), rows, {"cupl": "no file"}).with_intervals(np.array([[60.0, 64.0]]))
    assert made.rows[0].accuracy is not None
    assert Comparison.from_json(made.to_json()) == made
    assert made.to_json()["rows"][0]["mean"] == 62
    assert made.backbones() == ["ViT-L/14"]


def test_the_mean_over_targets_deviates_over_seeds() -> None:
    one = Comparison("a", (0, 1), (row("zero-shot", 40), row("mudg", 60, 70), row("extra", 1)))
    other = Comparison("b", (0, 1), (row("zero-shot", 50), row("mudg", 80, 70)))
    drawn = [np.array([[40.0], [65.0], [1.0]]), np.array([[50.0], [75.0]])]
    both = overall([one, other], drawn)
    assert [item.name for item in both.rows] == ["zero-shot", "mudg"]
    assert both.rows[0].by_seed == (45,)
    assert both.rows[1].by_seed == (70, 70) and both.rows[1].std == 0
    assert both.rows[0].accuracy == Estimate(45, 45, 45)
    assert both.rows[0].method_gain == Estimate(25, 25, 25)


def test_gains_of_the_method_are_paired_by_replicate() -> None:
    """The row goes up and down with the method: the gain is sure, although both accuracies are not."""
    drawn = np.array([[40.0, 50.0, 60.0], [45.0, 55.0, 65.0]])
    made = Comparison("a", (0,), (row("mudg", 55), row("loss", 50))).with_intervals(drawn[::-1])
    ours, other = made.rows
    assert ours.method_gain is None and other.method_gain == Estimate(5, 5, 5)
    assert ours.accuracy is not None and ours.accuracy.high - ours.accuracy.low > 15
    assert other.method_gain.certain and not Estimate(1, -1, 3).certain


def test_estimates_as_text() -> None:
    assert interval_text(Estimate(43.84, 42.9, 44.6)) == "43.8 [42.9, 44.6]"
    assert interval_text(Estimate(1.5, -0.22, 3.1), signed=True) == "+1.5 [-0.2, +3.1]"
    assert interval_text(Estimate(-0.01, -0.04, 0.04), signed=True) == "+0.0 [+0.0, +0.0]"
    assert interval_text(None) == ""
