"""How the share of orchestration is told from what artifacts say."""

from __future__ import annotations

from benchmarks.flow import covered


def test_spans_that_overlap_count_once() -> None:
    assert covered([(0, 2), (1, 3), (5, 6), (5.25, 5.5)]) == 4


def test_no_span_covers_nothing() -> None:
    assert covered([]) == 0
