"""Evaluation images as users have them on disk, and as we keep them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mudg_core.errors import InputError
from mudg_core.evaluate import folder
from mudg_core.evaluate.folder import read_folder
from mudg_core.evaluate.images import EvaluationSet, Source, write_evaluation

CLASSES = ["Red fox", "T-shirt", "cat"]


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode())


def read(root: Path) -> list[tuple[str, int, str]]:
    found = read_folder(root, CLASSES)
    return [(domain, label, file.relative_to(root).as_posix()) for domain, label, file in found]


def test_domain_and_class(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "sketch/cat/b.PNG",
        "sketch/cat/a.jpg",
        "photo/red_fox/1.jpeg",
        "photo/t shirt/x.webp",
        "photo/dog/d.jpg",
    )
    touch(tmp_path, "photo/cat/notes.txt", "readme.jpg", "photo/cat.jpg")
    assert read(tmp_path) == [
        ("photo", 0, "photo/red_fox/1.jpeg"),
        ("photo", 1, "photo/t shirt/x.webp"),
        ("sketch", 2, "sketch/cat/a.jpg"),
        ("sketch", 2, "sketch/cat/b.PNG"),
    ]


def test_classes_alone_are_one_domain(tmp_path: Path) -> None:
    touch(tmp_path, "cat/a.jpg", "RED-FOX/b.jpg", "other/c.jpg")
    assert read(tmp_path) == [(tmp_path.name, 0, "RED-FOX/b.jpg"), (tmp_path.name, 2, "cat/a.jpg")]


@pytest.mark.parametrize("name", ["Red fox", "red_fox", "RED-FOX", "red  fox", "red__fox"])
def test_names_match_without_case_and_underscores(name: str, tmp_path: Path) -> None:
    touch(tmp_path, f"{name}/a.jpg")
    assert [label for _, label, _ in read(tmp_path)] == [0]


@pytest.mark.parametrize(
    "files", [[], ["photo/cat/a.txt"], ["photo/dog/a.jpg"], ["a.jpg"], ["a/b/cat/a.jpg"]]
)
def test_no_image(files: list[str], tmp_path: Path) -> None:
    touch(tmp_path, *files)
    with pytest.raises(InputError, match="no evaluation image") as caught:
        read(tmp_path)
    assert caught.value.where == str(tmp_path)
    assert "DOMAIN/CLASS" in caught.value.fix


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "none")


def test_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "cat/a.jpg", "cat/b.jpg")
    monkeypatch.setattr(folder, "MAX_IMAGES", 1)
    with pytest.raises(InputError, match="more than 1"):
        read(tmp_path)


def picture(level: int) -> bytes:
    stored = io.BytesIO()
    Image.new("RGB", (4, 4), (level, 0, 0)).save(stored, "PNG")
    return stored.getvalue()


def test_images_come_back_by_domain(tmp_path: Path) -> None:
    images = [("photo", 1, picture(10)), ("photo", 0, picture(30)), ("sketch", 0, picture(20))]
    assert write_evaluation(iter(images), tmp_path) == {"photo": 2, "sketch": 1}
    found = EvaluationSet.open(tmp_path)
    assert {domain: list(labels) for domain, labels in found.labels.items()} == {
        "photo": [1, 0],
        "sketch": [0],
    }
    levels = {domain: [np.asarray(i)[0, 0, 0] for i in found.images(domain)] for domain in found.labels}
    assert levels == {"photo": [10, 30], "sketch": [20]}


def test_fingerprint_sees_a_changed_image(tmp_path: Path) -> None:
    touch(tmp_path, "cat/a.jpg", "cat/b.jpg")
    source = Source(str(tmp_path), CLASSES, 1)
    before = source.fingerprint()
    assert source.fingerprint() == before
    assert [(domain, label) for domain, label, _ in source.read()] == [(tmp_path.name, 2)] * 2
    (tmp_path / "cat/a.jpg").write_bytes(b"other")
    assert source.fingerprint() != before


def test_unknown_demo_target() -> None:
    with pytest.raises(InputError, match="no demo target"):
        next(Source("demo:nothing", ["a", "b"], 1).read())
