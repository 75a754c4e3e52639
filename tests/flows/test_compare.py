"""A comparison's settings: what every seed and every row gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.compare import DEMO_IMAGES, Contest
from flows.compare_rows import ROWS
from mudg_core.settings import load_settings
from mudg_core.target.spec import Target

ROW = {row.name: row for row in ROWS}


@pytest.fixture
def contest(tmp_path: Path) -> Contest:
    """Without an index: only its settings are looked at."""
    storage = {"url": f"file://{tmp_path}/store", "cache_dir": str(tmp_path / "cache")}
    settings = load_settings(overrides={"storage": storage, "augment": {"seed": 5}}, environ={})
    made = Contest.__new__(Contest)
    made.settings, made.records, made.iterations = settings, [], None
    made.target = Target(name="pets", classes=("cat", "dog"), evaluation="demo:pets", seeds=(0, 1, 4))
    return made


@pytest.mark.parametrize("name", ["mudg", "augment-random", "few-shot", "tip-x", "profile-paper"])
def test_augmentations_are_drawn_anew_for_every_seed(contest: Contest, name: str) -> None:
    seeds = [contest.run_of(ROW[name], seed).settings.augment.seed for seed in contest.target.seeds]
    assert seeds == [5, 6, 9]
    assert [contest.one_seed(seed).seeds for seed in contest.target.seeds] == [(0,), (1,), (4,)]


def test_demo_targets_are_evaluated_on_many_images_unless_told_otherwise(contest: Contest) -> None:
    assert contest.settings_of(ROW["mudg"]).evaluate.demo_images_per_class == DEMO_IMAGES == 200
    contest.settings = contest.settings.replace({"evaluate": {"demo_images_per_class": 3}})
    assert contest.settings_of(ROW["mudg"]).evaluate.demo_images_per_class == 3
