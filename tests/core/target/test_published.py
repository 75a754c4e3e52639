"""Class names from lists and datasets as they are published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mudg_core.errors import InputError
from mudg_core.target.published import class_names


def names(path: Path) -> list[str]:
    return [name for name, _ in class_names(path)]


def write(path: Path, content: bytes | str = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def split(*lists: list[Any]) -> str:
    return json.dumps(dict(zip(("train", "val", "test"), lists, strict=False)))


def test_a_list_of_names(tmp_path: Path) -> None:
    file = write(tmp_path / "any.txt", "\ufeffcat\r\n\r\n  red fox \r\n707-320\r\n")
    assert class_names(file) == [("cat", f"{file}:1"), ("red fox", f"{file}:3"), ("707-320", f"{file}:4")]


def test_imagenets_names_lose_their_numbers(tmp_path: Path) -> None:
    file = write(tmp_path / "classnames.txt", "n01440764 tench\nn01443537 gold fish\n")
    assert names(file) == names(tmp_path) == ["tench", "gold fish"]
    mixed = write(tmp_path / "mixed.txt", "n01440764 tench\nn014 odd\n")
    assert names(mixed) == ["n01440764 tench", "n014 odd"]


def test_only_classes_that_have_a_folder(tmp_path: Path) -> None:
    """ImageNet-R has 200 of the 1,000 classes; the list lies in it or beside it."""
    write(tmp_path / "classnames.txt", "n00000001 a\nn00000002 b\nn00000003 c\n")
    for number in (3, 1):
        write(tmp_path / "imagenet-r" / f"n0000000{number}" / "x.jpg")
    assert names(tmp_path / "imagenet-r") == ["a", "c"]
    write(tmp_path / "imagenet-r" / "classnames.txt", "n00000001 one\nn00000002 two\nn00000003 three\n")
    assert names(tmp_path / "imagenet-r") == ["one", "three"]


def test_numbers_without_names_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "data" / "n01440764" / "x.jpg")
    with pytest.raises(InputError, match="numbered as in WordNet"):
        class_names(tmp_path / "data")


def test_split_files(tmp_path: Path) -> None:
    content = split([["a.jpg", 1, "red_fox"], ["b.jpg", 0, "cat"]], [], [["c.jpg", 2, "hen"]])
    file = write(tmp_path / "split_zhou_Pets.json", content)
    (tmp_path / "images").mkdir()
    assert names(file) == names(tmp_path) == ["cat", "red fox", "hen"]
    write(tmp_path / "split_zhou_Other.json", content)
    with pytest.raises(InputError, match="2 files"):
        class_names(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not JSON"),
        ("[]", "lists of"),
        (split([["a.jpg", 0]]), "lists of"),
        (split([["a.jpg", "0", "cat"]]), "lists of"),
        (split([["a.jpg", 0, "cat"], ["b.jpg", 0, "dog"]]), "two classes"),
        (split([["a.jpg", 0, "cat"], ["b.jpg", 2, "dog"]]), "0, 1, 2"),
        (json.dumps({"train": {"a": 1}}), "lists of"),
    ],
)
def test_other_json_is_refused(content: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        class_names(write(tmp_path / "split.json", content))


@pytest.mark.parametrize("inside", ["", "data/"])
def test_fgvc_variants(inside: str, tmp_path: Path) -> None:
    write(tmp_path / f"{inside}variants.txt", "707-320\nA300B4\n")
    (tmp_path / "data" / "images").mkdir(parents=True)
    assert names(tmp_path) == ["707-320", "A300B4"]


def test_class_folders(tmp_path: Path) -> None:
    for name in ("red_fox", "cat", ".cache"):
        write(tmp_path / name / "1.JPG")
    write(tmp_path / "notes.txt")
    assert class_names(tmp_path) == [("cat", str(tmp_path)), ("red fox", str(tmp_path))]


def test_domain_and_class_folders(tmp_path: Path) -> None:
    for path in ("photo/dog", "photo/Alarm_Clock", "art/dog", "art/person"):
        write(tmp_path / path / "1.png")
    assert names(tmp_path) == ["Alarm Clock", "dog", "person"]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        class_names(tmp_path / "none")
    assert class_names(tmp_path) == []
    with pytest.raises(InputError) as caught:
        class_names(write(tmp_path / "bad.txt", b"cat\ndog\0\n"))
    assert caught.value.where.endswith("bad.txt:2")
