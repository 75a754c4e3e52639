"""Building, adopting, reading, pointing: the same on every kind of store."""

from __future__ import annotations

import json
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mudg_core.errors import (
    ChecksumError,
    ConflictError,
    DataError,
    InputError,
    MissingArtifactError,
    StorageError,
    UnsafeStoreError,
)
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts
from tests.core.storage.making import REPORT, SHARD, forbidden, maker, path_of, recipe, stored

ABSENT = ArtifactRef(stage="embed", key="0" * 64, digest="0" * 64)


def test_check_accepts_and_leaves_nothing(store: ArtifactStore) -> None:
    store.check()
    assert stored(store, "probes/") == stored(store, "artifacts/") == []


def test_build_then_read(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker(b"hello"))
    assert store.find(recipe()) == ref
    assert store.file(ref, SHARD).read_bytes() == b"hello"
    assert set(store.files(ref)) == {SHARD, REPORT}
    assert store.manifest(ref).facts == {"rows": 5}
    assert (store.folder(ref) / SHARD).read_bytes() == b"hello"
    assert (store.folder(ref) / REPORT).is_file()
    store.verify(ref)


def test_f19_another_process_adopts_from_the_manifest_alone(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker())
    elsewhere = pickle.loads(pickle.dumps(store))
    assert elsewhere.build(recipe(), forbidden) == ref
    assert elsewhere.find(recipe(settings={})) is None


def test_f31_no_decision_rests_on_a_listing(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def listing(prefix: str) -> None:
        raise AssertionError("listed")

    monkeypatch.setattr(store.objects, "list", listing)
    store.check()
    ref = store.build(recipe(), maker())
    assert store.build(recipe(), forbidden) == ref
    store.verify(ref)
    store.move_pointer("current", ref, store.pointer("current"))
    store.quarantine(ref, "a test")
    assert store.find(recipe()) is None


def test_f07_same_task_eight_times_at_once_has_one_winner(store: ArtifactStore) -> None:
    """All eight are past `find` before any commits, so all eight race for the manifest."""
    together = threading.Barrier(8, timeout=30)

    def make(folder: Path) -> Facts:
        together.wait()
        return maker()(folder)

    with ThreadPoolExecutor(8) as pool:
        refs = list(pool.map(lambda _: store.build(recipe(), make), range(8)))
    manifest = store.manifest(refs[0])
    assert set(refs) == {manifest.ref}
    expected = [manifest.path(SHARD), manifest.path(REPORT), path_of_manifest(refs[0])]
    assert sorted(stored(store)) == sorted(expected)  # the losers dropped their own files, and only those
    store.verify(refs[0])


def test_only_one_of_eight_writers_creates_an_object(store: ArtifactStore) -> None:
    def put(number: int) -> bool:
        try:
            store.objects.put_new("pointers/race.json", b"writer %d" % number)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(put, range(8))) == 1


def test_only_one_of_eight_writers_replaces_an_object(store: ArtifactStore) -> None:
    etag = store.objects.put_new("pointers/race.json", b"start")

    def put(number: int) -> bool:
        try:
            store.objects.replace("pointers/race.json", b"writer %d" % number, etag)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(put, range(8))) == 1


def test_a_maker_that_fails_leaves_nothing(store: ArtifactStore) -> None:
    def make(folder: Path) -> Facts:
        maker()(folder)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.build(recipe(), make)
    assert store.find(recipe()) is None and stored(store) == []
    assert not any(store._scratch.iterdir())


