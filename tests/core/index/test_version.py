"""Which index is the current one."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from mudg_core.errors import ConflictError, DataError, GateError, MissingArtifactError, StorageError
from mudg_core.index.recall import wilson
from mudg_core.index.version import (
    ATTEMPTS,
    CURRENT,
    current_version,
    gate,
    history,
    is_withdrawn,
    load_version,
    promote,
    promote_after,
    rollback,
)
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, layout
from tests.core.storage.making import maker, overwrite, recipe


def store_in(folder: Path) -> ArtifactStore:
    return ArtifactStore(StorageSettings(url=f"file://{folder}/store", cache_dir=str(folder / "cache")))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which the indexes of all tests are made already: each artifact costs a few syncs."""
    folder = tmp_path_factory.mktemp("made")
    indexes(store_in(folder), 5)
    return folder


@pytest.fixture
def store(made: Path, tmp_path: Path) -> ArtifactStore:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return store_in(tmp_path)


def built(folder: Path) -> Facts:
    (folder / "removed.npy").write_bytes(b"none")
    return Facts({"variant": "routed", "training_shards": 2})


def build_index(store: ArtifactStore, cells: int) -> tuple[ArtifactRef, tuple[ArtifactRef, ...]]:
    """Only its coarse level and its last part are its own."""

    def make(stage: str, content: bytes = b"x", **changes: Any) -> ArtifactRef:
        return store.build(recipe(stage, **changes), maker(content))

    shards = tuple(make("shard", b"s%d" % n, settings={"n": n}) for n in range(2))
    embeddings = tuple(make("embeddings", parents={"shard": shard}) for shard in shards)
    parts = make("index-part"), make("index-part", settings={"cells": cells})
    one = {"coarse": make("coarse", settings={"cells": cells})}
    one |= {"centroids": make("centroids"), "samples": make("samples")}
    neighbors = tuple(make("neighbors", parents={"embedding": ref}) for ref in embeddings)
    parents = one | {"parts": parts, "neighbors": neighbors, "embeddings": embeddings}
    return store.build(recipe("index", parents=parents), built), shards


def test_no_index_yet(store: ArtifactStore) -> None:
    with pytest.raises(MissingArtifactError, match="no index yet") as caught:
        current_version(store)
    assert "index build" in caught.value.fix


def test_a_version_knows_what_it_was_made_from(store: ArtifactStore) -> None:
    index, shards = build_index(store, 4)
    version = load_version(store, index)
    assert (version.index, version.variant, version.training) == (index, "routed", 2)
    assert version.shards == shards
    for role in ("coarse", "centroids", "samples"):
        assert getattr(version, role).stage == role
    stages = [[ref.stage for ref in refs] for refs in (version.parts, version.neighbors, version.embeddings)]
    assert stages == [["index-part"] * 2, ["neighbors"] * 2, ["embeddings"] * 2]
    assert [store.manifest(ref).recipe.parents["shard"] for ref in version.embeddings] == list(shards)


def test_promotion_moves_current_and_is_repeatable(store: ArtifactStore) -> None:
    one, two = build_index(store, 4)[0], build_index(store, 5)[0]
    promote(store, one)
    promote(store, one)
    assert current_version(store).index == one
    promote(store, two)
    assert current_version(store).index == two


def indexes(store: ArtifactStore, many: int) -> list[ArtifactRef]:
    return [build_index(store, cells)[0] for cells in range(2, 2 + many)]


def meddle(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, theirs: list[ArtifactRef]) -> list[str]:
    """Before each of our moves somebody else moves the pointer to the next of `theirs`."""
    real, tries = store.move_pointer, []

    def late(name: str, ref: ArtifactRef, expected: Any, **options: Any) -> Any:
        tries.append(str(ref))
        if theirs:
            real(name, theirs.pop(0), store.pointer(name))
        return real(name, ref, expected, **options)

    monkeypatch.setattr(store, "move_pointer", late)
    return tries


