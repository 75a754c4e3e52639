"""Figures of one target are measured again without the others."""

from __future__ import annotations

from benchmarks.compare import with_kept
from mudg_core.evaluate.comparison import Comparison, RowScore, overall
from mudg_core.evaluate.uncertainty import Estimate


def comparison(target: str, accuracy: float) -> Comparison:
    row = RowScore("mudg", "retrieval", "", (accuracy,), {}, accuracy=Estimate(accuracy, 1.0))
    return Comparison(target, (0,), (row,))


def test_a_target_measured_again_replaces_its_own_figures_alone() -> None:
    before = [comparison("animals", 40.0), comparison("market", 50.0)]
    kept = {"comparisons": [page.to_json() for page in [overall(before), *before]]}
    again = [comparison("market", 60.0)]
    comparisons = with_kept(again, kept)
    assert comparisons == [before[0], *again]
    mean = overall(comparisons).rows[0].accuracy
    assert mean is not None and mean.mean == 50.0


def test_targets_stand_in_the_order_of_the_demo() -> None:
    kept = {"comparisons": [{}, comparison("market", 1.0).to_json()]}
    comparisons = with_kept([comparison("animals", 2.0)], kept)
    assert [one.target for one in comparisons] == ["animals", "market"]


def test_the_first_run_finds_nothing_kept() -> None:
    one = comparison("animals", 2.0)
    assert with_kept([one], {}) == [one]
