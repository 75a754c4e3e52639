"""The command line itself: help, settings, exit codes. Nothing here computes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from flows.cli.app import app
from mudg_core import __version__

runner = CliRunner()


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["demo"],
        *(["index", name] for name in ("build", "list", "promote", "rollback", "recall", "tune", "remove")),
        ["target", "run"],
        *(["dataset", name] for name in ("list", "export")),
        ["search"],
        ["show"],
        ["settings"],
        ["plan"],
    ],
)
def test_help_teaches(command: list[str]) -> None:
    shown = runner.invoke(app, [*command, "--help"])
    assert shown.exit_code == 0
    assert "Usage" in shown.stdout and len(shown.stdout) > 300


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


@pytest.mark.parametrize("text", ["", "   ", "x" * 1001])
def test_search_refuses_what_is_no_query(text: str) -> None:
    assert runner.invoke(app, ["search", text]).exit_code == 2


def test_commands_leave_what_is_slow_to_load_to_the_stages() -> None:
    """A run that finds everything made computes nothing; torch alone would be most of its time."""
    slow = "{'torch', 'open_clip', 'sklearn'}"
    code = f"import flows.cli.runs, flows.cli.index, sys; print(sorted({slow} & sys.modules.keys()))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
