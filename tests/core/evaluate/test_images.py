"""Evaluation images as users have them, and as we keep them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mudg_core.corpus.demo.targets import TARGETS
from mudg_core.errors import InputError
from mudg_core.evaluate import images
from mudg_core.evaluate.baselines import few_shot
from mudg_core.evaluate.images import EvaluationSet, Source, write_evaluation
from tests.core.evaluate.layouts.trees import fgvc, picture, put

CLASSES = ["Red fox", "T-shirt", "cat"]


def read(root: Path) -> list[tuple[str, int, str]]:
    found = Source(str(root), CLASSES, 1).listed("test")
    return [(image.domain, image.label, Path(image.name).relative_to(root).as_posix()) for image in found]


def test_domain_and_class(tmp_path: Path) -> None:
    put(
        tmp_path,
        "sketch/cat/b.PNG",
        "sketch/cat/a.jpg",
        "photo/red_fox/1.jpeg",
        "photo/t shirt/x.webp",
        "photo/dog/d.jpg",
    )
    put(tmp_path, "photo/cat/notes.txt", "readme.jpg", "photo/cat.jpg", "photo/cat/.hidden.jpg")
    assert read(tmp_path) == [
        ("photo", 0, "photo/red_fox/1.jpeg"),
        ("photo", 1, "photo/t shirt/x.webp"),
        ("sketch", 2, "sketch/cat/a.jpg"),
        ("sketch", 2, "sketch/cat/b.PNG"),
    ]


def test_classes_alone_are_one_domain(tmp_path: Path) -> None:
    put(tmp_path, "cat/a.jpg", "RED-FOX/b.jpg", "other/c.jpg")
    assert read(tmp_path) == [(tmp_path.name, 0, "RED-FOX/b.jpg"), (tmp_path.name, 2, "cat/a.jpg")]
    assert Source(str(tmp_path), CLASSES, 1).matching().unknown == ("other",)


@pytest.mark.parametrize(
    "files", [[], ["photo/cat/a.txt"], ["photo/dog/a.jpg"], ["a.jpg"], ["a/b/cat/a.jpg"], ["cat/a.txt"]]
)
def test_no_image(files: list[str], tmp_path: Path) -> None:
    put(tmp_path, *files)
    with pytest.raises(InputError, match="no evaluation image") as caught:
        read(tmp_path)
    assert caught.value.where == str(tmp_path)
    assert "DOMAIN/CLASS" in caught.value.fix


def test_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "cat/a.jpg", "cat/b.jpg")
    assert len(read(tmp_path)) == 2
    monkeypatch.setattr(images, "MAX_IMAGES", 1)
    with pytest.raises(InputError, match="more than 1"):
        read(tmp_path)


def test_an_image_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    put(tmp_path, "cat/a.jpg", "cat/b.jpg")
    (tmp_path / "cat/b.jpg").write_bytes(b"<html>")
    with pytest.raises(InputError, match="not an image") as caught:
        list(Source(str(tmp_path), CLASSES, 1).read())
    assert caught.value.where == str(tmp_path / "cat/b.jpg")


def test_images_come_back_by_domain(tmp_path: Path) -> None:
    shown = [("photo", 1, picture(10)), ("photo", 0, picture(30)), ("sketch", 0, picture(20))]
    assert write_evaluation(iter(shown), tmp_path) == {"photo": 2, "sketch": 1}
    found = EvaluationSet.open(tmp_path)
    assert {domain: list(labels) for domain, labels in found.labels.items()} == {
        "photo": [1, 0],
        "sketch": [0],
    }
    levels = {domain: [np.asarray(i)[0, 0, 0] for i in found.images(domain)] for domain in found.labels}
    assert levels == {"photo": [10, 30], "sketch": [20]}
    assert [np.asarray(i)[0, 0, 0] for i in found.images("photo", {1})] == [30]


def test_fingerprint_sees_a_changed_image(tmp_path: Path) -> None:
    put(tmp_path, "cat/a.jpg", "cat/b.jpg")
    source = Source(str(tmp_path), CLASSES, 1)
    before = source.fingerprint()
    assert source.fingerprint() == before
    assert [(domain, label) for domain, label, _ in source.read()] == [(tmp_path.name, 2)] * 2
    (tmp_path / "cat/a.jpg").write_bytes(b"other")
    assert source.fingerprint() != before


def test_unknown_demo_target() -> None:
    with pytest.raises(InputError, match="no demo target"):
        next(Source("demo:nothing", ["a", "b"], 1).read())


def test_demo_training_images_are_others_of_the_same_styles() -> None:
    target = TARGETS[1]
    source = Source(f"demo:{target.name}", list(target.classes), 1)
    tested = {data for _, _, data in source.read()}
    trained = [(image.label, image.read()) for image in source.listed("train")]
    assert len(tested) == len(trained) == len(target.classes) * len(target.domains)
    assert tested.isdisjoint(data for _, data in trained)
    assert sorted({label for label, _ in trained}) == list(range(len(target.classes)))


@pytest.mark.parametrize("k", [1, 3, 9])
def test_few_shots(k: int, tmp_path: Path) -> None:
    shots = [f"train/cat/{number}.jpg" for number in range(5)] + [f"train/red fox/{n}.jpg" for n in range(9)]
    put(tmp_path / "here", *shots, "test/cat/1.jpg")
    source = Source(str(tmp_path / "here"), CLASSES, 1)
    drawn = list(few_shot(source, k, seed=0))
    assert [label for label, _ in drawn] == [0] * min(k, 9) + [2] * min(k, 5)
    train = {(image.label, image.read()) for image in source.listed("train")}
    assert len(set(drawn)) == len(drawn) and set(drawn) <= train
    (tmp_path / "here").rename(tmp_path / "there")
    moved = Source(str(tmp_path / "there"), CLASSES, 1)
    assert list(few_shot(moved, k, seed=0)) == drawn
    others = {tuple(few_shot(moved, 3, seed=seed)) for seed in range(4)}
    assert len(others) > 1


def test_few_shots_of_a_layout(tmp_path: Path) -> None:
    source = Source(str(fgvc(tmp_path)), ["707-320", "F/A-18", "Falcon 2000"], 1)
    assert [label for label, _ in few_shot(source, 16, 0)] == [0, 2]
