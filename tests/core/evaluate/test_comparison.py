"""Rows of a comparison, and their mean over targets."""

from __future__ import annotations

import pytest

from mudg_core.evaluate.comparison import Comparison, RowScore, overall, row_score
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
    made = Comparison("animals", (0, 1), rows, {"cupl": "no file"})
    assert Comparison.from_json(made.to_json()) == made
    assert made.to_json()["rows"][0]["mean"] == 62
    assert made.backbones() == ["ViT-L/14"]


def test_the_mean_over_targets_deviates_over_seeds() -> None:
    one = Comparison("a", (0, 1), (row("zero-shot", 40), row("mudg", 60, 70), row("extra", 1)))
    other = Comparison("b", (0, 1), (row("zero-shot", 50), row("mudg", 80, 70)))
    both = overall([one, other])
    assert [item.name for item in both.rows] == ["zero-shot", "mudg"]
    assert both.rows[0].by_seed == (45,)
    assert both.rows[1].by_seed == (70, 70) and both.rows[1].std == 0