def test_an_upload_that_fails_half_way_leaves_nothing(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload, done = store.objects.upload, list[str]()

    def second_fails(path: str, local_file: Path, sha256: str) -> None:
        if done:
            raise StorageError(what="gone", where=path)
        upload(path, local_file, sha256)
        done.append(path)

    monkeypatch.setattr(store.objects, "upload", second_fails)
    with pytest.raises(StorageError, match="gone"):
        store.build(recipe(), maker())
    assert len(done) == 1 and stored(store) == []


@pytest.mark.parametrize("kind", ["empty", "link", "nan", "volatile", "name"])
def test_what_cannot_be_an_artifact_is_refused(store: ArtifactStore, kind: str) -> None:
    def make(folder: Path) -> Facts:
        if kind == "empty":
            return Facts()
        (folder / ("ä" if kind == "name" else "x")).write_bytes(b"1")
        if kind == "link":
            (folder / "y").symlink_to("/etc/passwd")
        volatile = frozenset({"z"}) if kind == "volatile" else frozenset()
        return Facts({"loss": float("nan") if kind == "nan" else 1.0}, volatile)

    with pytest.raises((DataError, InputError)):
        store.build(recipe(), make)
    assert stored(store) == [] and store.find(recipe()) is None


def test_missing_artifact_is_named(store: ArtifactStore) -> None:
    with pytest.raises(MissingArtifactError, match="embed/000000000000"):
        store.manifest(ABSENT)


def test_a_reference_to_another_result_is_refused(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker())
    with pytest.raises(ChecksumError, match="differently"):
        store.file(ref.model_copy(update={"digest": "1" * 64}), SHARD)
    assert store.find(recipe()) == ref  # the artifact is sound, so it stays


def test_missing_file_name_lists_what_there_is(store: ArtifactStore) -> None:
    with pytest.raises(MissingArtifactError, match=SHARD):
        store.file(store.build(recipe(), maker()), "no-such.npy")


def test_f37_two_builds_one_current_both_valid(store: ArtifactStore) -> None:
    one, two = (store.build(recipe(algorithm=number), maker()) for number in (1, 2))
    seen = store.pointer("current")
    assert seen is None
    store.move_pointer("current", one, seen)
    with pytest.raises(ConflictError, match="current"):
        store.move_pointer("current", two, seen)
    now = store.pointer("current")
    assert now is not None and now.ref == one
    moved = store.move_pointer("current", two, now)
    assert store.pointer("current") == moved
    with pytest.raises(ConflictError):
        store.move_pointer("current", one, now)
    store.verify(one)
    store.verify(two)


def test_f38_a_reader_stays_on_what_it_resolved(store: ArtifactStore) -> None:
    old, new = (store.build(recipe(algorithm=number), maker(b"%d" % number)) for number in (1, 2))
    first = store.move_pointer("current", old, None)
    reading = store.resolve("current")
    store.move_pointer("current", new, first)
    assert store.file(reading, SHARD).read_bytes() == b"1"
    assert store.resolve("current") == new


def test_a_pointer_cannot_point_to_nothing(store: ArtifactStore) -> None:
    with pytest.raises(MissingArtifactError):
        store.move_pointer("current", ABSENT, None)
    assert store.pointer("current") is None


def test_resolve_what_people_type(store: ArtifactStore) -> None:
    refs = [store.build(recipe(algorithm=number), maker()) for number in range(1, 19)]
    ref = refs[0]
    store.move_pointer("current", ref, None)
    for text in ("current", f"embed/{ref.key}", str(ref), store.uri(ref), store.uri(ref, SHARD), f" {ref} "):
        assert store.resolve(text) == ref
    shared = next(r.key[0] for r in refs if sum(other.key[0] == r.key[0] for other in refs) > 1)  # 18 > 16
    with pytest.raises(InputError, match="names"):
        store.resolve(f"embed/{shared}")
    for text, error in [
        ("nowhere", MissingArtifactError),
        ("embed/ffffffffffff", MissingArtifactError),
        ("s3://elsewhere/embed/abc", InputError),
        ("../../etc/passwd", InputError),
        ("", InputError),
    ]:
        with pytest.raises(error):
            store.resolve(text)


def test_lineage_parents_first_each_once(store: ArtifactStore) -> None:
    root = store.build(recipe("corpus"), maker())
    left = store.build(recipe("left", parents={"p": root}), maker())
    right = store.build(recipe("right", parents={"p": [root, root]}), maker())
    top = store.build(recipe("top", parents={"a": right, "b": [left, root]}), maker())
    assert [manifest.ref for manifest in store.lineage(top)] == [root, right, left, top]


def test_f75_secrets_are_in_nothing_that_is_stored(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "AWS_SECRET_ACCESS_KEY" not in os.environ:  # a store on disk: whatever the shell has of others
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "5ec7e7-of-the-shell")
    secret = os.environ["AWS_SECRET_ACCESS_KEY"].encode()
    ref = store.build(recipe(), maker())
    store.move_pointer("current", ref, None)
    everything = b"".join((store.objects.read(path) or (b"", ""))[0] for path in stored(store, ""))
    assert b"created" in everything and b"moved" in everything
    assert secret and secret not in everything and secret not in pickle.dumps(store)


@pytest.mark.parametrize(
    "url", ["http://x/y", "ftp://x", "/tmp/x", "memory://x", "file://", "s3://", "s3:bucket"]
)
def test_unknown_schemes_are_refused(url: str) -> None:
    with pytest.raises(UnsafeStoreError, match="s3://bucket/prefix"):
        ArtifactStore(StorageSettings(url=url))


def test_relative_urls_are_fixed_when_the_store_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = ArtifactStore(StorageSettings())
    ref = store.build(recipe(), maker())
    monkeypatch.chdir("/")
    assert store.url == f"file://{tmp_path}/.mudg"
    assert pickle.loads(pickle.dumps(store)).file(ref, SHARD).is_relative_to(tmp_path)


def path_of_manifest(ref: ArtifactRef) -> str:
    return f"artifacts/{ref.stage}/{ref.key}/manifest.json"


def test_manifest_on_disk_is_json_for_people(local_settings: StorageSettings) -> None:
    store = ArtifactStore(local_settings)
    ref = store.build(recipe(), maker())
    body = json.loads((store.objects.local_path(path_of_manifest(ref)) or Path()).read_text())
    assert body["digest"] == ref.digest
    assert path_of(store, ref).endswith(SHARD)
