"""Figures of one target are measured again without the others, and the rows are those that are quoted."""

from __future__ import annotations

from benchmarks.compare import QUOTED, rows_asked, with_kept
from benchmarks.record import figures
from flows.compare_rows import ROWS
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


def test_the_rows_of_the_benchmark_are_those_of_the_results() -> None:
    """So `make bench-compare` makes the table that README and docs quote."""
    for page in figures("compare")["comparisons"]:
        assert [row["name"] for row in page["rows"]] == list(QUOTED), page["target"]


def test_rows_are_the_quoted_ones_unless_others_are_named() -> None:
    assert rows_asked("") == list(QUOTED)
    assert rows_asked("mudg,tip-x") == ["mudg", "tip-x"]
    assert rows_asked("all") == [row.name for row in ROWS] and set(QUOTED) < set(rows_asked("all"))
