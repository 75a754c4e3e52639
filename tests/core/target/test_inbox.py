"""The inbox: each spec becomes one submission and one event, whoever dies or watches besides."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mudg_core.errors import OrchestrationError, StorageError
from mudg_core.settings import GcSettings
from mudg_core.storage import ArtifactStore, layout
from mudg_core.storage.gc.collect import collect_garbage
from mudg_core.target import inbox
from mudg_core.target.inbox import DEAD_AFTER, LOST_AFTER, Watched, Watcher
from mudg_core.target.submissions import Submission, Submissions

SPEC = b"name: zoo\nclasses: [cat, dog]\n"
OTHER = b"name: zoo\nclasses: [cat, dog, fox]\n"
PATH = "inbox/zoo.yaml"


class Died(BaseException):
    """As a killed process: nothing of ours catches it."""


class Desk:
    """A store with an inbox, and a record of what was announced."""

    def __init__(self, store: ArtifactStore) -> None:
        self.store, self.objects = store, store.objects
        self.events: list[str] = []
        self.asked: list[int] = []  # of how many submissions at once
        self.lock = threading.Lock()

    def emit(self, submission: Submission) -> None:
        with self.lock:
            self.events.append(submission.id)

    def watch(
        self,
        after: timedelta = timedelta(0),
        emit: Callable[[Submission], None] | None = None,
        runs: tuple[str, ...] = (),
        lost: tuple[str, ...] = (),
    ) -> Watched:
        def look(many: Sequence[Submission]) -> dict[str, bool]:
            with self.lock:
                self.asked.append(len(many))
            return {one.id: one.id in lost for one in many if one.id in runs + lost}

        return Watcher(self.objects, emit or self.emit, look, datetime.now(UTC) + after).watch()

    def inbox(self) -> list[str]:
        return [path for path in self.objects.list(layout.INBOX) if not path.endswith("/")]

    def submissions(self) -> list[Submission]:
        return Submissions(self.objects).newest(100)


@pytest.fixture
def desk(store: ArtifactStore) -> Desk:
    return Desk(store)


def test_a_spec_becomes_a_submission_and_leaves_the_inbox(desk: Desk) -> None:
    desk.objects.put_new(PATH, SPEC)
    desk.objects.put_new("inbox/notes.txt", b"not a spec")
    assert len(desk.watch().submitted) == 1
    [one] = desk.submissions()
    assert desk.events == [one.id] and one.announced and one.target.classes == ("cat", "dog")
    assert one.source == PATH and desk.inbox() == ["inbox/notes.txt"]
    assert desk.watch(LOST_AFTER / 2) == Watched() and desk.events == [one.id]


def test_other_bytes_under_the_same_name_are_another_submission_and_the_same_are_not(desk: Desk) -> None:
    for data in (SPEC, OTHER, SPEC):
        desk.objects.put_new(PATH, data)
        desk.watch()
        assert desk.inbox() == []
    assert len(desk.submissions()) == 2 and max(Counter(desk.events).values()) == 1


def test_what_is_uploaded_over_it_meanwhile_is_not_lost(desk: Desk) -> None:
    etag = desk.objects.put_new(PATH, SPEC)

    def overwrite(submission: Submission) -> None:
        desk.emit(submission)
        if len(desk.events) == 1:
            desk.objects.replace(PATH, OTHER, etag)

    desk.watch(emit=overwrite)
    assert desk.inbox() == [PATH]
    desk.watch(emit=overwrite)
    assert desk.inbox() == [] and len(desk.submissions()) == len(set(desk.events)) == 2


# What a watcher does, in its order. It is killed before each of these steps, and after the last.
STEPS = ["put_new", "emit", "replace", "delete"]


@pytest.mark.parametrize("killed", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_anywhere_the_next_watch_mends_it(
    desk: Desk, killed: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.objects.put_new(PATH, SPEC)
    step: Callable[..., Any] = desk.emit if killed == "emit" else getattr(desk.objects, killed)

    def die(*given: Any, **named: Any) -> None:
        if when == "after":
            step(*given, **named)
        raise Died

    with monkeypatch.context() as dying, pytest.raises(Died):
        if killed != "emit":
            dying.setattr(desk.objects, killed, die)
        desk.watch(emit=die if killed == "emit" else None)
    for after in (timedelta(0), DEAD_AFTER * 1.5, DEAD_AFTER * 2):
        desk.watch(after)
    [one] = desk.submissions()
    assert one.announced and desk.inbox() == []
    told_twice = killed == "replace" or (killed, when) == ("emit", "after")
    assert set(desk.events) == {one.id}
    assert len(desk.events) <= 2 if told_twice else len(desk.events) == 1
    claims = {Submissions(desk.objects).claim("zoo", one.id, run).run for run in ("first", "second")}
    assert claims == {"first"}  # an event that comes twice still makes one run


def test_eight_watchers_at_once_send_one_event_each(desk: Desk) -> None:
    for number in range(6):
        desk.objects.put_new(f"inbox/{number}.yaml", f"name: zoo-{number}\nclasses: [cat, dog]\n".encode())
    start = threading.Barrier(8)

    def watch(_: int) -> Watched:
        start.wait()
        return desk.watch()

    with ThreadPoolExecutor(8) as pool:
        watched = list(pool.map(watch, range(8)))
    assert [error for one in watched for error in one.errors] == []
    desk.watch()
    assert desk.inbox() == [] and len(desk.submissions()) == 6
    assert sorted(desk.events) == sorted(one.id for one in desk.submissions())


def test_eight_watchers_take_over_what_was_left_once(desk: Desk) -> None:
    Submissions(desk.objects).add(inbox.parse_submitted(SPEC, PATH), SPEC, "command")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: desk.watch(DEAD_AFTER * 1.5), range(8)))
    assert len(desk.events) == 1


def test_bad_specs_are_set_aside_with_the_reason_and_stop_nobody(desk: Desk) -> None:
    bad = {
        "inbox/a b/..odd.yaml": b"name: zoo\nclasses: [cat, dog]\ncolour: red\n",
        "inbox/bytes.yml": b"name: \xff\n",
        "inbox/empty.yaml": b"",
    }
    for path, data in {**bad, PATH: SPEC}.items():
        desk.objects.put_new(path, data)
    watched = desk.watch()
    assert sorted(watched.refused) == sorted(bad) and len(watched.submitted) == 1 and not watched.errors
    assert desk.inbox() == []
    kept = {path: desk.objects.read(path) for path in desk.objects.list(layout.REFUSED)}
    found = {path: body[0] for path, body in kept.items() if body and not path.endswith(".reason.txt")}
    assert sorted(found.values()) == sorted(bad.values())
    reasons = {body[0].decode() for path, body in kept.items() if body and path.endswith(".reason.txt")}
    assert {reason.splitlines()[0] for reason in reasons} == set(bad)
    assert any("colour: no such field" in reason for reason in reasons)
    assert any("not UTF-8" in reason for reason in reasons)
    assert desk.watch() == Watched()


def test_what_nobody_foresaw_stops_nobody_either(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    read = inbox.parse_submitted

    def sometimes(data: bytes, where: str, allowed: Any) -> Any:
        if where.endswith("odd.yaml"):
            raise KeyError("a gap in the parser")
        return read(data, where, allowed)

    monkeypatch.setattr(inbox, "parse_submitted", sometimes)
    desk.objects.put_new("inbox/odd.yaml", SPEC)
    desk.objects.put_new(PATH, SPEC)
    watched = desk.watch()
    assert watched.refused == ["inbox/odd.yaml"] and len(watched.submitted) == 1 and not watched.errors


def test_what_is_far_too_large_is_not_read_and_told_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "MOST_BYTES", 10)
    desk.objects.put_new(PATH, SPEC)
    assert desk.watch().refused == [PATH] and desk.watch().refused == []
    assert desk.inbox() == [PATH] and desk.submissions() == []


def test_an_error_with_one_does_not_stop_the_others(desk: Desk) -> None:
    for name in ("a", "b", "c"):
        desk.objects.put_new(f"inbox/{name}.yaml", f"name: {name}\nclasses: [cat, dog]\n".encode())

    def emit(submission: Submission) -> None:
        if submission.name == "b":
            raise OrchestrationError(what="the server is away")
        desk.emit(submission)

    watched = desk.watch(emit=emit)
    assert len(watched.submitted) == 2 and [error.what for error in watched.errors] == ["the server is away"]
    assert desk.inbox() == ["inbox/b.yaml"]
    assert len(desk.watch(DEAD_AFTER * 1.5).again) == 1
    desk.watch(DEAD_AFTER * 2)
    assert desk.inbox() == [] and len(set(desk.events)) == len(desk.events) == 3


def test_a_lost_event_is_sent_again_unless_somebody_heard_it(desk: Desk) -> None:
    desk.objects.put_new(PATH, SPEC)
    [token] = desk.watch().submitted
    assert desk.watch(LOST_AFTER * 1.5, runs=(token,)).again == []
    assert desk.watch(LOST_AFTER * 1.5).again == [token]
    Submissions(desk.objects).claim("zoo", token, "run")
    assert desk.watch(LOST_AFTER * 9).again == [] and desk.events == [token, token]


def test_runs_that_were_lost_are_counted_and_lost_events_are_not(desk: Desk) -> None:
    desk.objects.put_new(PATH, SPEC)
    [token] = desk.watch().submitted
    for number, lost in enumerate([(), (token,), (), (token,)], 2):
        assert desk.watch(LOST_AFTER * number, lost=lost).again == [token]
    assert desk.submissions()[0].lost == 2 and desk.events == [token] * 5


def test_all_that_wait_are_asked_about_at_once_and_nobody_is_for_those_that_do_not(desk: Desk) -> None:
    for number in range(5):
        desk.objects.put_new(f"inbox/{number}.yaml", f"name: zoo-{number}\nclasses: [cat, dog]\n".encode())
    tokens = desk.watch().submitted
    assert desk.asked == []
    Submissions(desk.objects).claim("zoo-0", tokens[0], "run")
    assert sorted(desk.watch(LOST_AFTER * 1.5, runs=(tokens[1],)).again) == sorted(tokens[2:])
    assert desk.asked == [4]


def test_without_an_answer_nothing_is_announced_again_and_new_specs_are(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.objects.put_new(PATH, SPEC)
    desk.watch()
    desk.objects.put_new(PATH, OTHER)

    def away(many: Sequence[Submission]) -> dict[str, bool]:
        raise OrchestrationError(what="the server is away")

    now = datetime.now(UTC) + LOST_AFTER * 1.5
    watched = Watcher(desk.objects, desk.emit, away, now).watch()
    assert len(watched.submitted) == 1 and watched.again == [] and len(desk.events) == 2
    assert [error.what for error in watched.errors] == ["the server is away"]


def test_what_was_cancelled_is_not_announced(desk: Desk) -> None:
    submissions = Submissions(desk.objects)
    one = submissions.add(inbox.parse_submitted(SPEC, PATH), SPEC, "command")
    submissions.cancel("zoo", one.id)
    assert desk.watch(LOST_AFTER * 2) == Watched()


def test_a_listing_that_misses_an_object_only_costs_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.objects.put_new(PATH, SPEC)
    with monkeypatch.context() as stale:
        stale.setattr(desk.objects, "entries", lambda prefix: iter(()))
        assert desk.watch() == Watched()
    assert len(desk.watch().submitted) == 1


def test_a_store_that_fails_is_an_error_of_the_watch(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(prefix: str) -> None:
        raise StorageError(what="away")

    monkeypatch.setattr(desk.objects, "entries", fail)
    with pytest.raises(StorageError):
        desk.watch()


def test_garbage_collection_leaves_submissions_until_they_are_old(desk: Desk) -> None:
    desk.objects.put_new(PATH, SPEC)
    desk.objects.put_new("inbox/bad.yaml", b"")
    desk.watch()
    desk.objects.put_new("inbox/later.yaml", OTHER)

    def collect(days: float) -> int:
        now = datetime.now(UTC) + timedelta(days=days)
        return int(collect_garbage(desk.store, GcSettings(report_days=30), now=now).sums()["delete"]["count"])

    assert collect(29) == 0 and len(desk.submissions()) == 1
    assert collect(31) == 2 and desk.submissions() == [] and list(desk.objects.list(layout.REFUSED)) == []
    assert desk.inbox() == ["inbox/later.yaml"]
