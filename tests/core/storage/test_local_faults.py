"""Disks that are full, and stores that do not keep their promises."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from mudg_core.errors import ConflictError, StorageError, UnsafeStoreError
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore, Facts
from mudg_core.storage.objects_local import LocalObjects
from tests.core.storage.making import SHARD, maker, path_of, recipe, stored


class IgnoresIfNoneMatch(LocalObjects):
    """As `rclone serve s3` does."""

    def put_new(self, path: str, data: bytes) -> str:
        self.delete(path)
        return super().put_new(path, data)


class IgnoresIfMatch(LocalObjects):
    def replace(self, path: str, data: bytes, expected_etag: str | None) -> str:
        self.delete(path)
        return super().put_new(path, data)


class Forgets(LocalObjects):
    def replace(self, path: str, data: bytes, expected_etag: str | None) -> str:
        self._expect(path, expected_etag or "")
        return expected_etag or ""


@pytest.mark.parametrize("kind", [IgnoresIfNoneMatch, IgnoresIfMatch, Forgets])
def test_f28_store_without_conditional_put_is_refused(
    kind: type[LocalObjects], local_settings: StorageSettings
) -> None:
    root = Path(local_settings.url.removeprefix("file://"))
    store = ArtifactStore(local_settings, kind(root))
    with pytest.raises(UnsafeStoreError) as caught:
        store.check()
    assert "SeaweedFS" in caught.value.fix and str(root) in caught.value.where
    assert stored(store, "probes/") == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "small"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_f35_disk_full_while_building(small_disk: Path) -> None:
    store = ArtifactStore(StorageSettings(url=f"file://{small_disk}/store"))
    kept = store.build(recipe(algorithm=1), maker())
    with pytest.raises(StorageError, match="disk is full") as caught:
        store.build(recipe(algorithm=2), maker(b"x" * (1 << 20)))
    assert "free some space" in caught.value.fix
    assert store.find(recipe(algorithm=2)) is None and not any(store._scratch.iterdir())
    store.verify(kept)


def test_f35_disk_full_while_copying_into_the_store(small_disk: Path, tmp_path: Path) -> None:
    objects = LocalObjects(small_disk)
    (tmp_path / "big").write_bytes(b"x" * (1 << 20))
    with pytest.raises(StorageError, match="disk is full"):
        objects.upload("artifacts/big", tmp_path / "big", "0" * 64)
    assert list(objects.list("")) == []
    assert not any((small_disk / "scratch").iterdir())


@pytest.fixture
def forgotten_socket() -> Iterator[None]:
    """When the disk fails, s3transfer leaves its half-read reply open; collected here, not elsewhere."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.usefixtures("forgotten_socket")
def test_f34_disk_full_in_download(s3_settings: StorageSettings, small_disk: Path) -> None:
    settings = s3_settings.model_copy(update={"cache_dir": str(small_disk / "cache")})
    ref = ArtifactStore(s3_settings).build(recipe(), maker(b"x" * (1 << 20)))
    store = ArtifactStore(settings)
    with pytest.raises(StorageError, match="disk is full"):
        store.file(ref, SHARD)
    assert not [path for path in small_disk.rglob("*") if path.is_file()]
    assert store.find(recipe()) == ref  # our disk is full; the artifact is as good as ever


@pytest.mark.parametrize("existing", [False, True])
def test_f35_disk_full_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    objects = LocalObjects(tmp_path)
    etag = objects.put_new("pointers/x", b"old") if existing else None

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="disk is full"):
            objects.replace("pointers/x", b"new", etag)
    found = objects.read("pointers/x")
    assert (found[0] if found else None) == (b"old" if existing else None)
    assert not any((tmp_path / "scratch").iterdir())


def test_other_disk_errors_are_ours_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="disk error"):
        LocalObjects(tmp_path / "file").put_new("a/b", b"x")


def test_a_makers_own_missing_file_is_not_blamed_on_the_disk(local_settings: StorageSettings) -> None:
    def make(folder: Path) -> Facts:
        (folder / "absent").read_bytes()
        return Facts()

    with pytest.raises(FileNotFoundError):
        ArtifactStore(local_settings).build(recipe(), make)


def test_stored_files_are_moved_not_copied_and_read_only(local_settings: StorageSettings) -> None:
    store = ArtifactStore(local_settings)
    inodes: list[int] = []

    def make(folder: Path) -> Facts:
        (folder / "x").write_bytes(b"1")
        inodes.append((folder / "x").stat().st_ino)
        return Facts()

    status = store.file(store.build(recipe(), make), "x").stat()
    assert status.st_ino == inodes[0] and status.st_nlink == 1
    assert status.st_mode & 0o222 == 0


def test_a_file_with_another_name_elsewhere_is_copied(
    local_settings: StorageSettings, tmp_path: Path
) -> None:
    """Or whoever wrote through the other name would change the artifact."""
    mine = tmp_path / "mine"
    mine.write_bytes(b"1")

    def make(folder: Path) -> Facts:
        os.link(mine, folder / "x")
        return Facts()

    store = ArtifactStore(local_settings)
    ref = store.build(recipe(), make)
    mine.write_bytes(b"2")
    store.verify(ref)
    assert os.access(mine, os.W_OK) and mine.stat().st_mode & 0o200


def test_a_file_is_hashed_once_per_process(
    local_settings: StorageSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtifactStore(local_settings)
    ref = store.build(recipe(), maker())
    first = store.file(ref, SHARD)

    def hashing(file: Path) -> str:
        raise AssertionError("hashed again")

    with monkeypatch.context() as patch:
        patch.setattr("mudg_core.storage.local_cache.sha256_of", hashing)
        assert store.file(ref, SHARD) == first
        os.utime(first, ns=(1, 1))
        with pytest.raises(AssertionError, match="hashed again"):
            store.file(ref, SHARD)
    assert path_of(store, ref) in str(first)


def test_emptied_folders_go_and_writers_do_not_trip_over_it(tmp_path: Path) -> None:
    objects = LocalObjects(tmp_path)
    objects.put_new("a/b/c", b"1")
    objects.put_new("a/d", b"1")
    objects.delete("a/b/c")
    assert not (tmp_path / "a/b").exists() and objects.exists("a/d")
    objects.delete("a/b/c")  # no matter
    with pytest.raises(ConflictError):
        objects.put_new("a/d", b"2")
