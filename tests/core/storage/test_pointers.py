"""Pointers remember where they pointed, in the same write that moves them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mudg_core.errors import ConflictError, DataError
from mudg_core.storage import ArtifactRef, ArtifactStore, layout
from mudg_core.storage.pointers import MAX_HISTORY
from tests.core.storage.making import maker, overwrite, recipe

PATH = layout.pointer("current")


def artifacts(store: ArtifactStore, many: int) -> list[ArtifactRef]:
    return [store.build(recipe(algorithm=number), maker()) for number in range(1, many + 1)]


def document(store: ArtifactStore) -> dict[str, Any]:
    found = store.objects.read(PATH)
    assert found is not None
    body: dict[str, Any] = json.loads(found[0])
    return body


def test_a_move_records_what_it_left(store: ArtifactStore) -> None:
    one, two, three = artifacts(store, 3)
    first = store.move_pointer("current", one, None)
    assert first.history == ()
    second = store.move_pointer("current", two, first, withdraw=True)
    third = store.move_pointer("current", three, second)
    assert store.pointer("current") == third, "what the mover gets is what a reader gets"
    assert [(past.ref, past.withdrawn) for past in third.history] == [(one, True), (two, False)]
    assert [past.moved for past in third.history] == [first.moved, second.moved]
    assert first.moved


def test_a_move_that_lost_records_nothing(store: ArtifactStore) -> None:
    one, two, three = artifacts(store, 3)
    first = store.move_pointer("current", one, None)
    second = store.move_pointer("current", two, first)
    with pytest.raises(ConflictError):
        store.move_pointer("current", three, first, withdraw=True)
    assert store.pointer("current") == second


def test_history_is_bounded_and_keeps_the_newest(store: ArtifactStore) -> None:
    refs = artifacts(store, 2)
    pointer = None
    last = MAX_HISTORY + 4
    for turn in range(last + 1):
        pointer = store.move_pointer("current", refs[turn % 2], pointer, withdraw=turn == last)
    assert pointer is not None and len(pointer.history) == MAX_HISTORY == 50
    assert pointer.history[-1].withdrawn and pointer.history[-1].ref == refs[(last - 1) % 2]
    assert len(document(store)["history"]) == MAX_HISTORY


def test_a_pointer_from_before_there_was_a_history(store: ArtifactStore) -> None:
    one, two = artifacts(store, 2)
    store.move_pointer("current", one, None)
    old = document(store)
    del old["history"]
    overwrite(store, PATH, json.dumps(old).encode())
    seen = store.pointer("current")
    assert seen is not None and (seen.ref, seen.moved, seen.history) == (one, old["moved"], ())
    assert [past.ref for past in store.move_pointer("current", two, seen).history] == [one]


@pytest.mark.parametrize(
    "change",
    [
        {"ref": None},
        {"ref": {"stage": "index", "key": "q" * 64, "digest": "0" * 64}},
        {"moved": 3},
        {"history": "long"},
        {"history": [{"ref": {"stage": "../x", "key": "0" * 64, "digest": "0" * 64}}]},
        {"history": [{}]},
    ],
)
def test_damage_is_named_and_says_what_to_do(store: ArtifactStore, change: dict[str, Any]) -> None:
    store.move_pointer("current", artifacts(store, 1)[0], None)
    overwrite(store, PATH, json.dumps(document(store) | change).encode())
    with pytest.raises(DataError, match="damaged") as caught:
        store.pointer("current")
    assert PATH in caught.value.where and "promote" in caught.value.fix


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_garbage_is_no_pointer(store: ArtifactStore, data: bytes) -> None:
    store.move_pointer("current", artifacts(store, 1)[0], None)
    overwrite(store, PATH, data)
    with pytest.raises(DataError, match="damaged"):
        store.pointer("current")
