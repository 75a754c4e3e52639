"""What is stored goes wrong: it is noticed, set aside, and built again."""

from __future__ import annotations

import json

import pytest

from mudg_core.errors import ChecksumError, DataError, MissingArtifactError
from mudg_core.storage import ArtifactStore, layout
from mudg_core.storage.manifest import SCHEMA_VERSION, sealed
from tests.core.storage.making import SHARD, flip_bit, maker, overwrite, path_of, recipe, stored


def test_f29_bit_flip_in_stored_shard(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker(b"hello"))
    old = path_of(store, ref)
    flip_bit(store, old)
    with pytest.raises(ChecksumError, match=str(ref)) as caught:
        store.file(ref, SHARD)
    assert "run again" in caught.value.fix and old in caught.value.where
    assert store.find(recipe()) is None
    reason = next(path for path in stored(store, "quarantine/") if path.endswith("reason.json"))
    assert SHARD in json.loads((store.objects.read(reason) or (b"", ""))[0])["reason"]

    assert store.build(recipe(), maker(b"hello")) == ref  # same digest, so its children stay valid
    assert store.file(ref, SHARD).read_bytes() == b"hello"
    assert path_of(store, ref) != old


def test_f29_damage_after_a_first_good_read_is_found_by_verify(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker())
    store.verify(ref)
    flip_bit(store, path_of(store, ref))
    with pytest.raises(ChecksumError):
        store.verify(ref)
    assert store.find(recipe()) is None


def test_f29_truncated_file(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker())
    overwrite(store, path_of(store, ref), b"abc")
    with pytest.raises(ChecksumError):
        store.files(ref)


def test_f29_damaged_manifest_is_set_aside(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker())
    flip_bit(store, layout.manifest(ref.stage, ref.key))
    with pytest.raises(ChecksumError, match="manifest"):
        store.find(recipe())
    assert store.build(recipe(), maker()) == ref


def test_manifest_of_a_newer_release_is_refused_and_stays(store: ArtifactStore) -> None:
    """It is not damaged: whoever shares the store and has the newer release still needs it."""
    ref = store.build(recipe(), maker())
    path = layout.manifest(ref.stage, ref.key)
    body = json.loads((store.objects.read(path) or (b"", ""))[0])
    del body["checksum"]
    newer = sealed(
        json.dumps(body | {"schema_version": SCHEMA_VERSION + 1, "colour": "red"}, indent=1).encode()
    )
    overwrite(store, path, newer)
    with pytest.raises(DataError, match="newer") as caught:
        store.find(recipe())
    assert not isinstance(caught.value, ChecksumError) and "upgrade" in caught.value.fix
    assert (store.objects.read(path) or (b"", ""))[0] == newer


def test_f29_a_digit_that_is_none_in_a_manifest_is_damage_too(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker())
    path = layout.manifest(ref.stage, ref.key)
    overwrite(store, path, store.manifest(ref).to_bytes().replace(b'"sha256": "', b'"sha256": "q', 1))
    with pytest.raises(ChecksumError, match="manifest"):
        store.find(recipe())
    assert store.build(recipe(), maker()) == ref


def test_manifest_of_another_artifact_is_refused(store: ArtifactStore) -> None:
    one, two = (store.build(recipe(algorithm=number), maker()) for number in (1, 2))
    overwrite(store, layout.manifest(one.stage, one.key), store.manifest(two).to_bytes())
    with pytest.raises(ChecksumError, match="another"):
        store.find(recipe(algorithm=1))


def test_f30_missing_object_names_artifact_and_parents(store: ArtifactStore) -> None:
    parent = store.build(recipe("corpus"), maker())
    ref = store.build(recipe(parents={"corpus": parent}), maker())
    store.objects.delete(path_of(store, ref))
    with pytest.raises(MissingArtifactError) as caught:
        store.file(ref, SHARD)
    assert str(ref) in caught.value.what and str(parent) in caught.value.what
    assert SHARD in caught.value.where
    assert store.build(recipe(parents={"corpus": parent}), maker()) == ref
    store.verify(ref)


def test_quarantine_by_hand(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker())
    before = store.objects.read(layout.manifest(ref.stage, ref.key))
    store.quarantine(ref, "I do not like it")
    with pytest.raises(MissingArtifactError):
        store.manifest(ref)
    kept = next(path for path in stored(store, "quarantine/") if path.endswith("manifest.json"))
    assert before is not None and (store.objects.read(kept) or (b"", ""))[0] == before[0]


def test_a_late_reader_cannot_quarantine_the_rebuilt_artifact(store: ArtifactStore) -> None:
    ref = store.build(recipe(), maker())
    seen = store.manifest(ref)
    store.quarantine(ref, "first")
    store.build(recipe(), maker())
    store._quarantine(seen, "second, too late")
    assert store.find(recipe()) == ref


def test_delete_at_a_version_spares_any_other(store: ArtifactStore) -> None:
    from mudg_core.errors import ConflictError

    old = store.objects.put_new("pointers/x.json", b"old")
    new = store.objects.replace("pointers/x.json", b"new", old)
    with pytest.raises(ConflictError):
        store.objects.delete("pointers/x.json", expected_etag=old)
    assert store.objects.exists("pointers/x.json")
    store.objects.delete("pointers/x.json", expected_etag=new)
    assert not store.objects.exists("pointers/x.json")
    with pytest.raises(ConflictError):
        store.objects.replace("pointers/x.json", b"newer", new)
