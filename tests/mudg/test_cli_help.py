"""What `--help` says of every command, and what is not imported to say it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from mudg.cli.app import PANELS, app
from tests.test_docs import commands, fault

SLOW = {"torch", "prefect", "distributed", "dask", "faiss", "pyarrow", "PIL", "sklearn", "open_clip"}
HEAVY = SLOW | {"numpy", "starlette", "psutil", "pydantic", "yaml"}


def walk(node: Any, *path: str) -> Iterator[tuple[str, Any]]:
    yield " ".join(path), node
    for name, child in getattr(node, "commands", {}).items():
        yield from walk(child, *path, name)


ALL = dict(walk(get_command(app)))
LEAVES = {name: node for name, node in ALL.items() if not hasattr(node, "commands")}


@pytest.mark.parametrize("name", ALL)
def test_every_help_teaches_without_noise(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "160"})
    assert shown.exit_code == 0 and len(shown.stdout) > 300
    assert "<bool>" not in shown.stdout
    usage = next(line for line in shown.stdout.splitlines() if "Usage" in line)
    assert not re.search("[{}]", usage)


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_one_line_about_it_and_an_example_that_is_right(name: str) -> None:
    about = LEAVES[name].help
    assert "\n" not in about.split("\n\n")[0], "the first paragraph is one line"
    examples = [line for line, _ in commands(f"{about}\n") if line.startswith(name)]
    assert examples and [problem for line in examples if (problem := fault(line))] == []


@pytest.mark.parametrize("name", LEAVES)
def test_every_option_has_a_help_text(name: str) -> None:
    helps = {param.name: param.help for param in LEAVES[name].params}
    assert [one for one, text in helps.items() if not text or not text.endswith((".", ")"))] == []


def test_commands_are_in_panels() -> None:
    listed = {name for names in PANELS.values() for name in names}
    assert listed == {name for name, node in ALL[""].commands.items() if not node.hidden}
    shown = CliRunner().invoke(app, ["--help"]).stdout
    places = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)


def imported(*words: str, where: Path) -> tuple[set[str], str]:
    """The heavy modules that a command has imported by its end, and all that it printed."""
    code = (
        f"import sys; sys.argv = ['mudg', *{words!r}]\n"
        "from mudg.cli import main\n"
        "try: main()\n"
        f"finally: print('loaded', *({HEAVY!r} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=where, timeout=120)
    *_, last = done.stdout.splitlines()
    return set(last.split()[1:]), done.stdout + done.stderr


@pytest.mark.parametrize("words", [(), ("index",), ("target", "run"), ("plan",)], ids=" ".join)
def test_help_imports_nothing_that_is_slow(words: tuple[str, ...], tmp_path: Path) -> None:
    loaded, text = imported(*words, "--help", where=tmp_path)
    of_typer = {"pydantic"} if words else set()
    assert "Usage" in text and loaded <= of_typer


TYPOS: list[tuple[str, ...]] = [
    ("index", "build", "--set", "dataset.selct=all"),
    ("index", "build", "-s", "dataset.selct=all"),
    ("target", "run", "spec.yaml", "--set", "dataset.selct=all"),
    ("target", "submit", "spec.yaml", "--set", "dataset.selct=all"),
    ("search", "a cat", "-s", "typo.yaml"),
    ("demo", "-s", "typo.yaml"),
    ("compare", "spec.yaml", "-s", "typo.yaml"),
    ("predict", "x", "y.jpg", "-s", "typo.yaml"),
    ("plan", "-s", "typo.yaml"),
    ("corpus", "add", "x", "-s", "typo.yaml"),
]


@pytest.mark.parametrize("words", TYPOS, ids=" ".join)
def test_f59_a_typo_in_settings_is_reported_before_slow_imports(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "typo.yaml").write_text("dataset: {selct: all}\n")
    (tmp_path / "spec.yaml").write_text("name: pets\nclasses: [cat, dog]\n")
    loaded, text = imported(*words, where=tmp_path)
    assert "did you mean dataset.select?" in text and not loaded & SLOW


def test_files_and_changes_go_together(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("index: {cells: 7, probes: 2}\n")
    (tmp_path / "b=1.yaml").write_text("index: {cells: 8}\n")
    flags = ["-s", f"{tmp_path}/a.yaml", "-s", f"{tmp_path}/b=1.yaml", "-s", "index.probes=3"]
    shown = CliRunner().invoke(app, ["settings", "--json", *flags, "--set", "index.seed=4"]).stdout
    index = json.loads(shown)["index"]
    assert [index[name] for name in ("cells", "probes", "seed")] == [8, 3, 4]
