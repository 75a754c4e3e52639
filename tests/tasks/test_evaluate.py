"""The stages that see true labels, in this process: images collected, models scored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mudg_core.encode.models import load_clip
from mudg_core.evaluate.images import EvaluationSet, Source
from mudg_core.evaluate.match import warn_of_unmatched
from mudg_core.report.seeds import measures_of
from mudg_core.settings import Settings, load_settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from mudg_core.target.prompts import augmentations, of_descriptors
from mudg_core.target.queries import Queries, write_queries
from mudg_core.target.spec import Target
from mudg_core.train.export import export
from mudg_core.train.student import initial_student
from tasks.policy import Stage, Work
from tasks.target import collect_evaluation
from tasks.train import evaluate, score_zero_shot
from tests.core.encode.tiny import tiny_folder
from tests.core.evaluate.layouts.trees import put

__all__ = ["tiny_folder"]
TARGET = Target(name="pets", classes=("cat", "Red fox", "hen"), synonyms={"hen": ("chicken",)})


@pytest.fixture
def settings(tmp_path: Path, tiny_folder: Path) -> Settings:
    tree = {
        "storage": {"url": f"file://{tmp_path}/store", "cache_dir": str(tmp_path / "cache")},
        "train": {"model": f"local-dir:{tiny_folder}"},
        "evaluate": {"source": str(tmp_path / "set"), "alpha_points": 3, "alpha_images": 6},
    }
    return load_settings(overrides=tree, environ={})


@pytest.fixture
def store(settings: Settings) -> ArtifactStore:
    return ArtifactStore(settings.storage)


def made(store: ArtifactStore, name: str, make: Callable[[Path], object]) -> ArtifactRef:
    def build(folder: Path) -> Facts:
        make(folder)
        return Facts()

    return store.build(Recipe(stage=name, algorithm=1), build)


def run(stage: Stage[...], settings: Settings, store: ArtifactStore, **inputs: Any) -> ArtifactRef:
    recipe = stage.recipe(settings, inputs)
    return store.build(
        recipe, lambda folder: stage.make(recipe, Work(store, settings, folder, store.checkpoints(recipe)))
    )


def source_inputs(target: Target, settings: Settings) -> dict[str, Any]:
    source = Source.of(target, settings.evaluate)
    others = source.synonym_lists()
    return {"classes": source.classes, "synonyms": others, "fingerprint": source.fingerprint()}


@pytest.fixture
def evaluation(settings: Settings, store: ArtifactStore, tmp_path: Path) -> ArtifactRef:
    files = [
        f"{domain}/{name}/{n}.jpg" for domain in "ab" for name in ("cat", "chicken", "owl") for n in range(3)
    ]
    put(tmp_path / "set", *files)
    target = TARGET.model_copy(update={"evaluation": str(tmp_path / "set")})
    return run(collect_evaluation, settings, store, **source_inputs(target, settings))


@pytest.fixture
def queries(store: ArtifactStore, settings: Settings) -> ArtifactRef:
    clip = load_clip(settings.train.model)
    method = settings.replace({"augment": {"method": "none"}}).augment
    made_ = augmentations(TARGET, method, clip.encode_texts)
    return made(
        store, "queries", lambda out: write_queries(Queries.of(TARGET, made_), made_, out, clip.encode_texts)
    )


def test_images_are_collected_by_the_names_that_classes_have(
    store: ArtifactStore, evaluation: ArtifactRef
) -> None:
    found = EvaluationSet.open(store.folder(evaluation))
    assert {domain: labels.tolist() for domain, labels in found.labels.items()} == {
        "a": [0, 0, 0, 2, 2, 2],
        "b": [0, 0, 0, 2, 2, 2],
    }
    facts: Any = store.manifest(evaluation).facts
    assert facts["images"] == 12 and facts["unknown"] == ["owl"] and facts["empty"] == ["Red fox"]
    kinds = [(item.kind, item.classes) for item in warn_of_unmatched(facts["unknown"], facts["empty"])]
    assert kinds == [("unmatched", ("owl",)), ("unmeasured", ("Red fox",))]


def test_a_moved_folder_is_the_same_data(settings: Settings, evaluation: ArtifactRef, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    moved = (tmp_path / "set").rename(tmp_path / "other/set")
    target = TARGET.model_copy(update={"evaluation": str(moved)})
    asked = source_inputs(target, settings)
    elsewhere = settings.replace({"evaluate": {"source": str(moved)}})
    assert collect_evaluation.recipe(elsewhere, asked).key == evaluation.key


def test_zero_shot_is_scored_once_and_taken_over(
    settings: Settings, store: ArtifactStore, evaluation: ArtifactRef, queries: ArtifactRef
) -> None:
    asked = {"queries": queries, "evaluation": evaluation}
    before = run(score_zero_shot, settings, store, **asked)
    known = json.loads(store.file(before, "scores.json").read_text())
    student = initial_student(load_clip(settings.train.model), "a photo of")
    wet = Queries.of(TARGET, of_descriptors(TARGET, "random", ["which is wet"]))
    model = made(store, "model", lambda out: export(student, wet, out, 25.0))
    ref = run(
        evaluate, settings, store, models=[model], names=["mudg"], zero_shot=before, curve="mudg", **asked
    )
    found = json.loads(store.file(ref, "scores.json").read_text())
    assert list(found) == ["zero_shot", "mudg"] and found["zero_shot"] == known["zero_shot"]
    same = found["mudg"]["single"], known["zero_shot"]["single"]  # nothing was trained
    assert same[0]["classes"] == same[1]["classes"] and same[0]["confusions"] == same[1]["confusions"]
    assert same[0]["calibration"]["ece"] == pytest.approx(same[1]["calibration"]["ece"], abs=0.01)
    assert found["mudg"]["alpha"]["images"] == 6
    points = found["mudg"]["alpha"]["points"]
    assert [point["alpha"] for point in points] == [0.0, 0.5, 1.0]
    assert len({point["single"] for point in points}) == 1
    assert store.manifest(ref).facts["mudg"] == found["mudg"]["single"]["mean"]
    told = measures_of([found])
    assert told is not None and len(told.alpha) == 3
    flat = settings.replace({"evaluate": {"alpha_points": 0}})
    alone = run(evaluate, flat, store, models=[model], names=["mudg"], curve="mudg", **asked)
    assert list(json.loads(store.file(alone, "scores.json").read_text())["mudg"]) == ["single", "averaged"]
