"""Measures of several seeds as one, and what is said about them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from mudg_core.evaluate.classifier import Curve, CurvePoint
from mudg_core.evaluate.measures import answer, measure
from mudg_core.report import tables
from mudg_core.report.data import AlphaPoint, Measures
from mudg_core.report.seeds import measures_of
from tests.core.index.making import sphere


def scores(seed: int, alpha: bool = True) -> dict[str, Any]:
    """What a run writes for a seed; zero-shot is the same for all."""
    texts, random = sphere(6, 4, 0), np.random.default_rng(0)
    labels = random.integers(0, 5, 40)
    found: dict[str, Any] = {}
    for arm, number in (("zero_shot", 99), ("mudg", seed)):
        one = measure({"photo": answer(sphere(40, 4, number), labels, texts, 25.0)}, 6)
        found[arm] = {"single": asdict(one), "averaged": asdict(one)}
    if alpha:
        points = [CurvePoint(0.0, 50.0, 51.0), CurvePoint(1.0, 60.0 + seed, 61.0)]
        found["mudg"]["alpha"] = asdict(Curve(32, points))
    return found


def measures(*seeds: int, **changes: Any) -> Measures:
    found = measures_of([scores(seed, **changes) for seed in seeds])
    assert found is not None
    return found


def test_seeds_are_put_together() -> None:
    one, other = scores(1)["mudg"]["single"], scores(2)["mudg"]["single"]
    found = measures(1, 2).arms["mudg"]
    assert found.macro == pytest.approx((one["macro"] + other["macro"]) / 2)
    assert found.top5 == pytest.approx((one["top5"] + other["top5"]) / 2)
    sure = found.calibration
    assert sure.ece == pytest.approx((one["calibration"]["ece"] + other["calibration"]["ece"]) / 2)
    assert sum(part.images for part in sure.bins) == 80
    right = sum(part.images * part.accuracy for part in sure.bins) / 80
    assert right == pytest.approx(sure.accuracy)
    assert [part.low for part in sure.bins] == sorted({part.low for part in sure.bins})


def test_confusions_are_means_beside_those_before() -> None:
    found = measures(1, 2).confusions
    lists = [
        {(item["truth"], item["predicted"]): item for item in scores(seed)["mudg"]["single"]["confusions"]}
        for seed in (1, 2)
    ]
    before = {
        (i["truth"], i["predicted"]): i["share"] for i in scores(1)["zero_shot"]["single"]["confusions"]
    }
    for one in found:
        pair = one.truth, one.predicted
        assert one.images == sum(listed[pair]["images"] for listed in lists if pair in listed) / 2
        assert one.share == pytest.approx(
            sum(listed[pair]["share"] for listed in lists if pair in listed) / 2
        )
        assert one.before == before.get(pair)
    assert [one.images for one in found] == sorted((one.images for one in found), reverse=True)


def test_the_curve_has_its_spread() -> None:
    found = measures(1, 3)
    assert found.alpha == (
        AlphaPoint(0.0, 50.0, 51.0, 0.0),
        AlphaPoint(1.0, 62.0, 61.0, pytest.approx(2**0.5)),
    )
    assert found.alpha_images == 32
    assert measures(1, alpha=False).alpha == ()


def test_runs_without_measures_have_none() -> None:
    assert measures_of([]) is None
    assert measures_of([{"mudg": {"single": {"mean": 1.0}, "averaged": {"mean": 1.0}}}]) is None


def test_it_is_said_in_words() -> None:
    found = measures(1)
    best = (
        AlphaPoint(0.0, 50.0, 50.0, 0.0),
        AlphaPoint(0.5, 64.5, 60.0, 0.0),
        AlphaPoint(1.0, 62.0, 60.0, 0.0),
    )
    assert "Alpha 0.5 is best: 2.5 points above" in tables.alpha_summary(replace(found, alpha=best))
    assert "are the best of these" in tables.alpha_summary(found)
    mudg = found.arms["mudg"]
    for confidence, words in (
        (90.0, "is overconfident: its mean confidence is 40.0 points above"),
        (50.5, "well calibrated"),
        (20.0, "is underconfident: its mean confidence is 30.0 points below"),
    ):
        sure = replace(mudg.calibration, confidence=confidence, accuracy=50.0)
        changed = replace(found, arms={"mudg": replace(mudg, calibration=sure)})
        assert words in tables.calibration_summary(changed)
    few = replace(found, arms={"mudg": replace(mudg, top5=None)})
    columns = tables.calibration_columns(few)
    assert "top 5" not in columns and "top 5" in tables.calibration_columns(found)
    assert all(len(cells) == len(columns) for _, _, cells in tables.calibration_rows(few))
