"""The corpus only grows: row numbers are given out once, and nobody's addition is lost."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mudg_core.corpus.sources import registry, shard
from mudg_core.errors import DataError, InputError
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore
from tests.core.corpus.sources import making


def add(store: ArtifactStore, folder: Path, per_shard: int = 20) -> registry.Added:
    return registry.add(store, registry.inspect(str(folder), store, per_shard), per_shard)


def spans(store: ArtifactStore) -> list[tuple[int, int]]:
    found = [shard.load(store, ref) for ref in registry.refs(store)]
    return [(one.first_row, one.rows) for one in found]


def test_adding_again_adds_nothing(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.tars(tmp_path / "source")
    first = add(store, folder)
    before = registry.refs(store)
    again = add(store, folder)
    assert (len(first.new), first.known, len(again.new), again.known) == (3, 0, 0, 3)
    assert registry.refs(store) == before


def test_only_what_came_since_is_new(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.tars(tmp_path / "source", 2)
    add(store, folder)
    add(store, making.images(tmp_path / "images"))
    before = list(registry.refs(store))
    making.tars(folder, 4)
    added = add(store, folder)
    assert (len(added.new), added.rows, added.known) == (2, 40, 2)
    assert list(registry.refs(store))[: len(before)] == before
    assert spans(store) == [(0, 20), (20, 20), (40, 6), (46, 20), (66, 20)]


def test_a_file_that_changed_is_refused_by_name(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.tars(tmp_path / "source")
    add(store, folder)
    data = bytearray((folder / "00001.tar").read_bytes())
    data[len(data) // 2] ^= 1  # as long as before
    (folder / "00001.tar").write_bytes(data)
    with pytest.raises(DataError, match=r"1 files have changed .*00001\.tar"):
        add(store, folder)


def test_files_that_are_gone_are_told(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.tars(tmp_path / "source")
    add(store, folder)
    (folder / "00001.tar").unlink()
    assert add(store, folder).gone == ["00001.tar"]
    assert len(registry.refs(store)) == 3


def test_two_who_add_at_once_lose_nothing(store: ArtifactStore, tmp_path: Path) -> None:
    folders = [making.tars(tmp_path / f"source-{number}", 1, 10 + number) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda folder: add(store, folder), folders))
    found = sorted(spans(store))
    assert sorted(rows for _, rows in found) == [10, 11, 12, 13, 14, 15]
    ends = [first + rows for first, rows in found]
    assert [first for first, _ in found] == [0, *ends[:-1]]


def test_the_same_files_give_the_same_shards(tmp_path: Path) -> None:
    """In two stores: whoever registers the same source elsewhere finds what was embedded before."""
    folder = making.tars(tmp_path / "source")
    found = []
    for name in ("a", "b"):
        store = ArtifactStore(
            StorageSettings(url=f"file://{tmp_path}/{name}", cache_dir=str(tmp_path / "cache"))
        )
        add(store, folder)
        found.append(registry.refs(store))
    assert found[0] == found[1]


def test_nothing_was_added(store: ArtifactStore) -> None:
    assert registry.refs(store) == ()


def test_f83_a_source_is_removed_even_if_its_files_are_gone(store: ArtifactStore, tmp_path: Path) -> None:
    """Its row numbers go with it: nobody else gets them."""
    images, folder = making.images(tmp_path / "images"), making.tars(tmp_path / "source", 2)
    add(store, images)
    add(store, folder)
    shutil.rmtree(folder)
    url = registry.registered_url(store, f"{folder}/")
    assert len(registry.remove(store, url)) == 2 and spans(store) == [(0, 6)]
    assert registry.remove(store, url) == []
    add(store, making.tars(tmp_path / "other", 1))
    assert spans(store) == [(0, 6), (46, 20)]


def test_f83_the_last_source_can_be_removed(store: ArtifactStore, tmp_path: Path) -> None:
    folder = making.tars(tmp_path / "source", 1)
    add(store, folder)
    registry.remove(store, f"file://{folder}")
    assert list(registry.refs(store)) == []
    add(store, folder)
    assert spans(store) == [(20, 20)]


def test_f83_a_source_that_changed_is_replaced_under_new_numbers(
    store: ArtifactStore, tmp_path: Path
) -> None:
    folder = making.tars(tmp_path / "source", 2)
    add(store, folder)
    (folder / "00001.tar").write_bytes((folder / "00000.tar").read_bytes())
    with pytest.raises(DataError, match="corpus add --replace"):
        add(store, folder)
    registry.add(store, registry.inspect(str(folder), store, 20), 20, replace=True)
    assert spans(store) == [(40, 20), (60, 20)]


def test_f83_what_is_no_source_of_the_corpus_is_not_removed(store: ArtifactStore) -> None:
    with pytest.raises(InputError, match="mudg corpus status"):
        registry.registered_url(store, "/nowhere")
