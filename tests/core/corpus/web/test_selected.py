"""Images of chosen rows by their links: with a stand-in for img2dataset, and once with the real one."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mudg_core.corpus.decode import decode
from mudg_core.corpus.web import download
from mudg_core.corpus.web.download import LinkedImages
from mudg_core.errors import OrchestrationError
from mudg_core.settings import DownloadSettings
from tests.support import fake_img2dataset
from tests.support.guarded import canary, web
from tests.support.hostile_web import HTML, HostileWeb, picture

__all__ = ["canary", "web"]
FAKE = "http://fake.example"


class Pool:
    """Rows with links, a stand-in that answers them, and the pauses that were made."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.slept = folder, list[float]()
        command = fake_img2dataset.install(folder)
        self.settings = DownloadSettings(command=command, retries=3, backoff_seconds=10)

    def images(self, links: dict[int, str | dict[str, Any]], **how: Any) -> LinkedImages:
        lines = {
            row: {"url": f"{FAKE}/{link}"} if isinstance(link, str) else link for row, link in links.items()
        }
        return LinkedImages(lines, self.settings, self.folder, **how)

    def asked(self) -> list[list[str]]:
        return [
            [url.removeprefix(f"{FAKE}/") for url in call["urls"]]
            for call in fake_img2dataset.calls(self.folder)
        ]


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    made = Pool(tmp_path)
    monkeypatch.setattr(download, "sleep", made.slept.append)
    yield made
    assert not list(tmp_path.glob("links-*"))


def color(data: bytes) -> tuple[int, ...]:
    with Image.open(io.BytesIO(data)) as image:
        return tuple(round(value / 85) * 85 for value in image.convert("RGB").getpixel((4, 4)))  # type: ignore[union-attr]


def test_rows_get_their_own_image_or_a_reason_in_one_call(pool: Pool) -> None:
    images = pool.images(
        {7: "ok/red", 3: "fail/HTTP%20Error%20404:%20x", 900: "ok/lime", 4: "lost", 5: "ok/blue", 6: "ok/red"}
    )
    answer = images([900, 3, 7, 4, 5])
    assert {row: color(data) for row, data in answer.images.items()} == {
        900: (0, 255, 0),
        7: (255, 0, 0),
        5: (0, 0, 255),
    }
    assert answer.reasons == {3: "HTTP 404", 4: "no result"}
    assert pool.asked() == [["ok/lime", "fail/HTTP%20Error%20404:%20x", "ok/red", "lost", "ok/blue"]]


def test_a_failure_that_may_pass_is_asked_again_only_when_the_caller_does(pool: Pool) -> None:
    images = pool.images({1: "passing/a", 2: "ok/red"})
    assert images([1, 2]).reasons == {1: "timed out"} and not pool.slept
    assert images([1]).images.keys() == {1}
    assert pool.asked() == [["passing/a", "ok/red"], ["passing/a"]]
    assert len(pool.slept) == 1 and 5 <= pool.slept[0] <= 15


def test_f60_f70_nobody_is_asked_for_what_may_not_be_fetched(pool: Pool) -> None:
    links: dict[int, Any] = {
        1: {"url": "file:///etc/passwd"},
        2: {"url": f"{FAKE}/ok/red", "opt_out": True},
        3: {"url": None},
        4: {"url": f"{FAKE}/ok/red", "opt_out": None},
    }
    answer = pool.images(links)([1, 2, 3, 4])
    assert answer.images.keys() == {4} and pool.asked() == [["ok/red"]]
    assert answer.reasons == {1: "refused: scheme", 2: "opted out", 3: "refused: malformed url"}
    assert pool.images(links, keep_opted_out=True)([2]).images.keys() == {2}


def test_hashes_are_verified_where_they_are_hashes(pool: Pool) -> None:
    url = f"{FAKE}/ok/red"
    links: dict[int, Any] = {
        1: {"url": url, "sha256": "A" * 64},
        2: {"url": url, "md5": "b" * 32, "sha256": ""},
        3: {"url": url, "md5": None, "sha256": "unknown"},
    }
    assert pool.images(links)([1, 2, 3]).images.keys() == {1, 2, 3}
    kinds = [call["options"]["verify_hash"] for call in fake_img2dataset.calls(pool.folder)]
    assert kinds == [["sha256", "sha256"], ["md5", "md5"], None]
    pool.images(links, verify_hashes=False)([1, 2, 3])
    assert [call["options"]["verify_hash"] for call in fake_img2dataset.calls(pool.folder)][3:] == [None]


def test_f34_a_full_disk_is_no_dead_link(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(download, "_image", full)
    with pytest.raises(OrchestrationError, match="No space left"):
        pool.images({1: "ok/red"})([1])


def test_f61_to_f70_strangers_through_the_real_downloader(
    web: HostileWeb, canary: HostileWeb, tmp_path: Path
) -> None:
    paths = {
        "turned/": None,
        "missing/": "HTTP 404",
        "endless/": "refused: too large",
        "chain/2": "refused: loopback address",
        "robots/noai": "opted out",
        "html/x.jpg": "image: not an image (html)",
        "good/pink": "hash mismatch",
        "good/red": None,
    }
    known = {"good/red": picture("red"), "turned/": picture("yellow", turn=6), "html/x.jpg": HTML}
    links: dict[int, Any] = {
        row: {"url": f"{web.url}/{path}", "sha256": hashlib.sha256(known.get(path, b"")).hexdigest()}
        for row, path in enumerate(paths)
    }
    links[100] = {"url": canary.url, "sha256": "0" * 64}
    settings = DownloadSettings(
        allow_networks=("127.0.0.2/32",), ports=(web.port,), timeout_seconds=60, max_bytes=300_000
    )
    answer = LinkedImages(links, settings, tmp_path)(list(links))
    expected = {row: reason for row, reason in enumerate(paths.values()) if reason}
    assert answer.reasons == expected | {100: "refused: loopback address"}
    assert [decode(answer.images[row]).size for row in (0, 7)] == [(48, 64), (64, 48)]
    assert not canary.hits and max(web.hits.values()) == 1 and not list(tmp_path.iterdir())
