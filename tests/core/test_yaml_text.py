"""YAML that would cost more than its text is long."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
import yaml

from mudg_core.errors import InputError, SettingsError
from mudg_core.settings import load_settings
from mudg_core.target.spec import parse_target
from mudg_core.yaml_text import load

ROOT = Path(__file__).parents[2]
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "bomb": BOMB,
    "endless": "a: &a [*a]",
    "merge": "a: &a {x: 1}\nb: {<<: *a}",
    "deep": "[" * 100_000,
    "deep keys": "{a: " * 100_000,
    "long number": "a: " + "1:1" * 200_000,
    "many": "a: [" + "1," * 300_000 + "1]",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_f88_bombs_are_refused_within_a_second(text: str, tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    started = time.process_time()
    with pytest.raises(yaml.YAMLError):
        load(text)
    with pytest.raises(SettingsError):
        load_settings([file], environ={})
    with pytest.raises(SettingsError):
        load_settings(environ={"MUDG_INDEX__CELLS": text})
    assert time.process_time() - started < 3


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "many"])
def test_f88_specs_too(name: str) -> None:
    started = time.process_time()
    with pytest.raises(InputError):
        parse_target(f"name: zoo\nclasses: [cat, dog]\n{HOSTILE[name]}".encode())
    assert time.process_time() - started < 1


def test_f88_nothing_reads_yaml_by_another_way() -> None:
    rooms = ("mudg_core", "tasks", "flows", "deployments")
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py") if file.name != "yaml_text.py"]
    assert [
        str(file) for file in files if re.search(r"yaml\.(safe_|full_|unsafe_)?load", file.read_text())
    ] == []


@pytest.mark.parametrize(
    "text", ["!!binary L2V0Yy9wYXNzd2Q=", "!!set {a}", "!!omap [a: 1]", "!!pairs [a: 1]"]
)
def test_values_that_json_cannot_hold_are_refused(text: str) -> None:
    """A setting of text takes bytes, and a check of texts looks past them."""
    with pytest.raises(yaml.YAMLError, match="values are not used"):
        load(f"descriptors: {text}")
