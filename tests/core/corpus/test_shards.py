"""Shards survive a round trip, are byte for byte reproducible, and a hostile sample costs itself only."""

from __future__ import annotations

import io
import json
import os
import tarfile
import tracemalloc
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from mudg_core.corpus.demo import DemoWorld, write_demo_shard
from mudg_core.corpus.demo.world import demo_samples
from mudg_core.corpus.shards import (
    PARQUET_SCHEMA,
    ShardSample,
    encode_jpeg,
    locate,
    read_members,
    read_shard,
    write_shard,
)
from mudg_core.errors import DataError
from tests.support import raw_tar
from tests.support.hostile import hostile_tar
from tests.support.hostile_tars import TarCase, stopping_tails, tar_cases

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


JPEG = encode_jpeg(Image.new("RGB", (64, 64)))
NEIGHBOURS = ["a", "b"]


def reasons(path: Path) -> list[tuple[str, str | None]]:
    """Keys, and why each sample is refused."""
    samples = list(read_shard(path))
    assert all((sample.image is None) == (sample.error_message is not None) for sample in samples)
    return [(sample.key, sample.error_message) for sample in samples]


def between_neighbours(path: Path, data: bytes) -> list[tuple[str, str | None]]:
    path.write_bytes(raw_tar.sample("a", JPEG) + data + raw_tar.sample("b", JPEG) + raw_tar.END)
    return reasons(path)


@pytest.mark.parametrize("case", tar_cases(JPEG), ids=lambda case: f"{case.reason} {case.key}"[:60])
def test_f71_a_bad_sample_costs_itself_only(case: TarCase, tmp_path: Path) -> None:
    found = between_neighbours(tmp_path / "a.tar", case.data)
    assert found == [("a", None), (case.key, case.reason), ("b", None)]


def test_f71_all_bad_samples_together(tmp_path: Path) -> None:
    expected = hostile_tar(tmp_path / "a.tar")
    assert reasons(tmp_path / "a.tar") == expected
    assert len({reason for _, reason in expected}) > 12


