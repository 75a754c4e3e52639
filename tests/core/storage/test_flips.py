"""A flipped bit anywhere in a manifest is noticed, and costs one rebuild."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest

from mudg_core.errors import ChecksumError, DataError
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest, Recipe, layout
from mudg_core.storage.gc.survey import survey
from mudg_core.storage.manifest import SCHEMA_VERSION, sealed
from tests.core.storage.making import SHARD, maker, overwrite, recipe, stored

CONTENT = b"abc"
OLD_DIGEST = "d4a0223bffd0bda5d2476ddbec41246e2fa96510f550bda1a04153a1b0a5aa86"
OLD = (  # as the releases wrote them that knew no checksum
    b'{\n "circumstances": {\n  "attempt": "0123456789abcdef0123456789abcdef",\n  "code_version": "",\n'
    b'  "created": "2026-01-02T03:04:05.678+00:00",\n  "mudg_version": "0.1.0",\n  "platform": "",\n'
    b'  "seconds": 1.5\n },\n "digest": "' + OLD_DIGEST.encode() + b'",\n'
    b' "facts": {\n  "rows": 3\n },\n "files": [\n  {\n   "name": "a.bin",\n   "sha256": '
    b'"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",\n   "size": 3,\n'
    b'   "volatile": false\n  }\n ],\n'
    b' "key": "54491dabbf1bb44a249f76f92b9f493b3589c94938c281f2781309f64210ee62",\n "recipe": {\n'
    b'  "algorithm": 1,\n  "parents": {},\n  "settings": {\n   "rate": 0.5,\n   "rows": 3\n  },\n'
    b'  "stage": "embed",\n  "weights": {}\n },\n "schema_version": 1\n}'
)


def flips(data: bytes, bits: range = range(8)) -> Iterator[bytes]:
    for place in range(len(data)):
        for bit in bits:
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            yield bytes(flipped)


def built(store: ArtifactStore) -> tuple[ArtifactRef, str, bytes]:
    """An artifact with a parent, a volatile file and facts, and its manifest as it is stored."""
    parent = store.build(recipe("corpus"), maker(CONTENT))
    ref = store.build(recipe(parents={"corpus": parent}), maker(CONTENT))
    path = layout.manifest(ref.stage, ref.key)
    return ref, path, (store.objects.read(path) or (b"", ""))[0]


def test_f84_every_bit_of_a_manifest_counts(local_settings: StorageSettings) -> None:
    """All of them, that of the version among them: no flip makes a manifest look like one of another form."""
    _, _, data = built(ArtifactStore(local_settings))
    assert Manifest.from_bytes(data, "here").to_bytes() == data
    passed = []
    for number, flipped in enumerate(flips(data)):
        try:
            Manifest.from_bytes(flipped, "here")
        except ChecksumError:
            continue
        except DataError:
            pass  # "of a newer release" is not set aside
        passed.append((number // 8, number % 8))
    assert not passed


def test_f84_a_flip_of_any_byte_is_found_set_aside_and_rebuilt(local_settings: StorageSettings) -> None:
    """By `verify`, and by the run that looks for the artifact. Another bit of each byte than of the last."""
    store = ArtifactStore(local_settings)
    ref, path, data = built(store)
    wanted = child_recipe(store)
    for place in range(len(data)):
        flipped = list(flips(data[place : place + 1]))[place % 8]
        overwrite(store, path, data[:place] + flipped + data[place + 1 :])
        with pytest.raises(ChecksumError, match="manifest is damaged"):
            store.verify(ref) if place % 2 else store.find(wanted)
        assert not store.objects.exists(path), place
        store.objects.put_new(path, data)
    assert len([name for name in stored(store, "quarantine/") if name.endswith("manifest.json")]) == len(data)


def child_recipe(store: ArtifactStore) -> Recipe:
    parent = store.build(recipe("corpus"), maker(CONTENT))
    return recipe(parents={"corpus": parent})


@pytest.mark.parametrize("form", [1, SCHEMA_VERSION])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"attempt": "', b'"attempt": "\x1b'),
        (b'"attempt": "', b'"attempt": "../'),
        (b'"attempt": "', b'"attempt": "q'),
        (b'"created": "2', b'"created": "r'),
        (b'+00:00"', b'"'),
        (b'"seconds": ', b'"seconds": -1'),
        (b'"seconds": ', b'"seconds": 1e999'),
        (b'"mudg_version": "', b'"mudg_version": "\\u001b[2J'),
        (b'"volatile": false', b'"volatile": 0'),
        (b'"schema_version": ', b'"schema_version": 0.'),
        (b'"schema_version": ', b'"schema_version": -'),
        (b'"circumstances"', b'"circumstancez"'),
        (b'"digest"', b'"Digest"'),
    ],
    ids=repr,
)
def test_f84_a_damaged_field_is_rebuilt_by_a_rerun(
    form: int, old: bytes, new: bytes, local_settings: StorageSettings
) -> None:
    """Whatever field it is, and where no checksum tells: each is validated for itself. A bad attempt once
    made an artifact unreadable that nothing set aside."""
    store = ArtifactStore(local_settings)
    ref, path, data = built(store)
    manifest = Manifest.from_bytes(data, "here").model_copy(update={"schema_version": form})
    plain = manifest.model_copy(update={"schema_version": 1}).to_bytes()
    plain = plain.replace(b'"schema_version": 1', f'"schema_version": {form}'.encode())
    assert manifest.to_bytes() == (plain if form == 1 else sealed(plain)) and plain.count(old) > 0
    damaged = plain.replace(old, new, 1)
    overwrite(store, path, damaged if form == 1 else sealed(damaged))  # so that only the field can tell
    with pytest.raises(ChecksumError, match="manifest is damaged"):
        store.verify(ref)
    assert any(name.endswith("reason.json") for name in stored(store, "quarantine/"))
    assert store.build(child_recipe(store), maker(CONTENT)) == ref
    store.verify(ref)


@pytest.mark.parametrize("bit", range(8))
def test_f84_a_flip_in_the_attempt_does_not_wedge_an_artifact(bit: int, store: ArtifactStore) -> None:
    ref, path, data = built(store)
    at = data.index(b'"attempt": "') + len(b'"attempt": "')
    overwrite(store, path, data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
    with pytest.raises(ChecksumError, match="run again"):
        store.build(child_recipe(store), maker(CONTENT))
    assert store.build(child_recipe(store), maker(CONTENT)) == ref
    assert store.file(ref, SHARD).read_bytes() == CONTENT


def test_f84_garbage_collection_sees_a_flipped_date(local_settings: StorageSettings) -> None:
    """It would otherwise take a new artifact for one that is old enough to go."""
    store = ArtifactStore(local_settings)
    ref, path, data = built(store)
    overwrite(store, path, data.replace(b'"created": "20', b'"created": "10'))
    assert f"{ref.stage}/{ref.key}" in survey(store.objects).damaged


def test_f84_old_manifests_are_read_and_can_be_set_aside(store: ArtifactStore) -> None:
    manifest = Manifest.from_bytes(OLD, "here")
    assert manifest.digest == OLD_DIGEST and manifest.to_bytes() == OLD
    store.objects.put_new(layout.manifest("embed", manifest.key), OLD)
    store.objects.put_new(manifest.path("a.bin"), CONTENT)
    assert store.find(recipe()) == manifest.ref
    store.verify(manifest.ref)
    overwrite(store, manifest.path("a.bin"), b"abd")
    with pytest.raises(ChecksumError):
        store.verify(manifest.ref)
    assert store.find(recipe()) is None


def test_f84_a_new_form_leaves_digests_as_they_were() -> None:
    old = Manifest.from_bytes(OLD, "here")
    new = old.model_copy(update={"schema_version": SCHEMA_VERSION})
    assert new.digest == old.digest == OLD_DIGEST
    assert json.loads(new.to_bytes())["checksum"] and b"checksum" not in OLD


def test_f84_two_files_of_one_name_are_no_manifest(local_settings: StorageSettings) -> None:
    _, _, data = built(ArtifactStore(local_settings))
    manifest = Manifest.from_bytes(data, "here")
    twice = manifest.model_copy(update={"files": manifest.files * 2})
    with pytest.raises(ChecksumError):
        Manifest.from_bytes(twice.to_bytes(), "here")


def test_f84_no_flip_passes_for_another_form(local_settings: StorageSettings) -> None:
    """Not one of an old manifest for one of a newer release, which nothing would set aside; and a new one
    without its checksum is no old one."""
    for flipped in flips(OLD):
        with suppress(ChecksumError):
            Manifest.from_bytes(flipped, "here")
    _, _, data = built(ArtifactStore(local_settings))
    lines = data.splitlines(keepends=True)
    assert b"checksum" in lines[1]
    with pytest.raises(ChecksumError):
        Manifest.from_bytes(b"".join(lines[:1] + lines[2:]), "here")
