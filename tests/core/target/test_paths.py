"""Paths in a spec hold in any folder, however its target is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from mudg_core.evaluate import layouts
from mudg_core.evaluate.images import Source
from mudg_core.settings import EvaluateSettings
from mudg_core.target import paths
from mudg_core.target.spec import Target, load_target
from mudg_core.target.submitted_spec import load_for_submission


def spec(evaluation: str) -> Path:
    """In a folder below the working folder."""
    file = Path("specs/zoo.yaml")
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"name: zoo\nclasses: [cat, dog]\nevaluation: {evaluation}\n")
    return file


@pytest.mark.parametrize(
    ("evaluation", "found"),
    [
        ("images", "{here}/images"),
        ("zhou:images", "zhou:{here}/images"),
        ("~/images", "{home}/images"),
        ("/data/pets", "/data/pets"),
        ("demo:animals", "demo:animals"),
    ],
)
def test_a_spec_is_read_alike_to_be_run_and_to_be_submitted(
    evaluation: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    file = spec(evaluation)
    assert load_target(file).evaluation == found.format(here=tmp_path, home=tmp_path / "home")
    assert (load_target(file), {}) == load_for_submission(file)


def test_files_and_models_of_its_settings_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"augment": {"prompts": "p.json", "count": 4}, "train": {"model": "ViT-B-32/w.safetensors"}}
    target = Target.model_validate({"name": "zoo", "classes": ["cat", "dog"], "settings": settings})
    assert target.located().settings == {
        "augment": {"prompts": f"{tmp_path}/p.json", "count": 4},
        "train": {"model": f"ViT-B-32/{tmp_path}/w.safetensors"},
    }


def test_layouts_are_those_that_there_are() -> None:
    assert set(paths.LAYOUTS) == set(layouts.LAYOUTS)


def test_what_is_collected_is_known_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a path that was made absolute, or a folder that was moved, costs nothing to evaluate again."""

    def asked(place: Path) -> dict[str, object]:
        for kind in ("cat", "dog"):
            (place / "images" / kind).mkdir(parents=True)
            (place / "images" / kind / "1.jpg").write_bytes(kind.encode())
        monkeypatch.chdir(place)
        return Source.of(load_target(spec("images")), EvaluateSettings()).fingerprint()

    assert asked(tmp_path / "here") == asked(tmp_path / "there")
