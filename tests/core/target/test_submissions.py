"""Submissions: one run has each, whoever else asks, and nobody loses one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from mudg_core.errors import ConflictError, DataError, InputError, MissingArtifactError
from mudg_core.storage import ArtifactStore, layout
from mudg_core.target.spec import parse_target
from mudg_core.target.submissions import Submission, Submissions
from tests.core.storage.making import overwrite

SPEC = b"name: zoo\nclasses: [cat, 'no', '1999']\nsynonyms: {cat: [kitten]}\nper_class: 3\n"
TARGET = parse_target(SPEC)


@pytest.fixture
def desk(store: ArtifactStore) -> Submissions:
    return Submissions(store.objects)


def test_what_was_stored_is_read_again_and_the_same_spec_may_be_asked_for_twice(desk: Submissions) -> None:
    first, second = (desk.add(TARGET, SPEC, "command") for _ in range(2))
    assert first.id != second.id and first.digest == second.digest
    assert desk.read("zoo", first.id) == first and desk.read("zoo", first.id).target == TARGET
    assert first.waiting and first.announced is None and first.outcome is None


def test_an_id_of_ones_own_is_taken_once(desk: Submissions) -> None:
    desk.add(TARGET, SPEC, "inbox/a.yaml", "ab" * 16)
    with pytest.raises(ConflictError):
        desk.add(TARGET, SPEC, "inbox/a.yaml", "ab" * 16)


def test_one_of_eight_runs_gets_it_and_the_same_run_may_claim_again(desk: Submissions) -> None:
    token = desk.add(TARGET, SPEC, "command").id
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda run: desk.claim("zoo", token, f"run-{run}").run, range(8)))
    winner = desk.read("zoo", token).run
    assert set(seen) == {winner}
    assert desk.claim("zoo", token, winner).run == winner
    assert desk.claim("zoo", token, "another").run == winner


def test_one_of_eight_runs_takes_over_from_the_dead_one(desk: Submissions) -> None:
    token = desk.add(TARGET, SPEC, "command").id
    left = desk.claim("zoo", token, "dead")
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda run: desk.take_over(left, f"run-{run}").run, range(8)))
    assert set(seen) == {desk.read("zoo", token).run} and "dead" not in seen


def test_what_is_finished_or_cancelled_is_not_taken_over(desk: Submissions) -> None:
    for end in (lambda one: desk.finish(one, {}), lambda one: desk.cancel("zoo", one.id)):
        left = desk.claim("zoo", desk.add(TARGET, SPEC, "command").id, "dead")
        end(left)
        assert desk.take_over(left, "mine").run == "dead"


def test_a_cancelled_one_is_never_claimed_and_stays_cancelled(desk: Submissions) -> None:
    new = desk.add(TARGET, SPEC, "command")
    cancelled = desk.cancel("zoo", new.id)
    assert cancelled.cancelled is not None and not cancelled.waiting
    assert desk.claim("zoo", new.id, "late").run == ""
    assert desk.cancel("zoo", new.id) == cancelled


def test_a_cancellation_that_comes_after_the_claim_leaves_the_run(desk: Submissions) -> None:
    token = desk.add(TARGET, SPEC, "command").id
    desk.claim("zoo", token, "mine")
    late = desk.cancel("zoo", token)
    assert (late.run, late.cancelled is not None) == ("mine", True)


def test_the_outcome_stays(desk: Submissions) -> None:
    new = desk.add(TARGET, SPEC, "command")
    desk.finish(new, {"classifier": "classifier/ab", "accuracy": {"mudg": 71.5}})
    assert desk.read("zoo", new.id).outcome == {"classifier": "classifier/ab", "accuracy": {"mudg": 71.5}}


def test_it_is_announced_before_that_is_written_down(desk: Submissions) -> None:
    new, seen = desk.add(TARGET, SPEC, "command"), list[Submission]()

    def emit(submission: Submission) -> None:
        assert desk.read("zoo", new.id).announced is None
        seen.append(submission)

    assert desk.announce(new, emit).announced is not None
    assert seen == [new] and desk.read("zoo", new.id).announced is not None


def test_only_one_takes_over_what_was_left(desk: Submissions) -> None:
    new = desk.add(TARGET, SPEC, "command")
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: desk.take(new, datetime.now(UTC)), range(8)))
    assert sum(one is not None for one in taken) == 1


def test_people_find_the_newest_by_name_and_any_by_its_id(desk: Submissions, store: ArtifactStore) -> None:
    old, new = (desk.add(TARGET, SPEC, "command") for _ in range(2))
    other = desk.add(TARGET.model_copy(update={"name": "zoo-2"}), SPEC, "command")
    store.objects.put_new("submissions/zoo/notes.txt", b"not ours")
    desk.cancel("zoo", old.id)  # touched last, and still not the newest
    assert desk.find("zoo").id == new.id and desk.find("zoo-2") == other
    assert desk.find(old.id[:12]).id == old.id
    assert [one.id for one in desk.newest(10)] == [other.id, new.id, old.id]
    with pytest.raises(InputError, match="no submission"):
        desk.find("notes")
    for text in ("", "absent", "zo"):
        with pytest.raises(InputError, match="mudg target list"):
            desk.find(text)


def test_one_that_is_gone_or_damaged_is_told_and_hides_no_other(
    desk: Submissions, store: ArtifactStore
) -> None:
    bad, good = (desk.add(TARGET, SPEC, "command") for _ in range(2))
    overwrite(store, layout.submission("zoo", bad.id), b"{")
    assert desk.newest(10) == [good] and desk.find("zoo") == good
    with pytest.raises(DataError, match="damaged"):
        desk.claim("zoo", bad.id, "run")
    with pytest.raises(MissingArtifactError, match="same store"):
        desk.claim("zoo", "ab" * 16, "run")
