"""The command line itself: help, settings, exit codes. Nothing here computes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from mudg.cli.app import app
from mudg_core import __version__
from mudg_core.target.spec import load_target
from tests.support.demo_runs import mudg

runner = CliRunner()


def test_version() -> None:
    assert runner.invoke(app, ["--version"]).stdout.strip() == f"mudg {__version__}"


def test_settings_are_listed_and_changed(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("index: {cells: 7}\n")
    shown = runner.invoke(app, ["settings", "-s", str(file), "--set", "index.probes=3"])
    tree = yaml.safe_load(shown.stdout)
    assert (tree["index"]["cells"], tree["index"]["probes"]) == (7, 3)
    as_json = json.loads(runner.invoke(app, ["settings", "--json"]).stdout)
    assert as_json["profile"] == "mudg"


@pytest.mark.parametrize("change", ["index.cels=3", "index.cells=0", "index.cells", "nothing=1"])
def test_f59_bad_setting_is_rejected(change: str) -> None:
    refused = runner.invoke(app, ["settings", "--json", "--set", change])
    assert refused.exit_code == 2
    assert json.loads(refused.stdout)["error"] == "SettingsError"


def test_the_exit_code_and_the_message_reach_the_shell(tmp_path: Path) -> None:
    refused = mudg("settings", "--set", "nothing=1", cwd=tmp_path)
    assert refused.returncode == 2 and "nothing" in refused.stderr and refused.stdout == ""


@pytest.mark.parametrize("text", ["", "   ", "x" * 1001])
def test_search_refuses_what_is_no_query(text: str) -> None:
    assert runner.invoke(app, ["search", text]).exit_code == 2


def test_commands_leave_what_is_slow_to_load_to_the_stages() -> None:
    """A run that finds everything made computes nothing; torch alone would be most of its time."""
    slow = "{'torch', 'open_clip', 'sklearn'}"
    modules = "mudg.cli.progress, flows.build_index, flows.build_classifier, flows.demo, "
    modules += "flows.study_prompts"
    code = f"import {modules}, sys; print(sorted({slow} & sys.modules.keys()))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_ready_specs_are_listed() -> None:
    listed = json.loads(runner.invoke(app, ["target", "ready", "--json"]).stdout)["targets"]
    assert len(listed) == 20
    pacs = next(item for item in listed if item["name"] == "pacs")
    assert [pacs[name] for name in ("classes", "neighbors", "augmentations", "per_class", "iterations")] == [
        7,
        64,
        64,
        384,
        100,
    ]
    table = runner.invoke(app, ["target", "ready"]).stdout
    assert len(table.strip().splitlines()) == 21 and "a photo of a person doing {}." in table


def test_a_ready_spec_is_written_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("PACS/photo/dog/1.jpg", "PACS/sketch/horse/1.jpg"):
        Path(path).parent.mkdir(parents=True)
        Path(path).write_bytes(b"x")
    made = runner.invoke(app, ["target", "init", "pacs", "--data", "PACS", "--json"])
    assert json.loads(made.stdout) == {"spec": "pacs.yaml", "classes": 7, "evaluation": "PACS"}
    target = load_target("pacs.yaml")
    assert (target.evaluation, target.per_class, len(target.classes)) == (f"{tmp_path}/PACS", 384, 7)
    again = runner.invoke(app, ["target", "init", "pacs", "--json"])
    assert again.exit_code == 2 and "cannot be written" in json.loads(again.stdout)["what"]
    bare = runner.invoke(app, ["target", "init", "vlcs", "own.yaml"])
    assert bare.exit_code == 0 and "no evaluation images" in bare.stdout
    assert load_target("own.yaml").evaluation is None


def test_a_long_ready_spec_reads_the_users_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = runner.invoke(app, ["target", "init", "aircraft", "--json"])
    assert refused.exit_code == 2 and "--data" in json.loads(refused.stdout)["fix"]
    Path("fgvc/data").mkdir(parents=True)
    Path("fgvc/data/variants.txt").write_text("".join(f"A{number}\n" for number in range(100)))
    assert runner.invoke(app, ["target", "init", "aircraft", "--data", "fgvc"]).exit_code == 0
    assert load_target("aircraft.yaml").classes[99] == "A99"


def test_prompts_need_images_to_compare_them_on(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: pets\nclasses: [cat, dog]\n")
    refused = runner.invoke(app, ["target", "prompts", str(spec), "--json"])
    assert refused.exit_code == 2 and "evaluation" in json.loads(refused.stdout)["fix"]


def test_a_dataset_of_numbered_folders_is_evaluated_on_too(tmp_path: Path) -> None:
    numbers = [f"n{number:08d}" for number in range(200)]
    (tmp_path / "classnames.txt").write_text("".join(f"{number} thing {number}\n" for number in numbers))
    for number in numbers:
        (tmp_path / "imagenet-r" / number).mkdir(parents=True)
        (tmp_path / "imagenet-r" / number / "1.jpg").write_bytes(b"x")
    data, spec = tmp_path / "imagenet-r", tmp_path / "spec.yaml"
    made = runner.invoke(app, ["target", "init", "imagenet-r", str(spec), "--data", str(data), "--json"])
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["evaluation"] == load_target(spec).evaluation == str(data)
