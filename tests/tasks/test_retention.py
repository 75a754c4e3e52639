"""What people are given is kept as the settings say, and not for the days of what is left over."""

from __future__ import annotations

import pytest

from mudg_core.storage.gc.retention import KINDS
from tasks.compare import draw_comparison, score_cache, tabulate
from tasks.dataset import select
from tasks.export_classifier import export_classifier
from tasks.fetch import fetch
from tasks.policy import Stage
from tasks.report import write_report
from tasks.train import evaluate, score_zero_shot, train


@pytest.mark.parametrize(
    ("stages", "kind"),
    [
        ((train, export_classifier), "model_days"),
        ((fetch,), "dataset_days"),
        ((write_report, evaluate, score_zero_shot, score_cache, tabulate, draw_comparison), "report_days"),
    ],
)
def test_what_people_are_given_has_a_term_of_its_own(stages: tuple[Stage, ...], kind: str) -> None:
    assert {stage.name: KINDS.get(stage.name) for stage in stages} == {stage.name: kind for stage in stages}


def test_steps_on_the_way_have_none() -> None:
    assert select.name not in KINDS
