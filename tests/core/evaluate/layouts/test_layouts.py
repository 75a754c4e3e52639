"""Every layout on a miniature tree: which image has which class, and that both readers agree on classes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mudg_core.errors import InputError
from mudg_core.evaluate.images import Source
from mudg_core.evaluate.layouts import LAYOUTS, Part, open_layout
from mudg_core.target.published import class_names
from tests.core.evaluate.layouts.trees import TOLD_APART, WNIDS, WORDNET, fgvc, imagenet, put, write, zhou

Listed = list[tuple[str, str]]


def names(path: Path | str) -> list[str]:
    return [name for name, _ in class_names(path)]


def listed(location: Path | str, part: Part = "test", kind: str = "") -> Listed:
    """(class, file) of what is found, through the names that `classes_from` reads at the same place."""
    layout = open_layout(str(location))
    assert not kind or isinstance(layout, LAYOUTS[kind])
    path = Path(str(location).partition(":")[2] or location)
    root = path if path.is_dir() else path.parent
    classes = names(path)
    found = Source(str(location), classes, 1).listed(part)
    return [(classes[image.label], Path(image.name).relative_to(root).as_posix()) for image in found]


@pytest.mark.parametrize("folder", ["images", "jpg", "2750", "UCF-101-midframes", ".", "data/images"])
def test_zhou(folder: str, tmp_path: Path) -> None:
    root = zhou(tmp_path / "pets", folder)
    inside = "" if folder == "." else f"{folder}/"
    expected = [
        ("Hen", f"{inside}hen/3.jpg"),
        ("red fox", f"{inside}fox/3.jpg"),
        ("red fox", f"{inside}fox/4.jpg"),
    ]
    assert names(root) == ["cat", "red fox", "Hen"]
    for location in (root, root / "split_zhou_Pets.json", f"zhou:{root}"):
        assert listed(location, kind="zhou") == expected
    assert {name for name, _ in listed(root, "train")} == {"cat", "red fox", "Hen"}


@pytest.mark.parametrize("path", ["../secret.jpg", "/etc/passwd", "a/../../secret.jpg", ""])
def test_zhou_stays_in_its_folder(path: str, tmp_path: Path) -> None:
    put(tmp_path, "secret.jpg", "pets/images/a.jpg")
    items = [["a.jpg", 0, "cat"], [path, 1, "dog"]]
    write(tmp_path / "pets", "split_zhou_Pets.json", json.dumps({"test": items}))
    with pytest.raises(InputError, match="leaves the folder"):
        listed(tmp_path / "pets")


def test_zhou_tells_what_is_missing(tmp_path: Path) -> None:
    root = zhou(tmp_path, "images")
    (root / "images/fox/4.jpg").unlink()
    with pytest.raises(InputError, match="missing") as caught:
        listed(root)
    assert caught.value.where.endswith("images/fox/4.jpg")
    write(root, "split_zhou_Pets.json", json.dumps({"test": [["a.jpg", 0, "cat"]]}))
    with pytest.raises(InputError, match="no labelled training"):
        listed(root, "train")


@pytest.mark.parametrize("inside", ["", "data"])
def test_fgvc(inside: str, tmp_path: Path) -> None:
    root, images = fgvc(tmp_path, inside), f"{inside}/images".lstrip("/")
    assert listed(root, kind="fgvc") == [
        ("F/A-18", f"{images}/1514522.jpg"),
        ("707-320", f"{images}/0034309.jpg"),
    ]
    assert [name for name, _ in listed(root, "train")] == ["Falcon 2000", "707-320"]
    (root / inside / "images_variant_trainval.txt").unlink()
    assert [name for name, _ in listed(root, "train")] == ["Falcon 2000"]


@pytest.mark.parametrize("line", ["1514522", "1514522 MiG-29", "../x 707-320"])
def test_fgvc_lines_that_say_nothing(line: str, tmp_path: Path) -> None:
    root = write(fgvc(tmp_path), "images_variant_test.txt", f"{line}\n")
    with pytest.raises(InputError, match="neither number nor variant") as caught:
        listed(root)
    assert caught.value.where.endswith("images_variant_test.txt:1")


@pytest.mark.parametrize("val", ["val", "images/val", "ILSVRC/Data/CLS-LOC/val"])
@pytest.mark.parametrize("flat", [True, False])
def test_imagenet(val: str, flat: bool, tmp_path: Path) -> None:
    root = imagenet(tmp_path / "imagenet", val, flat)
    layout = open_layout(str(root))
    assert isinstance(layout, LAYOUTS["imagenet"]) and layout.names == TOLD_APART
    found = Source(str(root), TOLD_APART, 1)
    assert [TOLD_APART[image.label] for image in found.listed("test")] == ["projectile", "tench"]
    assert [TOLD_APART[image.label] for image in found.listed("train")] == ["tench", "sunglasses"]
    if flat:
        assert names(root) == TOLD_APART


def test_imagenet_sorted_into_folders_needs_no_solution(tmp_path: Path) -> None:
    root = imagenet(tmp_path / "imagenet", "images/val", flat=False)
    (root / "LOC_val_solution.csv").unlink()
    assert names(root) == ["tench", "projectile"]
    assert [name for name, _ in listed(root, kind="wordnet")] == ["tench", "projectile"]
    assert [name for name, _ in listed(root, "train")] == ["tench"]


@pytest.mark.parametrize("names_in", ["imagenet-r", "rendition", "imagenet"])
@pytest.mark.parametrize("given", ["rendition", "rendition/imagenet-r"])
def test_wordnet_folders_are_a_part_of_imagenet(names_in: str, given: str, tmp_path: Path) -> None:
    """The list lies in the folder, beside it, or in the ImageNet folder beside its parent."""
    put(tmp_path / "rendition/imagenet-r", f"{WNIDS[4]}/b.jpg", f"{WNIDS[4]}/a.jpg", f"{WNIDS[1]}/c.jpg")
    place = {"imagenet-r": "rendition/imagenet-r", "rendition": "rendition", "imagenet": "imagenet"}[names_in]
    write(tmp_path / place, "classnames.txt", WORDNET)
    root = tmp_path / given
    assert names(root) == ["gold fish", "sunglass"]
    inside = "" if given.endswith("-r") else "imagenet-r/"
    assert listed(root, kind="wordnet") == [
        ("gold fish", f"{inside}{WNIDS[1]}/c.jpg"),
        ("sunglass", f"{inside}{WNIDS[4]}/a.jpg"),
        ("sunglass", f"{inside}{WNIDS[4]}/b.jpg"),
    ]
    every = Source(str(root), TOLD_APART, 1).listed("test")  # a target with all of ImageNet's classes
    assert [image.label for image in every] == [1, 4, 4]


def test_class_numbers_count_wordnet_numbers_in_their_order(tmp_path: Path) -> None:
    lines = WORDNET.splitlines()
    write(tmp_path, "classnames.txt", "\n".join(reversed(lines)))
    put(tmp_path / "v2", "0/a.jpeg", "3/b.jpeg", "5/c.jpeg", "77/d.jpeg")
    assert listed(tmp_path / "v2", kind="wordnet") == [
        ("sunglasses", "5/c.jpeg"),
        ("projectile", "3/b.jpeg"),
        ("tench", "0/a.jpeg"),
    ]
    (tmp_path / "classnames.txt").unlink()
    assert names(tmp_path / "v2") == ["0", "3", "5", "77"]  # digits, as MNIST has them


def test_domains_of_domainbed(tmp_path: Path) -> None:
    put(tmp_path, "art/dog/1.jpg", "art/Alarm_Clock/2.jpg", "photo/dog/3.png", "photo/stray.jpg")
    source = Source(str(tmp_path), ["alarm clock", "dog"], 1)
    assert [(image.domain, image.label) for image in source.listed("test")] == [
        ("art", 0),
        ("art", 1),
        ("photo", 1),
    ]
    with pytest.raises(InputError, match="no labelled training images"):
        list(source.listed("train"))


@pytest.mark.parametrize("tested", ["test", "val", "validation"])
@pytest.mark.parametrize("domain", ["", "photo/"])
def test_folders_with_a_training_part(tested: str, domain: str, tmp_path: Path) -> None:
    root = put(
        tmp_path / "set",
        f"train/{domain}cat/1.jpg",
        f"train/{domain}dog/2.jpg",
        f"{tested}/{domain}cat/3.jpg",
    )
    for location, inside in ((root, f"{tested}/"), (root / tested, "")):
        assert listed(location, kind="folder") == [("cat", f"{inside}{domain}cat/3.jpg")]
        shots = Source(str(location), ["cat", "dog"], 1).listed("train")
        assert [image.label for image in shots] == [0, 1]
    assert names(root) == ["cat", "dog"]


def test_train_may_be_a_class(tmp_path: Path) -> None:
    put(tmp_path, "bus/1.jpg", "train/2.jpg", "test/3.jpg")
    assert listed(tmp_path) == [("bus", "bus/1.jpg"), ("test", "test/3.jpg"), ("train", "train/2.jpg")]


def test_links_that_lead_outside_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "outside/x.jpg", "set/cat/1.jpg", "set/dog/2.jpg")
    (tmp_path / "set/cat/inside.jpg").symlink_to(tmp_path / "set/dog/2.jpg")
    assert len(listed(tmp_path / "set")) == 3
    (tmp_path / "set/cat/out.jpg").symlink_to(tmp_path / "outside/x.jpg")
    with pytest.raises(InputError, match="leads out"):
        listed(tmp_path / "set")
    (tmp_path / "set/cat/out.jpg").unlink()
    (tmp_path / "set/hen").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match="leads out"):
        listed(tmp_path / "set")


def test_a_layout_can_be_said(tmp_path: Path) -> None:
    put(zhou(tmp_path, "images"), "fox/9.jpg")
    assert listed(f"folder:{tmp_path}/images", kind="folder")[0] == ("cat", "cat/1.jpg")
    with pytest.raises(InputError, match="no labelled images are laid out") as caught:
        open_layout(f"fgvc:{tmp_path}")
    assert "images_variant_test.txt" in caught.value.fix
    with pytest.raises(InputError, match="does not exist"):
        open_layout(f"zhou:{tmp_path}/none")
