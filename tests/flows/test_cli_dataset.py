"""`mudg dataset`: what was made, and its way out, through the command a user types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mudg.cli.app import app
from mudg.cli.dataset import Format
from mudg_core.dataset.export import FORMATS
from tests.support.training_sets import CLASSES, IMAGES, make_dataset, make_report, store_at


def mudg(folder: Path, *words: str) -> Result:
    places = [f"storage.url=file://{folder}/store", f"storage.cache_dir={folder}/cache"]
    return CliRunner().invoke(
        app, ["dataset", *words, *(flag for place in places for flag in ("--set", place))]
    )


def answer(result: Result) -> Any:
    return json.loads(result.stdout.splitlines()[-1])


def test_every_format_can_be_asked_for() -> None:
    assert [str(each) for each in Format] == list(FORMATS)


def test_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    assert "mudg target run" in mudg(tmp_path, "list").stdout
    assert answer(mudg(tmp_path, "list", "--json")) == {"datasets": []}


def test_datasets_are_listed_with_their_targets(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    first, second = (make_dataset(store, seed=seed) for seed in (0, 7))
    make_report(store, [second, first], ["animals", "pets"])
    make_report(store, [second], ["all"])
    told = {line["dataset"]: line for line in answer(mudg(tmp_path, "list", "--json"))["datasets"]}
    assert told[str(first)]["targets"] == ["pets"] and told[str(first)]["seed"] == 0
    assert sorted(told[str(second)]["targets"]) == ["all", "animals"] and told[str(second)]["seed"] == 7
    assert told[str(first)]["images"] == IMAGES and told[str(first)]["classes"] == list(CLASSES)
    text = mudg(tmp_path, "list").stdout
    assert "pets" in text and f"{len(CLASSES)}: cat" in text


@pytest.mark.parametrize("to", FORMATS)
def test_export(tmp_path: Path, to: str) -> None:
    store = store_at(tmp_path)
    ref = make_dataset(store)
    make_report(store, [ref], ["animals"])
    out = tmp_path / "out"
    told = answer(mudg(tmp_path, "export", str(ref)[:12], str(out), "--to", to, "--json"))
    assert told["out"] == str(out) and told["targets"] == ["animals"] and told["format"] == to
    assert (out / "README.md").is_file()
    again = mudg(tmp_path, "export", str(ref), str(out), "--to", to, "--json")
    assert again.exit_code == 2 and answer(again)["error"] == "InputError"
    assert mudg(tmp_path, "export", str(ref), str(out), "--to", to, "--force").exit_code == 0


@pytest.mark.parametrize("name", ["dataset/ffff", "index/0", "no such thing", "pointer"])
def test_what_is_no_dataset_is_refused(tmp_path: Path, name: str) -> None:
    make_dataset(store_at(tmp_path))
    refused = mudg(tmp_path, "export", name, str(tmp_path / "out"), "--to", "imagefolder", "--json")
    assert refused.exit_code in (2, 3) and "error" in answer(refused)
    assert not (tmp_path / "out").exists()
