"""Each kind of source: recognised, counted from headers alone, and read back as it was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.corpus.shard_reader import RegisteredShard, open_shard
from mudg_core.corpus.shards import write_shard
from mudg_core.corpus.sources import links as links_kind
from mudg_core.corpus.sources.files import SourceFiles
from mudg_core.corpus.sources.registry import Inspection, add, inspect
from mudg_core.errors import DataError, InputError, MissingArtifactError
from mudg_core.storage import ArtifactStore
from tests.core.corpus.sources import making
from tests.core.corpus.sources.conftest import Publish


def registered(store: ArtifactStore, found: Inspection, per_shard: int) -> list[RegisteredShard]:
    made = [open_shard(store, ref) for ref in add(store, found, per_shard).new]
    return [shard for shard in made if isinstance(shard, RegisteredShard)]


def test_tars(publish: Publish, store: ArtifactStore, tmp_path: Path) -> None:
    url = publish(making.tars(tmp_path / "source"))
    found = inspect(url, store, 40)
    assert (found.kind, len(found.parts), found.rows) == ("webdataset", 3, 60)
    shards = registered(store, found, 40)
    assert [(shard.first_row, shard.rows) for shard in shards] == [(0, 40), (40, 20)]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    read = [pair for shard in shards for pair in shard.samples(scratch)]
    wanted = [sample for sample in making.rows(0, 60) if sample.image]
    assert [sample for _, sample in read] == wanted
    assert [file for file, _ in read] == [f"{int(sample.key) // 20:05d}.tar" for sample in wanted]
    assert not list(scratch.iterdir())  # copies do not outlive their use
    some = {(file, sample.key) for file, sample in read[3:30:7]}
    images = shards[0].images(some | {("00001.tar", "not there")})
    assert images == {
        (f"{int(key) // 20:05d}.tar", key): s.image for _, key in some for s in wanted if s.key == key
    }


def without_its_fourth(folder: Path) -> None:
    """As somebody would take an image out of a tar."""
    samples = [sample for sample in making.rows(20, 20) if sample.image]
    write_shard(samples[:3] + samples[4:], folder / "00001.tar", folder / "00001.parquet")


def with_one_more(folder: Path) -> None:
    tar = folder / "00001.tar"
    tar.write_bytes(tar.read_bytes() + bytes(10_240))


@pytest.mark.parametrize("change", [without_its_fourth, with_one_more])
def test_a_tar_that_changed_after_it_was_added_is_refused_by_name(
    change: Callable[[Path], None], publish: Publish, store: ArtifactStore, tmp_path: Path
) -> None:
    """Its samples are counted: all rows after the change would be those of other images."""
    folder = making.tars(tmp_path / "source")
    shard = registered(store, inspect(publish(folder), store, 100), 100)[0]
    change(folder)
    publish(folder)
    read = []
    with pytest.raises(DataError, match=r"00001\.tar has changed since it was added") as caught:
        read += shard.samples(tmp_path)
    assert "new files" in caught.value.fix and "mudg takedown" in caught.value.fix


def test_a_tar_that_is_gone_is_told_by_name(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.tars(tmp_path / "source")
    shard = registered(store, inspect(str(folder), store, 100), 100)[0]
    (folder / "00002.tar").unlink()
    with pytest.raises(MissingArtifactError, match=r"00002\.tar is gone"):
        list(shard.samples(tmp_path))


@pytest.mark.parametrize("told", ["stats", "table", "nothing", "nonsense"])
def test_rows_of_a_tar_are_those_told_or_those_that_fit(
    told: str, store: ArtifactStore, tmp_path: Path
) -> None:
    folder = making.tars(tmp_path / "source", 1, tables=told == "table")
    size = (folder / "00000.tar").stat().st_size
    if told == "stats":
        (folder / "00000_stats.json").write_text('{"count": 20, "successes": 17}')
    if told == "nonsense":
        (folder / "00000_stats.json").write_text('{"successes": "many"}')
        (folder / "00000.parquet").write_bytes(b"nonsense")
    rows = inspect(str(folder), store, 10).rows
    assert rows == {"stats": 17, "table": 20}.get(told, size // 1024)


def test_what_is_called_tar_and_is_none_is_left_out(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.tars(tmp_path / "source", 2)
    (folder / "00000.tar").write_bytes(b"\x1f\x8b compressed" * 100)
    (folder / "00002.tar").write_bytes(b"")
    assert [part.name for part in inspect(str(folder), store, 10).parts] == ["00001.tar"]


def test_folder(publish: Publish, store: ArtifactStore, tmp_path: Path) -> None:
    url = publish(making.images(tmp_path / "source"))
    found = inspect(url, store, 4)
    assert (found.kind, found.rows) == ("folder", 6)
    shards = registered(store, found, 4)
    assert [(shard.first_row, shard.rows) for shard in shards] == [(0, 4), (4, 2)]
    read = {sample.key: sample for shard in shards for _, sample in shard.samples(tmp_path)}
    assert sorted(read) == sorted(part.name for part in found.parts)
    alive = [sample for sample in making.rows(0, 12) if sample.image]
    assert read["cats_and_dogs/red-one_00.jpg"].caption == alive[0].caption
    assert read["boats/red-one_01.jpg"].caption == "boats red one"
    assert read["boats/red-one_01.jpg"].image == alive[1].image
    name = "boats/red-one_05.jpg"
    assert shards[0].images({(name, name)}) == {(name, name): alive[5].image}


@pytest.mark.parametrize(
    ("text", "why"), [(b"\xff\xfe\x00", "text: not UTF-8"), (b"x" * 70_000, "text: too long")]
)
def test_a_caption_that_cannot_be_read_costs_its_image(
    text: bytes, why: str, store: ArtifactStore, tmp_path: Path
) -> None:
    folder = making.images(tmp_path / "source", 3)
    (folder / "boats" / "red-one_01.txt").write_bytes(text)
    shard = registered(store, inspect(str(folder), store, 10), 10)[0]
    reasons = {sample.key: sample.error_message for _, sample in shard.samples(tmp_path)}
    assert {key: reason for key, reason in reasons.items() if reason} == {"boats/red-one_01.jpg": why}


def test_images_of_a_folder_that_are_gone_or_changed_cost_themselves(
    store: ArtifactStore, tmp_path: Path
) -> None:
    folder = making.images(tmp_path / "source")
    (folder / "boats" / "BIG.JPG").write_bytes((folder / "boats" / "red-one_01.jpg").read_bytes())
    (folder / "boats" / "BIG.txt").write_text("a caption that the size of the image says nothing of")
    shard = registered(store, inspect(str(folder), store, 10), 10)[0]
    assert not any(sample.error_message for _, sample in shard.samples(tmp_path))
    gone, changed, other = (f"boats/red-one_{number:02d}" for number in (1, 3, 5))
    (folder / f"{gone}.jpg").unlink()
    (folder / f"{changed}.txt").write_text("words that were not there when it was added")
    (folder / f"{other}.jpg").write_bytes(b"another image")
    read = list(shard.samples(tmp_path))
    assert [file for file, _ in read] == [file.name for file in shard.shard.files]  # rows stay what they were
    reasons = {sample.key: sample.error_message for _, sample in read if sample.image is None}
    assert reasons == {
        f"{gone}.jpg": "file: gone since it was added",
        f"{changed}.jpg": "file: changed since it was added",
        f"{other}.jpg": "file: changed since it was added",
    }
    assert shard.images({(f"{gone}.jpg", f"{gone}.jpg")}) == {}


@pytest.mark.parametrize("per_shard", [1000, 20, 7, 3])
def test_links(per_shard: int, store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.links(making.links(tmp_path / "source"), 12, "part-1")
    found = inspect(str(folder), store, per_shard)
    assert (found.kind, found.rows) == ("links", 62)
    shards = registered(store, found, per_shard)
    assert max(shard.rows for shard in shards) <= per_shard
    tables = [links_kind.read(SourceFiles(str(folder), store.settings), shard.shard) for shard in shards]
    assert [table.num_rows for table in tables] == [shard.rows for shard in shards]
    assert set(tables[0].column_names) == {"url", "caption", "md5"}
    captions = [caption for table in tables for caption in table.column("caption").to_pylist()]
    assert captions == [f"caption {i}" for i in range(50)] + [f"caption {i}" for i in range(12)]


def test_links_in_a_bucket(publish: Publish, store: ArtifactStore, tmp_path: Path) -> None:
    url = publish(making.links(tmp_path / "source"))
    shard = registered(store, inspect(url, store, 30), 30)[1]
    table = links_kind.read(SourceFiles(url, store.settings), shard.shard)
    assert table.column("url").to_pylist() == [f"https://x.example/{i}.jpg" for i in range(30, 50)]


def test_a_list_of_links_that_changed_is_refused_by_name(
    publish: Publish, store: ArtifactStore, tmp_path: Path
) -> None:
    folder = making.links(tmp_path / "source")
    url = publish(folder)
    shard = registered(store, inspect(url, store, 30), 30)[1]
    table = pq.read_table(folder / "part-0.parquet")
    pq.write_table(pa.concat_tables([table.slice(0, 3), table.slice(4)]), folder / "part-0.parquet")
    publish(folder)
    with pytest.raises(DataError, match=r"part-0\.parquet has changed"):
        links_kind.read(SourceFiles(url, store.settings), shard.shard)


def test_a_list_without_links(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.links(tmp_path / "source")
    table = pq.read_table(folder / "part-0.parquet").drop_columns(["URL"])
    pq.write_table(table, folder / "part-0.parquet")
    with pytest.raises(DataError, match="no column for url") as caught:
        inspect(str(folder), store, 10)
    assert "part-0.parquet" in caught.value.where


def test_one_file_is_a_source_too(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.tars(tmp_path / "source")
    found = inspect(str(folder / "00001.tar"), store, 100)
    assert (found.kind, [part.name for part in found.parts]) == ("webdataset", ["00001.tar"])
    shard = registered(store, found, 100)[0]
    assert len(list(shard.samples(tmp_path))) == len([s for s in making.rows(20, 20) if s.image])
    assert inspect(str(making.links(tmp_path / "links") / "part-0.parquet"), store, 100).kind == "links"


def test_published_embeddings(publish: Publish, store: ArtifactStore, tmp_path: Path) -> None:
    url = publish(making.embeddings(tmp_path / "source", {0: 5, 2: 7, 10: 3, 11: 0}))
    found = inspect(url, store, 100)
    assert (found.kind, found.rows) == ("embeddings", 15)
    assert [part.name.rpartition("_")[2] for part in found.parts] == ["0.npy", "2.npy", "10.npy"]
    with pytest.raises(DataError, match="no images of its own"):
        registered(store, found, 100)[0].samples(tmp_path)


def test_published_embeddings_that_are_not_whole(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.embeddings(tmp_path / "source", {0: 5})
    (folder / "img_emb" / "img_emb_0.npy").write_bytes(b"garbage" * 100)
    with pytest.raises(DataError, match=r"cannot be read as .npy"):
        inspect(str(folder), store, 100)
    (folder / "metadata" / "metadata_0.parquet").unlink()
    with pytest.raises(DataError, match=r"there is no metadata/metadata_0.parquet"):
        inspect(str(folder), store, 100)


@pytest.mark.parametrize(
    "url", ["http://x.example/list", "ftp://x.example", "gs://bucket/x", "/nowhere/at/all"]
)
def test_f60_what_is_no_source(url: str, store: ArtifactStore) -> None:
    with pytest.raises(InputError):
        inspect(url, store, 100)


def test_a_folder_of_other_things(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for file in ("a.csv", "b.doc", ".hidden.jpg"):
        (tmp_path / "source" / file).write_text("x")
    with pytest.raises(InputError, match=r"nothing to embed among 2 files \(csv, doc\)"):
        inspect(str(tmp_path / "source"), store, 100)
