"""`mudg target run`: a user's own spec, with and without images to evaluate on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mudg_core.corpus.demo.world import DemoWorld
from tests.support.built import Built
from tests.support.demo_runs import mudg
from tests.support.places import Place, here

pytestmark = pytest.mark.timeout(1200)  # whole runs of the pipeline, on a machine that may be busy


@pytest.fixture(scope="module")
def place(first: Built) -> Place:
    return first.place


def test_own_classes_and_folder(place: Place) -> None:
    """Workers have another working folder, and find images that the spec names relative to this one."""
    folder = place.folder
    for kind in ("cat", "car"):
        for number in range(3):
            path = folder / "images" / "drawn" / kind / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            DemoWorld(seed=5).portrait(kind, "mosaic", number).save(path)
    (folder / "spec.yaml").write_text(
        "name: cats-and-cars\nclasses: [cat, car]\nevaluation: images\nseeds: [0, 1]\n"
        "settings: {dataset: {per_class: 3, ranks: exact, select: margin}}\n"
    )
    result = place.run("target", "run", "spec.yaml", "--out", "made")
    assert list(result["mudg"]["domains"]) == ["drawn"]
    assert len(result["models"]) == 2
    assert (Path(result["models"][0]) / "open_clip_model.safetensors").is_file()
    assert Path(result["report"]).is_file()
    card = (folder / "made" / "README.md").read_text()
    assert result["folder"] == str(folder / "made") and "| drawn |" in card and "the demo world" in card
    files = [str(path) for path in sorted((folder / "images").rglob("*.png"))]
    named = here(folder, "predict", "cats-and-cars", "images", "--json").stdout
    copied = mudg("predict", "made", *files, "--json", cwd=folder, PYTHONPROFILEIMPORTTIME="1")
    assert copied.returncode == 0, copied.stderr[-3000:]
    loaded = {line.rpartition("|")[2].strip() for line in copied.stderr.splitlines()}
    assert "open_clip" in loaded and not loaded & {
        "timm.models",
        "sympy",
        "prefect",
    }
    assert len(named.splitlines()) == 7
    assert named.replace("images/", f"{folder}/images/") == copied.stdout


def test_a_target_without_a_baseline(place: Place) -> None:
    """What both have in common is the same artifacts; the report has one arm less."""
    (place.folder / "plain.yaml").write_text(
        "name: plain\nclasses: [cat, car]\nevaluation: images\n"
        "settings: {dataset: {per_class: 2}, gate: {enabled: false}}\n"
    )
    before = place.digests()
    alone = place.run("target", "run", "plain.yaml", "--baseline", "none")
    assert set(alone) >= {"zero_shot", "mudg"} and "nearest_neighbours" not in alone
    assert alone["baseline_seconds"] == 0 and place.made_since(before)["model"] == 1
    assert "Nearest neighbours" not in Path(alone["report"]).read_text()
    before = place.digests()
    both = place.run("target", "run", "plain.yaml")
    assert both["mudg"] == alone["mudg"] and "nearest_neighbours" in both
    assert place.made_since(before)["model"] == 1 and both["classifier"] != alone["classifier"]


def test_prompts_are_compared(place: Place) -> None:
    (place.folder / "animals.yaml").write_text(
        "name: animals\nevaluation: demo:animals\nclasses: [cat, dog, fox, wolf, bear, rabbit, pig, horse, "
        "zebra, giraffe, elephant, bird, owl, duck, penguin, fish, shark, turtle]\naugmentations: 8\n"
        "settings: {augment: {pool: 100}}\n"
    )
    more = ("--set", "augment.count=16")
    result = place.run("target", "prompts", "animals.yaml", "--save", "study.svg", *more)
    methods = {item["method"]: item for item in result["methods"]}
    assert set(methods) == {
        "adaptive", "random", "waffle-words", "waffle-characters", "templates", "none"
    }  # fmt: skip
    assert [methods[name]["augmentations"] for name in ("adaptive", "templates", "none")] == [8, 8, 1]
    assert [size for size, _ in result["curves"]["adaptive"]] == [1, 2, 4, 8, 16, 32, 64]
    assert len(result["spots"]) == 100 and -1 <= result["correlation"] <= 1
    assert (place.folder / "study.svg").read_text().startswith("<?xml")
    again = place.says("target", "prompts", "animals.yaml", *more)
    assert "waffle-words" in again and "correlation" in again


def test_synonyms_shorthands_and_odd_names_reach_the_stages(place: Place) -> None:
    """A class named like a path, or like HTML, is only a name."""
    folder = place.folder
    (folder / "odd.yaml").write_text(
        "name: odd\nclasses:\n- ../../x\n- <b>no</b>\nsynonyms: {../../x: [kitten, kitty]}\n"
        "augmentations: 2\nper_class: 3\n"
    )
    result = place.run("target", "run", "odd.yaml")
    assert "mudg" not in result
    page = Path(result["report"]).read_text()
    assert "<b>no</b>" not in page and "&lt;b&gt;no&lt;/b&gt;" in page
    assert not (folder.parent.parent / "x").exists()
    specs = [
        json.loads(path.read_text()) for path in folder.glob(".mudg/artifacts/queries/*/**/queries.json")
    ]
    (spec,) = (spec for spec in specs if spec["synonyms"])
    assert spec["labels"] == [0] * 6 + [1] * 2 and len(spec["prompts"]) == 8
    assert sum("kitten" in text for text in spec["prompts"]) == 2
    assert len(spec["matrix"]) == 2 and "kit" not in str(spec["matrix"])


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (b"name: a\nclasses: []\n", 2),
        (b"name: a\nclasses:\n- cat\n- Cat\n", 4),
        (b"name: a\nclasses:\n- cat\n- \xff\n", 4),
        (b"name: a\nclasses:\n- cat\n- d\0g\n", 4),
        (b"name: a\nclasses:\n- cat\n- dog\ncolour: red\n", 5),
    ],
)
def test_f57_bad_spec_is_refused_before_anything_runs(spec: bytes, line: int, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(spec)
    done = here(tmp_path, "target", "run", "bad.yaml", "--json", ends=2)
    assert json.loads(done.stdout)["where"].endswith(f"bad.yaml:{line}")
    assert f"bad.yaml:{line}" in done.stderr
    assert not (tmp_path / ".mudg").exists()


def test_no_index_yet_says_what_to_do(tmp_path: Path) -> None:
    done = here(tmp_path, "search", "a photo of a cat", ends=3)
    assert "mudg index build" in done.stderr