@pytest.mark.parametrize("missing", ["coarse", "centroids", "samples", "parts", "neighbors", "embeddings"])
def test_only_an_index_can_be_promoted(store: ArtifactStore, missing: str) -> None:
    parents = store.manifest(build_index(store, 4)[0]).recipe.parents
    del parents[missing]
    other = store.build(recipe("index", parents=parents), built)
    for asked in (promote, load_version):
        with pytest.raises(DataError, match="not an index") as caught:
            asked(store, other)
    assert "mudg index list" in caught.value.fix
    assert store.pointer(CURRENT) is None


def test_promotions_are_remembered_newest_first(store: ArtifactStore) -> None:
    assert history(store) == []
    one, two = indexes(store, 2)
    for index in (one, one, two, one):
        promote(store, index)
    found = history(store)
    assert [(p.ref, p.current) for p in found] == [(one, True), (two, False), (one, False)]
    assert all(p.when for p in found)


def test_promoting_an_earlier_version_withdraws_the_one_it_leaves(store: ArtifactStore) -> None:
    """As a rollback does, or a scheduled build would promote that again."""
    one, two, three = indexes(store, 3)
    for index in (one, two, three):
        promote(store, index)
    assert not any(p.withdrawn for p in history(store))
    promote(store, one)
    assert is_withdrawn(store, three) and not is_withdrawn(store, two) and not is_withdrawn(store, one)
    promote(store, three)  # whoever takes it back finds nothing wrong with the one before
    assert not is_withdrawn(store, three) and rollback(store) == one
    promote_after(store, two, store.pointer(CURRENT))
    assert not is_withdrawn(store, one), "a build goes by its settings, and finds no fault with what was"


