"""Checkpoints of a long stage: kept, found again, and never trusted unless sound."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mudg_core.errors import ConflictError, DataError, InputError, StorageError
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore, Checkpoints, Facts, layout
from mudg_core.storage.checkpoints import decode, encode
from tests.core.storage.counting import FATAL, STEPS, counter
from tests.core.storage.making import flip_bit, forbidden, maker, overwrite, recipe, stored

ROOT = Path(__file__).parents[3]
KEY = "ab" * 32


@pytest.fixture
def kept(store: ArtifactStore) -> Checkpoints:
    return Checkpoints(store.objects, "train", KEY)


def again(store: ArtifactStore) -> Checkpoints:
    """As another process would have it: it remembers nothing."""
    return Checkpoints(store.objects, "train", KEY)


def arrays(step: int) -> dict[str, NDArray[Any]]:
    return {"centroids": np.full((7, 5), step, np.float32)}


def save(checkpoints: Checkpoints, *steps: int) -> None:
    for step in steps:
        checkpoints.save(step, arrays(step), {"loss": step / 4})


def step_of(checkpoints: Checkpoints) -> int | None:
    found = checkpoints.latest()
    if found is None:
        return None
    np.testing.assert_array_equal(found.arrays["centroids"], arrays(found.step)["centroids"])
    assert found.facts == {"loss": found.step / 4}
    return found.step


def content(store: ArtifactStore, path: str) -> bytes:
    found = store.objects.read(path)
    assert found is not None
    return found[0]


def slot_of(store: ArtifactStore, checkpoints: Checkpoints, step: int) -> str:
    """The path of the slot that holds a step."""
    held = f'\\"step\\":{step}}}'.encode()
    (path,) = [path for path in checkpoints.paths if held in content(store, path)]
    return path


# -- what goes in comes out ---------------------------------------------------------------------------------


def test_nothing_was_kept(kept: Checkpoints) -> None:
    assert kept.latest() is None


def test_round_trip(store: ArtifactStore, kept: Checkpoints) -> None:
    given: dict[str, NDArray[Any]] = {
        "visual/blocks.0.attn.in_proj_weight": np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4),
        "half": np.array([1.5, np.nan, -np.inf], np.float16),
        "double": np.array(np.pi),
        "ids": np.array([[-(2**63), 2**63 - 1]]),
        "bytes": np.arange(256, dtype=np.uint8),
        "mask": np.array([True, False]),
        "phase": np.array([1 + 2j], np.complex64),
        "none": np.zeros((0, 3), np.float32),
    }
    facts = {"seed": 2**127 + 1, "loss": 0.1, "done": ["a", None, True], "deep": {"ü": [1, 2.5]}}
    kept.save(12, given, facts)
    found = again(store).latest()
    assert found is not None and found.step == 12 and found.facts == facts
    assert found.arrays.keys() == given.keys()
    for name, array in given.items():
        came = found.arrays[name]
        assert (came.dtype, came.shape) == (array.dtype, array.shape), name
        np.testing.assert_array_equal(came, array)
        assert came.flags.writeable  # whoever resumes goes on in place


def test_numbers_stay_the_same_however_they_lie_in_memory(store: ArtifactStore, kept: Checkpoints) -> None:
    plain = np.arange(12, dtype=np.float32).reshape(3, 4)
    kept.save(1, {"turned": plain.T, "every": plain[:, ::2], "swapped": plain.astype(">f4")}, {})
    found = again(store).latest()
    assert found is not None
    np.testing.assert_array_equal(found.arrays["turned"], plain.T)
    np.testing.assert_array_equal(found.arrays["every"], plain[:, ::2])
    np.testing.assert_array_equal(found.arrays["swapped"], plain)


def test_same_checkpoint_same_bytes() -> None:
    one, two = np.ones(3), np.zeros(2, np.int8)
    first = encode("train", KEY, 3, {"a": one, "b": two}, {"x": 1, "y": 2})
    second = encode("train", KEY, 3, {"b": two, "a": one}, {"y": 2, "x": 1})
    assert first == second
    assert b"pickle" not in first and first[8:9] == b"{"


def test_keys_that_are_not_text_do_not_spoil_a_checkpoint(store: ArtifactStore, kept: Checkpoints) -> None:
    kept.save(1, {}, {"counts": {10: 1, 9: 2}})  # type: ignore[dict-item]
    found = again(store).latest()
    assert found is not None and found.facts == {"counts": {"10": 1, "9": 2}}


# -- which one is found -------------------------------------------------------------------------------------


def test_two_slots_take_turns_and_the_latest_wins(store: ArtifactStore, kept: Checkpoints) -> None:
    for step in (1, 2, 3, 10):
        save(kept, step)
        assert step_of(again(store)) == step
    assert sorted(stored(store, "checkpoints/")) == [f"checkpoints/train/{KEY}/{slot}" for slot in (0, 1)]
    assert slot_of(store, kept, 3) != slot_of(store, kept, 10)


def test_resume_then_go_on(store: ArtifactStore, kept: Checkpoints) -> None:
    save(kept, 1, 2)
    resumed = again(store)
    assert step_of(resumed) == 2
    save(resumed, 3)
    assert step_of(again(store)) == 3
    assert b'\\"step\\":2' in content(store, kept.paths[1])  # 3 took the place of 1, not of 2


def test_a_straggler_does_not_undo_what_others_have_kept(store: ArtifactStore, kept: Checkpoints) -> None:
    """Fault 9: stopped after step 2, woken up when another process has come to step 6."""
    save(kept, 1, 2)
    save(again(store), 3, 4, 5, 6)
    before = [content(store, path) for path in kept.paths]
    for straggler, step in [(kept, 3), (kept, 4), (kept, 6), (again(store), 3)]:
        save(straggler, step)
        assert [content(store, path) for path in kept.paths] == before
    save(kept, 7)
    assert step_of(again(store)) == 7


def test_slots_are_read_once_not_for_every_save(kept: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    save(kept, 1)
    replace = kept.objects.replace
    monkeypatch.setattr(kept, "_read", lambda path: pytest.fail("read again"))
    written = []
    monkeypatch.setattr(kept.objects, "replace", lambda *given: written.append(given[0]) or replace(*given))
    save(kept, 2, 3, 4)
    assert written == [kept.paths[1], kept.paths[0], kept.paths[1]]


def test_f31_no_decision_rests_on_a_listing(kept: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept.objects, "list", lambda prefix: pytest.fail("listed"))
    save(kept, 1, 2, 3)
    assert step_of(kept) == 3
    kept.clear()
    assert kept.latest() is None


# -- damage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 5, 100, -200, -1])
def test_f78_truncated_newest_checkpoint(store: ArtifactStore, kept: Checkpoints, length: int) -> None:
    save(kept, 1, 2, 3)
    newest = slot_of(store, kept, 3)
    overwrite(store, newest, content(store, newest)[:length])
    resumed = again(store)
    assert step_of(resumed) == 2
    save(resumed, 3)
    assert step_of(again(store)) == 3
    assert slot_of(store, kept, 3) == newest  # the damaged one was overwritten, the good one was not
    save(resumed, 4)
    assert step_of(again(store)) == 4


def test_f78_without_asking_for_the_latest_first(store: ArtifactStore, kept: Checkpoints) -> None:
    save(kept, 1, 2)
    flip_bit(store, slot_of(store, kept, 2))
    save(again(store), 2)
    assert step_of(again(store)) == 2
    flip_bit(store, slot_of(store, kept, 2))
    assert step_of(again(store)) == 1


def test_any_flipped_bit_that_matters_is_noticed() -> None:
    """Bytes that mean nothing (blanks that pad the header) may flip unseen; what comes out is the same."""
    data = encode("train", KEY, 3, arrays(3), {"loss": 0.75})
    noticed = 0
    for place in range(len(data)):
        for bit in (1, 16):
            wrong = bytearray(data)
            wrong[place] ^= bit
            try:
                found = decode(bytes(wrong), "train", KEY)
            except DataError:
                noticed += 1
                continue
            assert (found.step, found.facts, found.arrays.keys()) == (3, {"loss": 0.75}, arrays(3).keys())
            np.testing.assert_array_equal(found.arrays["centroids"], arrays(3)["centroids"])
    assert noticed > 2 * len(data) - 32


def test_f78_bit_flip_names_the_slot(
    store: ArtifactStore, kept: Checkpoints, caplog: pytest.LogCaptureFixture
) -> None:
    save(kept, 1, 2)
    newest = slot_of(store, kept, 2)
    flip_bit(store, newest)
    assert step_of(again(store)) == 1
    assert f"{store.url}/{newest}" in caplog.text


def test_both_damaged_is_a_fresh_start(store: ArtifactStore, kept: Checkpoints) -> None:
    save(kept, 1, 2)
    flip_bit(store, kept.paths[0])
    overwrite(store, kept.paths[1], b"")
    resumed = again(store)
    assert resumed.latest() is None
    save(resumed, 1, 2)
    assert step_of(again(store)) == 2
    overwrite(store, slot_of(store, kept, 2), b"")
    assert step_of(again(store)) == 1  # both were overwritten


def test_a_checkpoint_of_another_artifact_is_not_taken(store: ArtifactStore, kept: Checkpoints) -> None:
    other = Checkpoints(store.objects, "train", "cd" * 32)
    save(other, 9)
    save(kept, 1, 2)
    assert step_of(kept) == 2 and step_of(other) == 9  # they do not mix
    overwrite(store, slot_of(store, kept, 2), content(store, other.paths[0]))
    assert step_of(again(store)) == 1


def test_a_store_that_cannot_be_read_is_not_an_empty_one(
    kept: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a network that is down for a moment would cost days of work."""

    def read(path: str) -> None:
        raise StorageError(what="gone", where=path)

    monkeypatch.setattr(kept.objects, "read", read)
    with pytest.raises(StorageError, match="gone"):
        kept.latest()
    with pytest.raises(StorageError, match="gone"):
        save(kept, 1)


