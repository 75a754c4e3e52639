"""The table of a comparison from scores and answers, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mudg_core.evaluate.comparison import COMPARISON
from mudg_core.evaluate.measures import column_name, write_answers
from mudg_core.settings import Settings, load_settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from tasks.compare import PAGE, draw_comparison, tabulate
from tasks.policy import Stage, Work

LABELS = {"art": np.arange(40) % 4, "photo": np.arange(80) % 4}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    storage = {"url": f"file://{tmp_path}/store", "cache_dir": str(tmp_path / "cache")}
    return load_settings(overrides={"storage": storage}, environ={})


@pytest.fixture
def store(settings: Settings) -> ArtifactStore:
    return ArtifactStore(settings.storage)


def scored(store: ArtifactStore, arm: str, wrong: int, seed: int) -> ArtifactRef:
    """Scores of a student that gets so many of a domain's first images wrong."""

    def build(folder: Path) -> Facts:
        predicted = {d: np.where(np.arange(len(own)) < wrong, -1, own) for d, own in LABELS.items()}
        write_answers(folder, LABELS, {column_name(arm, "single"): predicted})
        domains = {d: 100 * (1 - wrong / len(own)) for d, own in LABELS.items()}
        score = {"mean": float(np.mean(list(domains.values()))), "domains": domains}
        (folder / "scores.json").write_text(json.dumps({arm: {"single": score}}))
        return Facts()

    return store.build(
        Recipe(stage="scores", algorithm=1, settings={"arm": arm, "n": wrong, "s": seed}), build
    )


def made(stage: Stage[...], settings: Settings, store: ArtifactStore, **inputs: Any) -> ArtifactRef:
    recipe = stage.recipe(settings, inputs)
    return store.build(
        recipe, lambda folder: stage.make(recipe, Work(store, settings, folder, store.checkpoints(recipe)))
    )


def table(settings: Settings, store: ArtifactStore, name: str, wrong: int) -> ArtifactRef:
    rows = [
        {"name": "zero-shot", "first": 0, "count": 1, "arm": "zero_shot"},
        {"name": "mudg", "first": 1, "count": 3, "arm": "student"},
    ]
    meta = {"group": "g", "about": "", "paper": "", "way": "single"}
    scores = [scored(store, "zero_shot", wrong, 0), *(scored(store, "student", 4, seed) for seed in range(3))]
    return made(
        tabulate,
        settings,
        store,
        target={"name": name, "classes": ["a", "b", "c", "d"], "seeds": [0, 1, 2]},
        model="demo:student",
        rows=[row | meta for row in rows],
        left_out={},
        scores=scores,
    )


def test_rows_have_intervals_and_the_gain_of_the_method(settings: Settings, store: ArtifactStore) -> None:
    body = json.loads(store.file(table(settings, store, "one", wrong=12), COMPARISON).read_text())
    plain, ours = body["rows"]
    assert plain["method_gain"]["mean"] == pytest.approx(100 * (8 / 40 + 8 / 80) / 2)
    assert 0 < plain["method_gain"]["low"] < plain["method_gain"]["high"]
    assert ours["method_gain"] is None and ours["accuracy"]["low"] < ours["mean"] < ours["accuracy"]["high"]


def test_the_page_has_all_targets_first(settings: Settings, store: ArtifactStore) -> None:
    both = [table(settings, store, "one", wrong=12), table(settings, store, "two", wrong=4)]
    page = made(draw_comparison, settings, store, title="t", comparisons=both)
    every, one, two = json.loads(store.file(page, COMPARISON).read_text())
    gains = [body["rows"][0]["method_gain"] for body in (every, one, two)]
    assert gains[0]["mean"] == pytest.approx((gains[1]["mean"] + gains[2]["mean"]) / 2)
    assert gains[0]["high"] - gains[0]["low"] < gains[1]["high"] - gains[1]["low"]
    assert (gains[2]["low"], gains[2]["high"]) == (0, 0)
    assert "MUDG is better by" in store.file(page, PAGE).read_text()
