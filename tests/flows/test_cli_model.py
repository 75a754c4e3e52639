"""`mudg model` and `mudg predict`, through the commands a user types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mudg.cli.app import app
from mudg.cli.predict import Prompts
from mudg_core.corpus.takedowns import Takedowns, remember
from mudg_core.encode.models import Clip
from mudg_core.storage import ArtifactRef, Facts, Recipe
from mudg_core.train.card import WAYS
from tests.core.encode.tiny import loaded, tiny_folder
from tests.support.exported import CLASSES, exported, pictures
from tests.support.training_sets import store_at

__all__ = ["loaded", "tiny_folder"]


@pytest.fixture(scope="module")
def home(loaded: Clip, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a classifier for `things`, and pictures beside it."""
    folder = tmp_path_factory.mktemp("home")
    made(folder, loaded)
    pictures(folder / "images")
    return folder


def made(folder: Path, clip: Clip) -> ArtifactRef:
    def write(scratch: Path) -> Facts:
        exported(clip, scratch)
        return Facts({"classes": 3, "images": 7, "alpha": 1.0})

    settings = {"inputs": {"target": "things"}}
    return store_at(folder).build(Recipe(stage="classifier", algorithm=1, settings=settings), write)


def mudg(folder: Path, *words: str, stdin: str | None = None) -> Result:
    places = [f"storage.url=file://{folder}/store", f"storage.cache_dir={folder}/cache"]
    flags = [flag for place in places for flag in ("--set", place)]
    return CliRunner().invoke(app, [*words, *(flags if words[1] != "onnx" else [])], input=stdin)


def answer(result: Result) -> Any:
    return json.loads(result.stdout.splitlines()[-1])


def test_every_way_can_be_asked_for() -> None:
    assert [str(each) for each in Prompts] == list(WAYS)


def test_a_model_that_learned_an_image_since_taken_down_is_marked(loaded: Clip, tmp_path: Path) -> None:
    ref, out = made(tmp_path, loaded), str(tmp_path / "out")
    assert answer(mudg(tmp_path, "model", "list", "--json"))["models"][0]["note"] == ""
    remember(store_at(tmp_path), Takedowns(marked={f"{ref.stage}/{ref.key}": 1}))
    assert "since taken down" in mudg(tmp_path, "model", "list").stdout
    exported = mudg(tmp_path, "model", "export", "things", out)
    assert exported.exit_code == 0 and "do not hand this one on" in exported.stderr


def test_models_are_listed(home: Path, tmp_path: Path) -> None:
    (told,) = answer(mudg(home, "model", "list", "--json"))["models"]
    assert told["target"] == "things" and told["classes"] == 3 and told["model"].startswith("classifier/")
    assert "things" in mudg(home, "model", "list").stdout
    assert "mudg target run" in mudg(tmp_path, "model", "list").stdout


def test_export(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = answer(mudg(home, "model", "export", "things", str(out), "--json"))
    assert told["out"] == str(out) and told["target"] == "things"
    names = {"open_clip_model.safetensors", "open_clip_config.json", "classifier.safetensors"}
    assert {file.name for file in out.iterdir()} == names | {"classes.json", "README.md", "mudg.json"}
    again = mudg(home, "model", "export", told["classifier"], str(out), "--json")
    assert again.exit_code == 2 and answer(again)["error"] == "InputError"
    assert mudg(home, "model", "export", "things", str(out), "--force").exit_code == 0
    assert mudg(home, "model", "export", "others", str(tmp_path / "x"), "--json").exit_code == 3


def test_predict_table(home: Path) -> None:
    done = mudg(home, "predict", "things", f"{home}/images")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and all(f"{home}/images/{n}.png" in lines[1 + n] for n in range(3))
    assert "3 images classified" in done.stderr


def test_predict_json_from_a_folder_and_a_list(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    mudg(home, "model", "export", "things", str(out))
    names = f"{home}/images/0.png\n{home}/images/gone.png\n"
    done = mudg(home, "predict", str(out), "-", "--json", "--top", "2", stdin=names)
    assert done.exit_code == 0
    first, second, counts = (json.loads(line) for line in done.stdout.splitlines())
    assert [guess["class"] in CLASSES for guess in first["predictions"]] == [True, True]
    assert second == {"file": f"{home}/images/gone.png", "error": "file: not there"}
    assert counts == {"images": 1, "unreadable": 1, "out": None}


def test_predict_csv_to_a_file(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.csv"
    words = ["predict", "things", f"{home}/images/*.png", "--csv", "--prompts", "averaged"]
    done = mudg(home, *words, "--batch-size", "2", "--out", str(out))
    assert done.exit_code == 0 and done.stdout == ""
    assert len(out.read_text().splitlines()) == 4 and str(out) in done.stderr.replace("\n", "")


def test_ways_differ(home: Path) -> None:
    words = ("predict", "things", f"{home}/images/0.png", "--json", "--prompts")
    told = [json.loads(mudg(home, *words, way).stdout.splitlines()[0]) for way in WAYS]
    assert told[0]["predictions"][0]["cosine"] != told[1]["predictions"][0]["cosine"]


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["things", "nothing.jpg"], 3, "DataError"),
        (["things", "empty"], 2, "InputError"),
        (["./nowhere", "images"], 2, "InputError"),
        (["others", "images"], 3, "MissingArtifactError"),
        (["images", "images"], 3, "ModelError"),
        (["things", "images", "--csv"], 2, "InputError"),
    ],
)
def test_exit_codes(
    home: Path, words: list[str], code: int, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "empty").mkdir(exist_ok=True)
    done = mudg(home, "predict", *words, "--json")
    assert done.exit_code == code and answer(done)["error"] == error


def test_onnx(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the command: what it writes is tried in `tests/core/train/test_onnx.py`."""
    from mudg_core.train import onnx

    def write(clip: Clip, out: Path) -> list[onnx.Written]:
        assert clip.dim == 16
        return [onnx.Written(out / "visual.onnx", 1e-7)]

    monkeypatch.setattr(onnx, "export_onnx", write)
    out = tmp_path / "model"
    mudg(home, "model", "export", "things", str(out))
    told = answer(mudg(home, "model", "onnx", str(out), "--json"))["graphs"]
    assert told == [{"file": f"{out}/visual.onnx", "difference": 1e-7}]
    assert "differs from torch by 1e-07" in mudg(home, "model", "onnx", str(out)).stdout


def test_onnx_changes_nothing_in_the_store(home: Path, tmp_path: Path) -> None:
    (attempt,) = home.glob("store/artifacts/classifier/*/attempts/*")
    refused = mudg(home, "model", "onnx", str(attempt), "--json")
    assert refused.exit_code == 2 and "mudg model export" in answer(refused)["fix"]
    assert mudg(home, "model", "onnx", str(tmp_path), "--json").exit_code == 3