# -- two at once --------------------------------------------------------------------------------------------


def test_f07_eight_at_once_leave_sound_slots(store: ArtifactStore) -> None:
    together = threading.Barrier(8, timeout=30)

    def run(_: int) -> None:
        mine = again(store)
        for step in range(1, 5):
            together.wait()
            save(mine, step)
            assert (step_of(again(store)) or 0) >= step - 1  # never less than what was there before

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))
    sound = [decode(content(store, path), "train", KEY).step for path in again(store).paths]
    assert max(sound) == 4 and min(sound) >= 1


def test_a_lost_race_is_no_error_and_the_next_save_counts(store: ArtifactStore, kept: Checkpoints) -> None:
    save(kept, 1, 2)
    other = again(store)
    save(other, 3)
    with pytest.raises(ConflictError):  # the race there is: `kept` still thinks that slot 0 holds step 1
        assert kept._seen is not None
        older = min(kept._seen, key=lambda slot: slot.step)
        store.objects.replace(older.path, b"torn", older.etag)
    save(kept, 3)
    assert step_of(again(store)) == 3
    save(kept, 4)
    assert step_of(again(store)) == 4


def test_cleared_by_another_while_going_on(store: ArtifactStore, kept: Checkpoints) -> None:
    save(kept, 1, 2)
    again(store).clear()
    save(kept, 3)  # lost, as it would have replaced what is gone
    save(kept, 4)
    assert step_of(again(store)) == 4


