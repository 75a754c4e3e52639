"""Which files are meant by what a user types."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mudg_core.corpus.decode import TOO_MANY_BYTES, Limits, Refused
from mudg_core.predict.files import NO_FILE, NOT_THERE, UNREADABLE, image_files, read_image

ALL = ["tree/[odd].gif", "tree/a.PNG", "tree/b.jpg", "tree/below/c.webp", "tree/below/deep/d.jpeg"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*ALL, "tree/notes.txt", "tree/other.raw"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "tree"


def names(*words: str, listed: list[str] | None = None) -> list[str]:
    return [str(path) for path in image_files(words, listed or [])]


def test_a_folder_gives_the_images_below_it(tree: Path) -> None:
    assert names("tree") == ALL
    assert names(str(tree)) == [str(tree.parent / name) for name in ALL]


def test_a_named_file_is_taken_whatever_it_is_called(tree: Path) -> None:
    assert names("tree/other.raw", "tree/b.jpg", "nowhere.jpg") == [
        "tree/other.raw",
        "tree/b.jpg",
        "nowhere.jpg",
    ]


def test_patterns(tree: Path) -> None:
    assert names("tree/*.jpg") == ["tree/b.jpg"]
    assert names("tree/**/*.?p*g") == ["tree/b.jpg", "tree/below/deep/d.jpeg"]
    assert names(f"{tree}/below/*") == [f"{tree}/below/c.webp"]  # and not the folder in it
    assert names("tree/*.tif") == ["tree/*.tif"]
    assert names("tree/x**y") == ["tree/x**y"]
    assert names("tree/[odd].gif") == ["tree/[odd].gif"]  # a file that is there is meant as it is


def test_a_list(tree: Path) -> None:
    lines = ["tree/b.jpg\n", "\n", "tree/below\r\n", "gone.png"]
    assert names("tree/a.PNG", "-", listed=lines) == [
        "tree/a.PNG",
        "tree/b.jpg",
        "tree/below/c.webp",
        "tree/below/deep/d.jpeg",
        "gone.png",
    ]


def test_names_are_asked_for_one_by_one(tree: Path) -> None:
    def endless() -> object:
        while True:
            yield "tree/b.jpg"

    found = image_files(["-"], endless())  # type: ignore[arg-type]
    assert [str(next(found)) for _ in range(3)] == ["tree/b.jpg"] * 3


def test_links_in_circles_end(tree: Path) -> None:
    (tree / "below" / "up").symlink_to(tree)
    assert names("tree") == ALL


def test_a_folder_that_cannot_be_listed_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("below"):
            raise PermissionError(13, "no", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert names("tree") == [*ALL[:3], "tree/below"]
    with pytest.raises(Refused, match=UNREADABLE):
        read_image(Path("tree/below"))


def test_what_cannot_be_read_is_refused(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_image(tree / "b.jpg") == b"x"
    os.mkfifo(tree / "pipe.jpg")
    reasons = {"pipe.jpg": NO_FILE, "gone.jpg": NOT_THERE, "nul\0.jpg": UNREADABLE, "a.PNG/x": UNREADABLE}
    for name, reason in reasons.items():
        with pytest.raises(Refused) as caught:
            read_image(tree / name)
        assert caught.value.reason == reason
    with pytest.raises(Refused, match=TOO_MANY_BYTES):
        read_image(tree / "b.jpg", Limits(max_bytes=0))
