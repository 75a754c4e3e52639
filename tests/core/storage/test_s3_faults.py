"""Everything that can go wrong between us and an S3 server."""

from __future__ import annotations

import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest import MonkeyPatch

from mudg_core.errors import ChecksumError, ConflictError, CredentialsError, StorageError
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore, Facts
from mudg_core.storage.objects_s3 import S3Objects
from tests.core.storage.making import SHARD, maker, path_of, recipe, stored
from tests.support import s3_faults
from tests.support.s3_faults import Wire, answer
from tests.support.seaweed import SeaweedServer

MIB = 1 << 20
PATH = "pointers/x.json"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: MonkeyPatch) -> None:
    """Backoff is right in production and a waste here; no result depends on how long it lasts."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
    monkeypatch.setattr("mudg_core.retries.sleep", lambda seconds: None)


@pytest.fixture
def objects(s3_settings: StorageSettings) -> S3Objects:
    return S3Objects(s3_settings, part_bytes=5 * MIB)


def test_f21_slow_down_is_waited_out(objects: S3Objects) -> None:
    wire = Wire(answer(503, "SlowDown"), times=2).hook(objects.client)
    objects.put_new(PATH, b"data")
    assert objects.read(PATH) is not None and len(wire.seen) == 4


def test_f22_always_slow_down_is_a_bounded_error_that_names_the_key(objects: S3Objects) -> None:
    wire = Wire(answer(503, "SlowDown")).hook(objects.client)
    with pytest.raises(StorageError, match="SlowDown") as caught:
        objects.put_new(PATH, b"data")
    assert PATH in caught.value.where and caught.value.retryable
    assert len(wire.seen) == objects.retries + 1


def test_f23_reset_while_uploading_is_repeated(s3_settings: StorageSettings) -> None:
    store = ArtifactStore(s3_settings)
    wire = Wire(s3_faults.reset, times=1).hook(store.objects.client, "PutObject")  # type: ignore[attr-defined]
    store.verify(store.build(recipe(), maker()))
    assert len(wire.seen) == 4  # two files, one of them twice, and the manifest


def test_f23_multipart_upload_is_aborted(objects: S3Objects, tmp_path: Path) -> None:
    file = big_file(tmp_path)
    Wire(s3_faults.reset).hook(objects.client, "UploadPart")
    aborts = Wire().hook(objects.client, "AbortMultipartUpload")
    with pytest.raises(StorageError, match="cannot be reached"):
        objects.upload("artifacts/x", file, "0" * 64)
    uploads = objects.client.list_multipart_uploads(Bucket=objects.bucket, Prefix=objects.prefix)
    assert len(aborts.seen) == 1 and not uploads.get("Uploads")
    assert not objects.exists("artifacts/x")


def test_large_files_go_in_parts_and_are_verified_without_reading_back(
    s3_settings: StorageSettings, objects: S3Objects
) -> None:
    store = ArtifactStore(s3_settings, objects)
    parts, reads = Wire().hook(objects.client, "UploadPart"), Wire().hook(objects.client, "GetObject")

    def make(folder: Path) -> Facts:
        big_file(folder)
        return Facts()

    ref = store.build(recipe(), make)
    assert len(parts.seen) == 3
    assert not [url for url in reads.seen if "/attempts/" in url]
    store.verify(ref)


@pytest.mark.parametrize("size", [100, 11 * MIB])
def test_stored_bytes_that_differ_from_the_file_are_noticed(
    objects: S3Objects, tmp_path: Path, size: int
) -> None:
    (tmp_path / "x").write_bytes(b"x" * size)
    with pytest.raises(StorageError, match="other bytes"):
        objects.upload("artifacts/x", tmp_path / "x", "0" * 64)  # as if the file had changed since hashing
    assert not objects.exists("artifacts/x")


def test_a_server_that_tells_no_checksum_is_read_back(objects: S3Objects, tmp_path: Path) -> None:
    from mudg_core.storage.objects import sha256_of

    (tmp_path / "x").write_bytes(b"content")
    head = objects.client.head_object

    def bare(**request: Any) -> Any:
        return {name: value for name, value in head(**request).items() if "Checksum" not in name}

    objects.client.head_object = bare
    reads = Wire().hook(objects.client, "GetObject")
    objects.upload("artifacts/x", tmp_path / "x", sha256_of(tmp_path / "x"))
    assert len(reads.seen) == 1
    with pytest.raises(StorageError, match="other bytes"):
        objects.upload("artifacts/y", tmp_path / "x", "0" * 64)


def test_f24_download_cut_short_is_repeated(s3_settings: StorageSettings) -> None:
    store = ArtifactStore(s3_settings)
    ref = store.build(recipe(), maker(b"hello"))
    wire = Wire(s3_faults.cut_short, times=2, only="/attempts/")
    wire.hook(store.objects.client, "GetObject")  # type: ignore[attr-defined]
    assert store.file(ref, SHARD).read_bytes() == b"hello"
    assert len(wire.seen) == 3


def test_f24_wrong_bytes_on_the_way_are_fetched_again_and_do_not_quarantine(
    s3_settings: StorageSettings,
) -> None:
    store = ArtifactStore(s3_settings)
    ref = store.build(recipe(), maker(b"hello"))
    wire = Wire(s3_faults.flipped, times=1, only="/attempts/")
    wire.hook(store.objects.client, "GetObject")  # type: ignore[attr-defined]
    assert store.file(ref, SHARD).read_bytes() == b"hello"
    assert len(wire.seen) == 2
    assert store.find(recipe()) == ref and stored(store, "quarantine/") == []


def test_f24_a_small_read_that_breaks_off_is_repeated(objects: S3Objects) -> None:
    objects.put_new(PATH, b"content")
    Wire(s3_faults.cut_short, times=1).hook(objects.client, "GetObject")
    found = objects.read(PATH)
    assert found is not None and found[0] == b"content"


def test_f25_a_server_that_never_answers(s3_settings: StorageSettings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        changes = {"endpoint_url": endpoint, "timeout_seconds": 0.2, "retries": 1}
        with pytest.raises(StorageError, match="ReadTimeoutError") as caught:
            ArtifactStore(s3_settings.model_copy(update=changes)).find(recipe())
    assert caught.value.retryable and "manifest.json" in caught.value.where


def test_f26_own_put_with_a_lost_reply_is_a_success(s3_settings: StorageSettings) -> None:
    store = ArtifactStore(s3_settings)
    client = store.objects.client  # type: ignore[attr-defined]
    wire = Wire(s3_faults.lost_reply, times=1, only="manifest.json").hook(client, "PutObject")
    ref = store.build(recipe(), maker())
    assert len(wire.seen) == 2
    store.verify(ref)  # own files were not dropped


def test_f26_lost_reply_of_a_pointer_move(s3_settings: StorageSettings) -> None:
    store = ArtifactStore(s3_settings)
    one, two = (store.build(recipe(algorithm=number), maker()) for number in (1, 2))
    first = store.move_pointer("current", one, None)
    client = store.objects.client  # type: ignore[attr-defined]
    wire = Wire(s3_faults.lost_reply, times=1).hook(client, "PutObject")
    moved = store.move_pointer("current", two, first)
    assert store.pointer("current") == moved and len(wire.seen) == 2


def test_f26_another_writers_object_is_not_taken_for_ones_own(objects: S3Objects) -> None:
    objects.put_new(PATH, b"theirs")
    with pytest.raises(ConflictError):
        objects.put_new(PATH, b"ours")


def test_f26_own_files_stay_when_the_outcome_is_unknown(s3_settings: StorageSettings) -> None:
    """The manifest arrives and no reply ever does: deleting own files would ruin a committed artifact."""
    store = ArtifactStore(s3_settings)
    client = store.objects.client  # type: ignore[attr-defined]
    puts = Wire(s3_faults.lost_reply, times=1, only="manifest.json").hook(client, "PutObject")
    gone = answer(503, "SlowDown")
    Wire(lambda request: gone(request) if puts.seen else None).hook(client, "GetObject")
    with pytest.raises(StorageError, match="SlowDown"):
        store.build(recipe(), maker())
    store = ArtifactStore(s3_settings)
    ref = store.find(recipe())
    assert ref is not None
    store.verify(ref)


def test_f27_conflict_409_is_repeated(objects: S3Objects) -> None:
    wire = Wire(answer(409, "ConditionalRequestConflict"), times=2).hook(objects.client)
    objects.put_new(PATH, b"data")
    assert len(wire.seen) == 3


def test_f27_always_409_is_a_bounded_error(objects: S3Objects) -> None:
    wire = Wire(answer(409, "ConditionalRequestConflict")).hook(objects.client)
    with pytest.raises(StorageError, match="409"):
        objects.put_new(PATH, b"data")
    assert len(wire.seen) == objects.retries + 1


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_f32_bad_credentials(s3_settings: StorageSettings, monkeypatch: MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "wrong-3Zk9")
    store = ArtifactStore(s3_settings)
    wire = Wire().hook(store.objects.client)  # type: ignore[attr-defined]
    started = time.monotonic()
    with pytest.raises(CredentialsError, match="refused the credentials") as caught:
        store.check()
    assert len(wire.seen) == 1 and time.monotonic() - started < 10
    assert not caught.value.retryable
    shown = "".join(traceback.format_exception(caught.value))
    assert "wrong-3Zk9" not in shown and "mudg-test-secret" not in shown


def test_f32_no_credentials(s3_settings: StorageSettings, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(CredentialsError, match="no usable credentials"):
        ArtifactStore(s3_settings).find(recipe())


@pytest.mark.parametrize("call", [lambda store: store.check(), lambda store: store.build(recipe(), maker())])
def test_f33_missing_bucket(
    s3_settings: StorageSettings, seaweed: SeaweedServer, call: Callable[[ArtifactStore], Any]
) -> None:
    store = ArtifactStore(s3_settings.model_copy(update={"url": "s3://mudg-no-such-bucket/x"}))
    with pytest.raises(StorageError, match="bucket does not exist") as caught:
        call(store)
    assert "create the bucket" in caught.value.fix
    assert "mudg-no-such-bucket" not in seaweed.buckets()  # this server would create it on a put


def test_f36_clock_skew_is_said_to_be_one(objects: S3Objects) -> None:
    Wire(answer(403, "RequestTimeTooSkewed")).hook(objects.client)
    with pytest.raises(CredentialsError, match="clock"):
        objects.put_new(PATH, b"data")


def test_server_down(s3_settings: StorageSettings) -> None:
    settings = s3_settings.model_copy(update={"endpoint_url": "http://127.0.0.1:1"})
    with pytest.raises(StorageError, match="cannot be reached") as caught:
        ArtifactStore(settings).check()
    assert "storage.endpoint_url" in caught.value.fix


def test_server_without_conditional_delete(objects: S3Objects) -> None:
    """Compared by us, then deleted without the condition that the server does not know."""
    etag = objects.put_new(PATH, b"data")
    Wire(answer(501, "NotImplemented"), times=1).hook(objects.client, "DeleteObject")
    with pytest.raises(ConflictError):
        objects.delete(PATH, expected_etag='"other"')
    objects.delete(PATH, expected_etag=etag)
    assert not objects.exists(PATH)


def test_a_damaged_cache_is_fetched_again(s3_settings: StorageSettings) -> None:
    store = ArtifactStore(s3_settings)
    ref = store.build(recipe(), maker(b"hello"))
    store.file(ref, SHARD).write_bytes(b"jello")
    assert store.file(ref, SHARD).read_bytes() == b"hello"
    assert store.find(recipe()) == ref


def test_a_cached_copy_is_not_fetched_again(s3_settings: StorageSettings) -> None:
    store = ArtifactStore(s3_settings)
    ref = store.build(recipe(), maker())
    path = path_of(store, ref)
    store.files(ref)
    wire = Wire().hook(store.objects.client, "GetObject")  # type: ignore[attr-defined]
    store.file(ref, SHARD)
    assert not [url for url in wire.seen if path in url]


def test_damage_leaves_nothing_in_the_cache(s3_settings: StorageSettings) -> None:
    store = ArtifactStore(s3_settings)
    ref = store.build(recipe(), maker())
    wire = Wire(s3_faults.flipped, only="/attempts/")
    wire.hook(store.objects.client, "GetObject")  # type: ignore[attr-defined]
    with pytest.raises(ChecksumError):
        store.file(ref, SHARD)
    assert not [path for path in Path(s3_settings.cache_dir).rglob("*") if path.is_file()]


def big_file(folder: Path) -> Path:
    file = folder / "big.bin"
    file.write_bytes(b"".join(bytes([number]) * MIB for number in range(12)))
    return file