# -- the end ------------------------------------------------------------------------------------------------


def test_clear(store: ArtifactStore, kept: Checkpoints) -> None:
    save(kept, 1, 2, 3)
    kept.clear()
    kept.clear()
    assert stored(store, "checkpoints/") == []
    save(kept, 1)  # from the beginning again, although 3 was there
    assert step_of(again(store)) == 1
    kept.clear()
    assert kept.latest() is None


@pytest.mark.parametrize("when", ["between", "within"])
def test_f13_killed_process_is_resumed_with_the_same_result(settings: StorageSettings, when: str) -> None:
    command = [sys.executable, "-m", "tests.core.storage.counting", settings.model_dump_json(), when]
    dead = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert dead.returncode == -signal.SIGKILL, dead.stderr.decode()
    store, done = ArtifactStore(settings), list[int]()
    ref = store.build(recipe(), counter(store.checkpoints(recipe()), done))
    first = FATAL + 1 if when == "between" else FATAL
    assert done == list(range(first, STEPS + 1))
    assert stored(store, "checkpoints/") == []

    at_once = recipe(algorithm=2)
    whole = store.build(at_once, counter(store.checkpoints(at_once), []))
    assert store.file(ref, "state.bin").read_bytes() == store.file(whole, "state.bin").read_bytes()


