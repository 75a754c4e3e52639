"""Shards survive a round trip, are byte for byte reproducible, and hostile tars are refused."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from mudg_core.corpus.demo import DemoWorld, write_demo_shard
from mudg_core.corpus.demo.shard import demo_samples
from mudg_core.corpus.shards import (
    PARQUET_SCHEMA,
    ShardSample,
    encode_jpeg,
    read_members,
    read_shard,
    write_shard,
)
from mudg_core.errors import DataError

WORLD = DemoWorld(seed=2)
ROWS = 80


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("shard")
    paths = folder / "00000.tar", folder / "00000.parquet"
    assert write_demo_shard(WORLD, 100, ROWS, *paths) == ROWS
    return paths


def test_round_trip(shard: tuple[Path, Path]) -> None:
    alive = [sample for sample in demo_samples(WORLD, 100, ROWS) if sample.image is not None]
    assert list(read_shard(shard[0])) == alive


def test_failed_rows_are_only_in_the_parquet(shard: tuple[Path, Path]) -> None:
    table = pq.read_table(shard[1])
    assert table.schema.equals(PARQUET_SCHEMA) and table.num_rows == ROWS
    dead = [row for row in table.to_pylist() if row["status"] != "success"]
    assert dead and all(row["status"] == "failed_to_download" and row["error_message"] for row in dead)
    assert not {row["key"] for row in dead} & {sample.key for sample in read_shard(shard[0])}


def test_same_rows_same_bytes(shard: tuple[Path, Path], tmp_path: Path) -> None:
    write_demo_shard(DemoWorld(seed=2), 100, ROWS, tmp_path / "a.tar", tmp_path / "a.parquet")
    assert (tmp_path / "a.tar").read_bytes() == shard[0].read_bytes()
    assert (tmp_path / "a.parquet").read_bytes() == shard[1].read_bytes()


def test_truth_is_not_in_shards(shard: tuple[Path, Path]) -> None:
    with tarfile.open(shard[0]) as tar:
        names = tar.getnames()
        stream = tar.extractfile(next(name for name in names if name.endswith(".json")))
        assert stream is not None and set(json.load(stream)) == set(PARQUET_SCHEMA.names)
    assert {name.rpartition(".")[2] for name in names} == {"jpg", "txt", "json"}


def test_members_by_key(shard: tuple[Path, Path]) -> None:
    samples = list(read_shard(shard[0]))
    chosen = [samples[30], samples[4]]
    found = read_members(shard[0], [*(sample.key for sample in chosen), "999999999"])
    assert found == {sample.key: sample.image for sample in chosen}
    assert Image.open(io.BytesIO(found[samples[4].key])).size == (64, 64)


def test_empty_shard(tmp_path: Path) -> None:
    assert write_shard([], tmp_path / "a.tar", tmp_path / "a.parquet") == 0
    assert list(read_shard(tmp_path / "a.tar")) == [] and pq.read_table(tmp_path / "a.parquet").num_rows == 0


def test_foreign_shard_without_json_or_jpeg(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, content in (("x/1.png", b"pixels"), ("x/1.txt", "häuser".encode()), ("x/2.jpg", b"more")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    assert list(read_shard(tmp_path / "a.tar")) == [
        ShardSample("x/1", "", "häuser", b"pixels"),
        ShardSample("x/2", "", "", b"more"),
    ]


def _named(name: str) -> tarfile.TarInfo:
    return tarfile.TarInfo(name)


def _typed(kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo("000000001.jpg")
    member.type, member.linkname = kind, "/etc/passwd"
    return member


@pytest.mark.parametrize(
    "make",
    [
        lambda: _named("/etc/cron.d/evil.jpg"),
        lambda: _named("../../evil.jpg"),
        lambda: _named("ok/../../evil.jpg"),
        lambda: _named("..\\evil.jpg"),
        lambda: _typed(tarfile.SYMTYPE),
        lambda: _typed(tarfile.LNKTYPE),
        lambda: _typed(tarfile.CHRTYPE),
        lambda: _typed(tarfile.FIFOTYPE),
    ],
)
def test_hostile_members_are_refused(make: Callable[[], tarfile.TarInfo], tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        tar.addfile(make())
    with pytest.raises(DataError, match="member"):
        list(read_shard(tmp_path / "bad.tar"))
    with pytest.raises(DataError, match="member"):
        read_members(tmp_path / "bad.tar", ["000000001"])


def test_oversized_and_doubled_members_are_refused(tmp_path: Path) -> None:
    sample = ShardSample("000000001", "u", "c", encode_jpeg(Image.new("RGB", (64, 64))))
    write_shard([sample], tmp_path / "a.tar", tmp_path / "a.parquet")
    with pytest.raises(DataError, match="bytes"):
        list(read_shard(tmp_path / "a.tar", max_member_bytes=100))
    write_shard([sample, sample], tmp_path / "b.tar", tmp_path / "b.parquet")
    with pytest.raises(DataError, match="twice"):
        list(read_shard(tmp_path / "b.tar"))


def test_broken_files_are_refused(shard: tuple[Path, Path], tmp_path: Path) -> None:
    whole = shard[0].read_bytes()
    junk, zipped = tmp_path / "junk.tar", tmp_path / "zipped.tar"
    torn = [tmp_path / f"torn{length}.tar" for length in (512, 700, 4096, 5000, 5120, 10_240, 10_500)]
    for path in torn:
        path.write_bytes(whole[: int(path.stem[4:])])
    junk.write_bytes(b"not a tar at all" * 100)
    with tarfile.open(zipped, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("1.jpg"))
    for path in (*torn, junk, zipped):
        with pytest.raises(DataError, match="cannot be read"):
            list(read_shard(path))


def test_broken_json_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        member = tarfile.TarInfo("1.json")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"[1]x"))
    with pytest.raises(DataError, match="text of sample"):
        list(read_shard(tmp_path / "a.tar"))
