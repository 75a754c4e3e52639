"""Rows of a comparison, and their mean over targets."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.evaluate.comparison import Comparison, RowScore, interval_text, overall, row_score
from mudg_core.evaluate.uncertainty import Estimate
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
    made = Comparison("animals", (0, 1), rows, {"cupl": "no file"}).with_estimates(
        [{"d": np.array([[0.0, 100.0], [100.0, 100.0]])}]
    )
    assert made.rows[0].accuracy is not None
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
    assert both.rows[1].accuracy is None


@pytest.mark.parametrize("seeds", [(60.0, 40.0, 35.0), (60.0, 40.0)])
def test_targets_may_have_other_numbers_of_seeds(seeds: tuple[float, ...]) -> None:
    one, other = Comparison("a", (0, 1, 2), (row("mudg", *seeds),)), Comparison("b", (0,), (row("mudg", 50),))
    third = Comparison("c", (0, 1), (row("mudg", 1, 2),))
    assert overall([one, other]).rows[0].mean == pytest.approx((np.mean(seeds) + 50) / 2)
    assert overall([one, third]).rows[0].mean == pytest.approx((np.mean(seeds) + 1.5) / 2)


def test_gains_of_the_method_are_paired() -> None:
    """The method is right where the row is, and on one image more."""
    other = 100.0 * (np.arange(100) % 2)[None]
    ours = other.copy()
    ours[0, 0] = 100.0
    made = Comparison("a", (0,), (row("mudg", 51), row("loss", 50))).with_estimates(
        [{"d": ours}, {"d": other}]
    )
    first, second = made.rows
    assert first.method_gain is None and second.method_gain is not None and second.accuracy is not None
    assert second.method_gain.mean == pytest.approx(1)
    assert second.method_gain.margin < second.accuracy.margin / 3


def test_estimates_as_text() -> None:
    assert interval_text(Estimate(43.84, 0.25)) == "43.8 [42.9, 44.8]"
    assert interval_text(Estimate(1.5, 1.0), signed=True) == "+1.5 [-0.5, +3.5]"
    assert interval_text(Estimate(-0.01, 1e-4), signed=True) == "+0.0 [+0.0, +0.0]"
    assert interval_text(None) == ""