def test_cleared_after_commit_and_not_before(store: ArtifactStore) -> None:
    checkpoints, other = store.checkpoints(recipe()), store.checkpoints(recipe(algorithm=2))
    save(other, 1)

    def failing(folder: Path) -> Facts:
        save(checkpoints, 1, 2)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.build(recipe(), failing)
    assert step_of(store.checkpoints(recipe())) == 2
    store.build(recipe(), maker())
    assert store.checkpoints(recipe()).latest() is None
    assert step_of(store.checkpoints(recipe(algorithm=2))) == 1


def test_cleared_after_adoption(store: ArtifactStore) -> None:
    """Of what was found there, and of what somebody else committed meanwhile."""
    ref = store.build(recipe(), maker())
    save(store.checkpoints(recipe()), 1)
    assert store.build(recipe(), forbidden) == ref
    assert stored(store, "checkpoints/") == []
    twice = recipe(algorithm=2)

    def slower(folder: Path) -> Facts:
        store.build(twice, maker())
        save(store.checkpoints(twice), 1)
        return maker()(folder)

    store.build(twice, slower)
    assert stored(store, "checkpoints/") == []


def test_an_artifact_is_not_lost_over_clearing(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def delete(path: str, expected_etag: str | None = None) -> None:
        tried.append(path)
        raise StorageError(what="gone", where=path)

    monkeypatch.setattr(store.objects, "delete", delete)
    store.verify(store.build(recipe(), maker()))
    assert tried[0].startswith("checkpoints/")


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facts", [{"loss": float("nan")}, {"a": [float("inf")]}, {"a": np.ones(2)}, {"a": b"x"}]
)
def test_facts_that_are_not_json_are_refused(
    store: ArtifactStore, kept: Checkpoints, facts: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match="facts") as caught:
        kept.save(1, arrays(1), facts)
    assert "finite" in caught.value.fix and "step 1" in caught.value.where
    assert stored(store, "checkpoints/") == []


@pytest.mark.parametrize("step", [-1, 1.5, True, "3"])
def test_steps_that_are_not_whole_numbers_are_refused(kept: Checkpoints, step: Any) -> None:
    with pytest.raises(DataError, match="step"):
        kept.save(step, {}, {})


@pytest.mark.parametrize("dtype", ["O", "U3", "M8[s]", "c16", "g", "V3"])
def test_f72_arrays_that_would_need_pickle_or_lose_precision_are_refused(
    store: ArtifactStore, kept: Checkpoints, dtype: str
) -> None:
    with pytest.raises(DataError, match="'x' of type"):
        kept.save(1, {"x": np.zeros(2, dtype)}, {})
    assert stored(store, "checkpoints/") == []


@pytest.mark.parametrize("name", ["", "__metadata__", "a b", "ä", "x" * 201, "a\n"])
def test_names_of_arrays_are_validated(kept: Checkpoints, name: str) -> None:
    with pytest.raises(InputError, match="array name"):
        kept.save(1, {name: np.zeros(2)}, {})


@pytest.mark.parametrize(
    ("stage", "key"),
    [("../x", KEY), ("", KEY), ("Train", KEY), ("train", "../x"), ("train", KEY[:-1]), ("train", "")],
)
def test_f58_names_of_checkpoints_are_validated(store: ArtifactStore, stage: str, key: str) -> None:
    with pytest.raises(InputError, match="not allowed"):
        Checkpoints(store.objects, stage, key)


def test_there_are_two_slots() -> None:
    with pytest.raises(InputError, match="slot 2"):
        layout.checkpoint("train", KEY, 2)


def test_what_no_store_takes_at_once_is_refused(kept: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mudg_core.storage.checkpoints.LIMIT_BYTES", 140)
    save(kept, 1)
    monkeypatch.setattr("mudg_core.storage.checkpoints.LIMIT_BYTES", 139)
    with pytest.raises(DataError, match="140 bytes"):
        save(kept, 2)
