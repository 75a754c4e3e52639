"""Specs that run elsewhere than where they were written."""

from __future__ import annotations

from pathlib import Path

import pytest

from mudg_core.errors import InputError, MudgError
from mudg_core.target.spec import MAX_BYTES, parse_target
from mudg_core.target.submitted_spec import load_for_submission, parse_submitted

PLAIN = "name: zoo\nclasses: [cat, dog]\n"


def test_classes_are_read_now_and_paths_hold_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("names.txt").write_text("cat\ndog\n")
    Path("d.json").write_text('{"cat": ["two ears"]}')
    Path("zoo.yaml").write_text(
        "name: zoo\nclasses_from: names.txt\nevaluation: folder:images\n"
        "settings: {augment: {descriptors: d.json}, train: {model: local-dir:m, diversity: 0.3}}\n"
    )
    target, files = load_for_submission(Path("zoo.yaml"))
    assert files == {"descriptors": '{"cat": ["two ears"]}'}
    assert target.classes == ("cat", "dog") and target.evaluation == f"folder:{tmp_path}/images"
    assert target.settings == {
        "augment": {"descriptors": f"{tmp_path}/d.json"},
        "train": {"model": f"local-dir:{tmp_path}/m", "diversity": 0.3},
    }


@pytest.mark.parametrize(
    "line",
    [
        "seeds: !!bool maybe",
        "per_class: !!int ''",
        "per_class: !!float ''",
        "description: !!timestamp abc",
        "evaluation: ~nobody-of-that-name/x",
        "settings: {train: {model: 'local-dir:~nobody-of-that-name/x'}}",
    ],
)
def test_whatever_is_wrong_with_a_value_is_an_error_of_ours(line: str) -> None:
    with pytest.raises(MudgError):
        parse_submitted(f"{PLAIN}{line}\n".encode(), "inbox/a.yaml")


@pytest.mark.parametrize("evaluation", ["demo:animals", "/data/pets", "zhou:/data/pets"])
def test_what_holds_everywhere_is_left_as_it_is(evaluation: str) -> None:
    spec = f"{PLAIN}evaluation: {evaluation}\n".encode()
    assert parse_submitted(spec, "inbox/a.yaml", ["/data"]) == parse_target(spec)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (f"{PLAIN}evaluation: images\n".encode(), "relative"),
        (f"{PLAIN}evaluation: ~/images\n".encode(), "relative"),
        (f"{PLAIN}settings: {{train: {{model: 'local-dir:m'}}}}\n".encode(), "relative"),
        (b"name: zoo\nclasses_from: /etc/hostname\n", "inbox/a.yaml:2"),
        (f"{PLAIN}colour: red\n".encode(), "no such field"),
        (f"{PLAIN}settings: {{download: {{command: /bin/sh}}}}\n".encode(), "settings.download"),
        (f"{PLAIN}settings: {{storage: {{url: 'file:///x'}}}}\n".encode(), "settings.storage"),
        (PLAIN.encode() + b"description: '\xff'\n", "UTF-8"),
        (b" " * (MAX_BYTES + 1), "larger than 4 MiB"),
        (b"", "classes|name"),
    ],
)
def test_what_cannot_be_used_is_refused(spec: bytes, told: str) -> None:
    with pytest.raises(InputError, match=told):
        parse_submitted(spec, "inbox/a.yaml")


def test_a_spec_on_this_machine_cannot_change_the_workers_settings_either(tmp_path: Path) -> None:
    (tmp_path / "zoo.yaml").write_text(f"{PLAIN}settings: {{compute: {{workers: 9}}}}\n")
    with pytest.raises(InputError, match=r"settings.compute"):
        load_for_submission(tmp_path / "zoo.yaml")