def test_history_asks_no_listing(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = indexes(store, 2)
    monkeypatch.setattr(store.objects, "list", lambda prefix: pytest.fail("a listing was asked"))
    promote(store, one)
    promote(store, two)
    assert len(history(store)) == 2 and rollback(store) == one


def test_f37_a_lost_race_is_decided_again(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = indexes(store, 2)
    tries = meddle(store, monkeypatch, [theirs])
    promote(store, ours)
    assert len(tries) == 2
    assert [p.ref for p in history(store)] == [ours, theirs], "one is current, the other is not forgotten"
    store.verify(theirs)


def test_f37_somebody_else_promoting_the_same_is_fine(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ours,) = indexes(store, 1)
    meddle(store, monkeypatch, [ours])
    promote(store, ours)
    assert [p.ref for p in history(store)] == [ours]


def test_f37_promotion_gives_up_after_a_few_tries(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, one, two = indexes(store, 3)
    tries = meddle(store, monkeypatch, [one, two] * ATTEMPTS)
    with pytest.raises(ConflictError):
        promote(store, ours)
    assert len(tries) == ATTEMPTS
    assert current_version(store).index in (one, two)


def test_f37_a_build_that_has_seen_another_version_has_to_look_again(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows may have been removed meanwhile, which its own version still has."""
    ours, theirs, old = indexes(store, 3)
    promote_after(store, old, None)
    seen = store.pointer(CURRENT)
    promote(store, theirs)
    with pytest.raises(ConflictError):
        promote_after(store, ours, seen)
    assert current_version(store).index == theirs
    promote_after(store, ours, store.pointer(CURRENT))
    promote_after(store, ours, store.pointer(CURRENT))
    assert [p.ref for p in history(store)] == [ours, theirs, old]
    meddle(store, monkeypatch, [old])
    with pytest.raises(ConflictError):
        promote_after(store, theirs, store.pointer(CURRENT))


def test_f37_two_at_once_are_both_promoted_and_one_is_current(store: ArtifactStore) -> None:
    both, ready = indexes(store, 2), Barrier(2)

    def run(index: ArtifactRef) -> None:
        ready.wait()
        promote(store, index)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, both))
    found = history(store)
    assert {p.ref for p in found} == set(both) and [p.current for p in found] == [True, False]
    for index in both:
        load_version(store, index)


def test_rollbacks_go_back_one_version_each(store: ArtifactStore) -> None:
    one, two, three = indexes(store, 3)
    for index in (one, two, three):
        promote(store, index)
    assert rollback(store) == two == current_version(store).index
    assert rollback(store) == one == current_version(store).index
    with pytest.raises(MissingArtifactError, match="no version to go back to") as caught:
        rollback(store)
    assert "index promote" in caught.value.fix
    assert current_version(store).index == one, "a rollback that fails changes nothing"
    assert [(p.ref, p.withdrawn) for p in history(store)] == [
        (one, False),
        (two, True),
        (three, True),
        (two, False),
        (one, False),
    ]


def test_a_withdrawn_version_that_is_promoted_again_is_in_use_again(store: ArtifactStore) -> None:
    one, two, three = indexes(store, 3)
    promote(store, one)
    promote(store, two)
    rollback(store)
    promote(store, two)
    promote(store, three)
    assert rollback(store) == two


def test_rollback_skips_versions_that_are_damaged_or_gone(store: ArtifactStore) -> None:
    one, no_part, no_coarse, no_manifest, last = indexes(store, 5)
    for index in (one, no_part, no_coarse, no_manifest, last):
        promote(store, index)
    overwrite(store, layout.manifest(no_manifest.stage, no_manifest.key), b"{}")
    store.quarantine(load_version(store, no_coarse).coarse, "a test")
    store.quarantine(load_version(store, no_part).parts[1], "a test")
    assert rollback(store) == one


def test_rollback_without_an_earlier_version(store: ArtifactStore) -> None:
    with pytest.raises(MissingArtifactError, match="no index yet"):
        rollback(store)
    promote(store, indexes(store, 1)[0])
    with pytest.raises(MissingArtifactError, match="this is the first one"):
        rollback(store)


def test_rollback_leaves_a_version_alone_that_came_meanwhile(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, new = indexes(store, 3)
    promote(store, one)
    promote(store, two)
    meddle(store, monkeypatch, [new])
    with pytest.raises(ConflictError, match="another process"):
        rollback(store)
    assert current_version(store).index == new


def test_a_store_that_fails_is_not_a_version_that_is_gone(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = indexes(store, 3)
    for index in (one, two, three):
        promote(store, index)
    real = store.manifest

    def fails(ref: ArtifactRef) -> Any:
        if ref == two:
            raise StorageError(what="time-out")
        return real(ref)

    monkeypatch.setattr(store, "manifest", fails)
    with pytest.raises(StorageError, match="time-out"):
        rollback(store)
    assert history(store)[0].ref == three


def test_a_damaged_pointer_is_never_overwritten(store: ArtifactStore) -> None:
    one, two = indexes(store, 2)
    promote(store, one)
    path = layout.pointer(CURRENT)
    overwrite(store, path, b'{"ref": 3}')
    for asked in (current_version, history, rollback, lambda store: promote(store, two)):
        with pytest.raises(DataError, match="damaged"):
            asked(store)
    found = store.objects.read(path)
    assert found is not None and found[0] == b'{"ref": 3}'


def test_the_gate_lets_pass_what_was_required() -> None:
    gate(wilson(0.9, 100), 0.9)
    gate(wilson(0.95, 100), 0.9)


def test_the_gate_says_what_was_measured_and_what_to_do(store: ArtifactStore) -> None:
    (index,) = indexes(store, 1)
    with pytest.raises(GateError) as caught:
        gate(wilson(0.5, 1000), 0.9, measure="R@10", cost="16 probes: 2.5 % of the gallery", index=index)
    error = caught.value
    for words in ("R@10", "50.0 %", "46.9 to 53.1", "90.0 %", "16 probes", "old version stays current"):
        assert words in error.what
    assert "held-out" not in error.what, "far off: more queries would not help"
    assert f"mudg index promote {index} --force" in error.fix and "index.probes" in error.fix
    assert error.exit_code == 3 and not error.retryable


def test_the_gate_says_when_more_queries_could_decide_otherwise() -> None:
    with pytest.raises(GateError, match="more held-out queries"):
        gate(wilson(0.89, 100), 0.9)
    with pytest.raises(GateError, match="promote REF"):
        gate(wilson(0.89, 100), 0.9)
