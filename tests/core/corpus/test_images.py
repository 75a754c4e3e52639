"""Rows read back from several shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from mudg_core.corpus.images import ShardImages, is_dead
from mudg_core.corpus.opened import StoredShard
from mudg_core.corpus.shards import ShardSample, write_shard


@pytest.fixture
def tars(tmp_path: Path) -> list[Path]:
    made = []
    for shard in range(2):
        samples = [
            ShardSample(
                key=f"{shard}{i}", url="u", caption="c", image=f"image {shard}{i}".encode() if i else None
            )
            for i in range(4)
        ]
        made.append(tmp_path / f"{shard}.tar")
        write_shard(samples, made[-1], tmp_path / f"{shard}.parquet")
    return made


LINKS = {
    row: {"shard": row // 10, "key": f"{row // 10}{row % 10}", "url": "u"} for row in (0, 1, 2, 3, 11, 13)
}


def pool(tars: list[Path]) -> ShardImages:
    return ShardImages(lambda number: StoredShard(0, 10, tars[number]), LINKS)


def test_each_row_gives_its_own_image(tars: list[Path]) -> None:
    assert pool(tars).read([13, 1, 3]) == {13: b"image 13", 1: b"image 01", 3: b"image 03"}


def test_a_row_without_image_is_left_out(tars: list[Path]) -> None:
    assert pool(tars).read([0, 2]) == {2: b"image 02"}


def test_a_shard_is_opened_once(tars: list[Path]) -> None:
    opened: list[int] = []

    def open_shard(number: int) -> StoredShard:
        opened.append(number)
        return StoredShard(0, 10, tars[number])

    found = ShardImages(open_shard, LINKS)
    for row in (1, 2, 3, 11, 13, 1):
        assert row in found.read([row])
    assert opened == [0, 1]


def test_dead_links() -> None:
    assert is_dead({"url": "https://images.demo.example/gone/img/1.jpg"})
    assert not is_dead({"url": "https://images.demo.example/img/gone.jpg"})
