"""`mudg evaluate`, through the command a user types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mudg.cli.app import app
from mudg_core.encode.models import load_clip
from mudg_core.evaluate.classifier import finetuned
from mudg_core.evaluate.images import ListedImages, Source
from mudg_core.target.prompts import of_descriptors
from mudg_core.target.queries import Queries
from mudg_core.target.spec import Target
from mudg_core.train.export import export
from mudg_core.train.student import initial_student
from tests.core.encode.tiny import tiny_folder
from tests.core.evaluate.layouts.trees import put, zhou

__all__ = ["tiny_folder"]
CLASSES = ("red fox", "cat", "Hen")


def evaluate(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, words)])


def answer(result: Result) -> Any:
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def exported(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    target = Target(name="things", classes=CLASSES)
    student = initial_student(load_clip(f"local-dir:{tiny_folder}"), "a photo of")
    export(student, Queries.of(target, of_descriptors(target, "random", ["which is wet"])), folder, 25.0)
    return folder


def test_an_exported_model_brings_its_classes(exported: Path, tmp_path: Path) -> None:
    root = zhou(tmp_path / "pets", "images")
    done = evaluate(exported, root, "--json")
    assert done.exit_code == 0, done.output
    found = answer(done)
    images = ListedImages.of(Source(str(root), list(CLASSES), 1))
    expected = finetuned(exported, "cpu").scores(images, 256, 25.0)
    assert found["classes"] == list(CLASSES)
    for way, measured in expected.items():
        assert (found[way]["mean"], found[way]["counts"]) == (measured.mean, [2, 0, 1])
        assert found[way]["calibration"]["ece"] == measured.calibration.ece
    (warning,) = found["warnings"]
    assert "1 class has no evaluation image" in warning
    text = evaluate(exported, root).stdout
    assert "averaged prompts" in text and "3 images of 2 classes" in text and "warning: " in text


def test_any_model_is_asked_by_a_template(tiny_folder: Path, tmp_path: Path) -> None:
    put(tmp_path, "a/cat/1.jpg", "a/dog/2.jpg", "b/cat/3.jpg", "b/cow/4.jpg")
    found = answer(evaluate(f"local-dir:{tiny_folder}", tmp_path, "--json"))
    assert found["classes"] == ["cat", "cow", "dog"] and list(found["single"]["domains"]) == ["a", "b"]
    assert "averaged" not in found and found["single"]["top5"] is None and found["warnings"] == []
    (tmp_path / "names.txt").write_text("cat\nowl\n")
    listed = evaluate(
        tiny_folder, tmp_path, "--classes", tmp_path / "names.txt", "--template", "{}", "--json"
    )
    assert answer(listed)["single"]["counts"] == [2, 0] and len(answer(listed)["warnings"]) == 2
    assert "2 classes of the evaluation data are not among" in answer(listed)["warnings"][0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["demo:student", "demo:nothing"], "no demo target"),
        (["demo:student", "nowhere"], "does not exist"),
        (["nowhere", "{set}"], "nothing in the store is called 'nowhere'"),
        (["demo:student", "{set}", "--template", "no slot"], "exactly one {}"),
        (["{model}", "{set}", "--classes", "names.txt"], "classes of its own"),
        (["{model}", "demo:animals"], "no demo target"),
    ],
)
def test_mistakes_are_told(words: list[str], said: str, exported: Path, tmp_path: Path) -> None:
    put(tmp_path, "cat/1.jpg", "hen/2.jpg")
    places = {"{set}": str(tmp_path), "{model}": str(exported)}
    done = evaluate(*(places.get(word, word) for word in words), "--json")
    assert done.exit_code in (2, 3), done.output
    assert said in answer(done)["what"]
