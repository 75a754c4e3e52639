"""Keys and digests: the same whenever they should be, different whenever they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mudg_core.errors import ChecksumError, InputError
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest, Recipe, layout
from tests.core.storage.making import REPORT, maker, recipe

A, B = (ArtifactRef(stage="pair", key=digit * 64, digest=digit * 64) for digit in "ab")


def test_key_is_the_same_however_the_recipe_is_written() -> None:
    one = recipe(settings={"x": 1, "y": [1, 2]}, parents={"p": A, "q": [A, B]})
    two = recipe(parents={"q": (A, B), "p": A}, settings={"y": (1, 2), "x": 1})
    assert one.key == two.key
    assert Recipe.model_validate_json(one.model_dump_json()).key == one.key


def test_key_never_changes_between_releases() -> None:
    """If this fails, every store in the world is about to be rebuilt: raise SCHEMA_VERSION knowingly."""
    known = "3ba009334ec61f5f558a5844e94b188709dd5da9b6476ce5a9d2328dda67423e"
    assert recipe(parents={"p": A, "q": [B]}, weights={"index": "c" * 64}).key == known


@pytest.mark.parametrize(
    "change",
    [
        {"stage": "pair"},
        {"algorithm": 2},
        {"settings": {"rows": 4, "rate": 0.5}},
        {"settings": {"rows": 3, "rate": 0.5, "more": None}},
        {"weights": {"index": "c" * 64}},
        {"parents": {"p": A}},
        {"parents": {"p": B}},
        {"parents": {"q": A}},
        {"parents": {"p": [A]}},
        {"parents": {"p": [A, B]}},
        {"parents": {"p": [B, A]}},
    ],
    ids=str,
)
def test_f54_what_matters_changes_the_key(change: dict[str, Any]) -> None:
    others = {recipe().key, recipe(parents={"p": [A, B, A]}).key}
    assert recipe(**change).key not in others


def test_lists_of_parents_are_ordered() -> None:
    assert recipe(parents={"p": [A, B]}).key != recipe(parents={"p": [B, A]}).key


def test_a_parents_digest_enters_the_key_and_its_key_does_not() -> None:
    other_key = ArtifactRef(stage="pair", key="d" * 64, digest=A.digest)
    other_digest = ArtifactRef(stage="pair", key=A.key, digest="d" * 64)
    assert recipe(parents={"p": other_key}).key == recipe(parents={"p": A}).key
    assert recipe(parents={"p": other_digest}).key != recipe(parents={"p": A}).key


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, Path("/x"), b"x"], ids=repr)
def test_settings_that_are_not_json_are_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        recipe(settings={"x": value})


def test_f55_same_seed_same_digest_in_two_directories(tmp_path: Path) -> None:
    stores = [ArtifactStore(StorageSettings(url=f"file://{tmp_path}/{name}")) for name in "ab"]
    refs = [store.build(recipe(), maker()) for store in stores]
    attempts = {store.manifest(ref).circumstances.attempt for store, ref in zip(stores, refs, strict=True)}
    reports = {store.file(ref, REPORT).read_text() for store, ref in zip(stores, refs, strict=True)}
    assert refs[0] == refs[1]
    assert len(attempts) == 2 and len(reports) == 2  # so the volatile file did differ


def test_other_content_has_another_digest(tmp_path: Path) -> None:
    stores = [ArtifactStore(StorageSettings(url=f"file://{tmp_path}/{name}")) for name in "ab"]
    one, two = stores[0].build(recipe(), maker(b"one")), stores[1].build(recipe(), maker(b"two"))
    assert one.key == two.key and one.digest != two.digest


def test_manifest_survives_writing_and_reading(local_settings: StorageSettings) -> None:
    store = ArtifactStore(local_settings)
    manifest = store.manifest(store.build(recipe(parents={"p": A, "q": [A, B]}), maker()))
    again = Manifest.from_bytes(manifest.to_bytes(), "here")
    assert again == manifest and again.digest == manifest.digest
    assert manifest.circumstances.mudg_version and manifest.circumstances.created.endswith("+00:00")


@pytest.mark.parametrize("old, new", [(b'"rows": 3000', b'"rows": 3001'), (b'"rate": 0.5', b'"rate": 0.6')])
def test_f29_bit_flip_in_a_manifest(local_settings: StorageSettings, old: bytes, new: bytes) -> None:
    store = ArtifactStore(local_settings)
    data = store.manifest(store.build(recipe(), maker())).to_bytes()
    assert old in data
    with pytest.raises(ChecksumError):
        Manifest.from_bytes(data.replace(old, new), "here")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"{}", b'{"digest": "x"}', b"\xff\xfe"])
def test_garbage_is_no_manifest(data: bytes) -> None:
    with pytest.raises(ChecksumError, match="damaged"):
        Manifest.from_bytes(data, "here")


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/passwd", "a/../b", "a//b", "", ".", "..", "a/.hidden", "a\\b", "a\0", "ä", "x" * 300],
)
def test_f58_file_names_cannot_leave_the_artifact(name: str) -> None:
    with pytest.raises(InputError):
        layout.attempt_file("embed", "0" * 64, "a" * 32, name)


@pytest.mark.parametrize("name", ["../x", "a/b", "A", "", "a.b", "a b", "a\n"])
def test_f58_stages_and_pointers_have_plain_names(name: str) -> None:
    with pytest.raises(InputError):
        layout.pointer(name)
    with pytest.raises(InputError):
        layout.manifest(name, "0" * 64)


def test_references_are_short_to_read_and_cannot_be_forged() -> None:
    assert str(A) == f"pair/{'a' * 12}"
    with pytest.raises(InputError):
        ArtifactRef(stage="pair", key="../" * 10, digest="a" * 64)