def test_f71_no_link_is_followed_and_no_hostile_member_located(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(b"secret")
    links = [
        raw_tar.member("x.jpg", kind=kind, link=os.fsencode(target))
        for kind in (b"1", b"2")
        for target in (secret, Path("a.jpg"))
    ]
    cases = [*(TarCase("x", link, "tar: link") for link in links), *tar_cases(JPEG)]
    for case in cases:
        between_neighbours(tmp_path / "a.tar", case.data)
        found = read_members(tmp_path / "a.tar", [case.key, "x", *NEIGHBOURS])
        assert {key: found.pop(key) for key in NEIGHBOURS} == dict.fromkeys(NEIGHBOURS, JPEG)
        assert set(found.values()) <= {JPEG} and "x" not in found
        assert not (found and case.reason.startswith("tar: l")) or case.key == "textlink"


def test_f71_nothing_is_unpacked(tmp_path: Path) -> None:
    hostile_tar(tmp_path / "a.tar")
    list(read_shard(tmp_path / "a.tar"))
    assert [path.name for path in tmp_path.rglob("*")] == ["a.tar"]


def test_the_first_of_several_reasons_counts_and_others_cost_nothing(tmp_path: Path) -> None:
    member = raw_tar.member
    data = (
        member("x.jpg", kind=b"2") + member("x.txt", b"\xff") + member("x.png", JPEG) + member("x.json", b"[")
    )
    assert between_neighbours(tmp_path / "a.tar", data) == [("a", None), ("x", "tar: link"), ("b", None)]


def test_oversized_members_are_refused(tmp_path: Path) -> None:
    data = raw_tar.member("x.jpg", JPEG + bytes(1)) + raw_tar.member("x.txt", b"c")
    between_neighbours(tmp_path / "a.tar", data)
    found = [(sample.key, sample.error_message) for sample in read_shard(tmp_path / "a.tar", len(JPEG))]
    assert found == [("a", None), ("x", "tar: too large"), ("b", None)]
    assert set(locate(tmp_path / "a.tar", ["a", "x", "b"], len(JPEG))) == {"a", "b"}


def test_of_two_pictures_the_first_counts_for_all_readers(tmp_path: Path) -> None:
    data = raw_tar.member("x.png", b"first") + raw_tar.member("x.jpg", b"second")
    between_neighbours(tmp_path / "a.tar", data)
    assert [sample.image for sample in read_shard(tmp_path / "a.tar")][1] == b"first"
    assert read_members(tmp_path / "a.tar", ["x", "none"]) == {"x": b"first"}


@pytest.mark.parametrize("name", stopping_tails(JPEG))
def test_f71_a_torn_tar_gives_what_came_before(name: str, tmp_path: Path) -> None:
    front = raw_tar.sample("a", JPEG) + raw_tar.sample("b", JPEG)
    (tmp_path / "a.tar").write_bytes(front + stopping_tails(JPEG)[name])
    *good, last = reasons(tmp_path / "a.tar")
    assert good == [("a", None), ("b", None)]
    assert last in [("b", "tar: cut short"), ("torn", "tar: cut short")]
    assert read_members(tmp_path / "a.tar", ["a", "b", "torn"]) == {"a": JPEG, "b": JPEG}


def test_a_shard_cut_anywhere_gives_whole_samples_only(shard: tuple[Path, Path], tmp_path: Path) -> None:
    whole, data = list(read_shard(shard[0])), shard[0].read_bytes()
    for length in range(512, 20_000, 331):
        (tmp_path / "cut.tar").write_bytes(data[:length])
        *good, last = read_shard(tmp_path / "cut.tar")
        assert good == whole[: len(good)], length
        assert (last.image, last.error_message) == (None, "tar: cut short")
        assert last.key in {sample.key for sample in whole[max(0, len(good) - 1) : len(good) + 1]}


def test_a_cut_before_the_facts_costs_the_sample_for_they_may_opt_out(tmp_path: Path) -> None:
    whole = raw_tar.sample("x", JPEG, opt_out=True)
    at = whole.index(b"x.json")
    for length in (at, at + 200, at + 512):
        (tmp_path / "a.tar").write_bytes(raw_tar.sample("a", JPEG) + whole[:length])
        assert reasons(tmp_path / "a.tar") == [("a", None), ("x", "tar: cut short")]
    (tmp_path / "a.tar").write_bytes(raw_tar.sample("a", JPEG) + whole)
    assert reasons(tmp_path / "a.tar") == [("a", None), ("x", None), ("x", "tar: cut short")]


def test_what_is_no_plain_tar_is_an_error(tmp_path: Path) -> None:
    junk, zipped, nothing = (tmp_path / f"{name}.tar" for name in ("junk", "zipped", "nothing"))
    junk.write_bytes(b"not a tar at all" * 100)
    nothing.touch()
    with tarfile.open(zipped, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("1.jpg"))
    for path in (junk, zipped, nothing):
        with pytest.raises(DataError, match="cannot be read"):
            list(read_shard(path))
        with pytest.raises(DataError, match="cannot be read"):
            locate(path, ["1"])


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), (1, True), ("true", True), (False, False), (0, False)]
)
def test_opting_out_is_read_and_survives_being_written(value: object, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(raw_tar.sample("x", JPEG, opt_out=value) + raw_tar.END)
    (sample,) = read_shard(tmp_path / "a.tar")
    assert sample.opt_out is expected and sample.image == JPEG
    write_shard([sample], tmp_path / "b.tar", tmp_path / "b.parquet")
    assert list(read_shard(tmp_path / "b.tar")) == [sample]
    assert pq.read_schema(tmp_path / "b.parquet").names == PARQUET_SCHEMA.names


@pytest.mark.parametrize("value", [None, "no", "false", [], {"a": 1}, 2])
def test_anything_else_is_no_opting_out(value: object, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(raw_tar.sample("x", JPEG, opt_out=value) + raw_tar.END)
    assert [sample.opt_out for sample in read_shard(tmp_path / "a.tar")] == [False]


def test_captions_are_cleaned_and_facts_fit_their_columns(tmp_path: Path) -> None:
    facts = {
        "width": True,
        "height": 2**31,
        "original_width": -1,
        "original_height": 7,
        "url": 5,
        "exif": [1],
    }
    texts = [raw_tar.sample("x", JPEG, "\ufeffa\0b", **facts), raw_tar.member("y.jpg", JPEG)]
    texts.append(raw_tar.member("y.json", b'{"caption": "c\\u0000d"}'))
    (tmp_path / "a.tar").write_bytes(b"".join(texts) + raw_tar.END)
    assert list(read_shard(tmp_path / "a.tar")) == [
        ShardSample("x", "", "a b", JPEG, original_height=7),
        ShardSample("y", "", "c d", JPEG),
    ]


def test_longest_caption_is_taken(tmp_path: Path) -> None:
    longest = "é" * 2**15
    (tmp_path / "a.tar").write_bytes(
        raw_tar.sample("x", JPEG, longest)
        + raw_tar.member("y.jpg", JPEG)
        + raw_tar.member("y.json", json.dumps({"caption": longest}).encode())
        + raw_tar.END
    )
    assert [sample.caption for sample in read_shard(tmp_path / "a.tar")] == [longest] * 2


def test_members_that_nobody_needs_are_not_read(tmp_path: Path) -> None:
    data = (
        raw_tar.member("x.jpg", JPEG)
        + raw_tar.member("x.npy", bytes(2**20))
        + raw_tar.member("x.png", b"y" * 2**20)
    )
    assert [key for key, _ in between_neighbours(tmp_path / "a.tar", data)] == ["a", "x", "b"]
    tracemalloc.start()
    for _ in read_shard(tmp_path / "a.tar"):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20
