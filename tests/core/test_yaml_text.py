"""YAML that would cost more than its text is long."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
import yaml

from mudg_core.errors import InputError, SettingsError
from mudg_core.settings import load_settings
from mudg_core.target.spec import parse_target
from mudg_core.yaml_text import load, load_packaged

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
    "a letter that is none": 'a: "\\UFFFFFFFF"',
    "a version that is none": "%YAML " + "9" * 5000 + ".1\n---\na: 1",
    "hexadecimal": "a: 0x" + "f" * 9000,
    "sexagesimal": "a: " + ":".join(["1"] * 9900),
    "sexagesimal with a point": "a: " + ":".join(["1"] * 9000) + ".5",
}
SPECS = {
    "settings": "settings: {train: [" + "1," * 390_000 + "1]}",
    "classes": "x: 1\nclasses: [" + "1," * 390_000 + "1]",
    "seeds": "seeds: [" + "1," * 390_000 + "1]",
    "fields": "".join(f"f{number}: 1\n" for number in range(390_000)),
    "a number": "per_class: " + ":".join(["1"] * 9900),
    "a hexadecimal number": "seeds: [0x" + "f" * 9000 + "]",
    "a tagged number": "settings: {train: {iterations: !!int '" + ":".join(["1"] * 9900) + "'}}",
    "a number as text": "settings: {train: {iterations: '" + "9" * 9900 + "'}}",
    "a letter that is none": 'description: "\\UFFFFFFFF"',
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


@pytest.mark.parametrize("text", (HOSTILE | SPECS).values(), ids=HOSTILE | SPECS)
def test_f88_specs_too(text: str) -> None:
    started = time.process_time()
    with pytest.raises(InputError) as refused:
        parse_target(f"name: zoo\nclasses: [cat, dog]\n{text}".encode())
    assert len(str(refused.value)) < 2000
    assert time.process_time() - started < 2


def test_a_large_spec_is_read() -> None:
    """Ten thousand classes with two other names each."""
    classes = [f"class {number}" for number in range(10_000)]
    others = {name: [f"{name} or {way}" for way in "ab"] for name in classes}
    spec = json.dumps({"name": "zoo", "classes": classes, "synonyms": others})
    target = parse_target(spec.encode())
    assert len(target.classes) == 10_000 and len(target.names(9_999)) == 3


def test_numbers_as_people_write_them_are_read() -> None:
    assert load("[0x1f, 1_000, 1e3, 1.0e+3, -7, 1:30, .inf, !!int '12']")[:5] == [31, 1000, "1e3", 1000.0, -7]


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


def test_files_of_the_package_are_read_the_same_by_either_reader() -> None:
    files = sorted((ROOT / "mudg_core").rglob("*.yaml"))
    assert ROOT / "mudg_core/corpus/demo/world.yaml" in files
    for file in files:
        assert load_packaged(file) == load(file.read_text(encoding="utf-8"))
