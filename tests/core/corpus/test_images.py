"""Rows read back from several shards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mudg_core.corpus.shard_reader import (
    GONE,
    NOT_THERE,
    Answer,
    CorpusImages,
    ShardImages,
    StoredShard,
    is_dead,
)
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


def test_a_shard_without_images_gives_none(tars: list[Path]) -> None:
    found = ShardImages(lambda number: StoredShard(0, 10, tars[1]) if number else None, LINKS)
    assert found.read([1, 13]) == {13: b"image 13"}


def test_each_row_comes_from_where_it_is_or_with_a_reason(tars: list[Path]) -> None:
    asked: list[list[int]] = []

    def by_link(rows: Sequence[int]) -> Answer:
        asked.append(list(rows))
        return Answer({11: b"web"}, dict.fromkeys(set(rows) - {11}, "HTTP 404"))

    dead = {"shard": 0, "key": "03", "url": "https://images.demo.example/gone/img/1.jpg"}
    shards = ShardImages(lambda number: StoredShard(0, 10, tars[number]), LINKS | {3: dead})
    answer = CorpusImages(shards, {11, 13}, by_link)([0, 13, 1, 3, 11])
    assert answer.images == {1: b"image 01", 11: b"web"} and asked == [[13, 11]]
    assert answer.reasons == {0: NOT_THERE, 3: GONE, 13: "HTTP 404"}
    assert CorpusImages(shards, {11}, by_link)([1]).images.keys() == {1} and len(asked) == 1


def test_dead_links() -> None:
    assert is_dead({"url": "https://images.demo.example/gone/img/1.jpg"})
    assert not is_dead({"url": "https://images.demo.example/img/gone.jpg"})
