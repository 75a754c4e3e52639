"""The inbox of a store: whoever can upload a spec can order a classifier.

Each spec becomes a submission, is announced, and only then leaves the inbox. Killed between any two of these,
a watcher leaves the rest to the next one:

    not stored                       it is still in the inbox
    stored, still in the inbox       deleted from the inbox
    stored, not announced            taken over once it is old enough that its watcher must be dead
    announced, and the event lost    announced again, unless a run is known
    a run ended before its claim     announced again, `submissions.MOST_LOST` times at most

Two watchers at once do no harm: only who has stored or taken over a submission announces it. A listing that
misses an object costs time, and nothing else: it is found next time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from mudg_core.errors import ConflictError, MudgError
from mudg_core.storage import layout
from mudg_core.storage.manifest import hash_of
from mudg_core.storage.objects import Entry, Objects
from mudg_core.target.submissions import ID_DIGITS, Submission, Submissions, id_of
from mudg_core.target.submitted_spec import parse_submitted

SUFFIXES = (".yaml", ".yml")
MOST_BYTES = 32 << 20  # what is larger is not even read
DEAD_AFTER = timedelta(minutes=2)  # far longer than an announcement takes
LOST_AFTER = timedelta(minutes=10)  # far longer than it takes until a run is there
LOOK_BACK = timedelta(days=7)
MOST_CHECKED = 1000  # submissions that wait

T = TypeVar("T")
Emit = Callable[[Submission], None]
Look = Callable[[Sequence[Submission]], Mapping[str, bool]]


@dataclass
class Watched:
    """What one look into the inbox came to. `again`: announced once more, as no run came of it."""

    submitted: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    errors: list[MudgError] = field(default_factory=list)


class Watcher:
    """`emit` announces a submission. `look` says which submissions have a run, and whether that run is lost
    and another is due; it is called once a watch, as hundreds may be waiting. `allowed`: folders of the
    worker that a spec may name."""

    def __init__(
        self,
        objects: Objects,
        emit: Emit,
        look: Look,
        now: datetime | None = None,
        allowed: Sequence[str] = (),
    ) -> None:
        self.objects, self.emit, self.look, self.allowed = objects, emit, look, allowed
        self.now = now or datetime.now(UTC)
        self.submissions, self.watched = Submissions(objects), Watched()

    def watch(self) -> Watched:
        """Nothing that is wrong with one spec keeps the others from being read."""
        for entry in self.objects.entries(layout.INBOX):
            if entry.path.endswith(SUFFIXES):
                self._guarded(self._submit, entry)
        self._guarded(self._announce_again, self._left_waiting())
        return self.watched

    def _guarded(self, step: Callable[[T], None], item: T) -> None:
        try:
            step(item)
        except MudgError as error:
            self.watched.errors.append(error)

    def _submit(self, entry: Entry) -> None:
        if entry.size > MOST_BYTES:
            self._too_large(entry)
            return
        stored = self.objects.read(entry.path)
        if stored is None:
            return  # another watcher was faster
        data, etag = stored
        try:
            target = parse_submitted(data, entry.path, self.allowed)
        except Exception as error:  # also what nobody foresaw: one spec must not stop the others for good
            self._refuse(entry.path, data, etag, str(error) or type(error).__name__)
            return
        token = id_of(entry.path, data)
        try:
            new = self.submissions.add(target, data, entry.path, token)
        except ConflictError:
            self.watched.known.append(token)  # whoever has stored it announces it, or `_announce_again` does
        else:
            self.submissions.announce(new, self.emit)
            self.watched.submitted.append(token)
        self._delete(entry.path, etag)

    def _left_waiting(self) -> list[Submission]:
        """Those for which a run should be there by now."""
        recent = self.submissions.newest(MOST_CHECKED, (self.now - LOOK_BACK).timestamp())
        waiting = [submission for submission in recent if submission.waiting]
        return [s for s in waiting if self.now - s.taken >= (LOST_AFTER if s.announced else DEAD_AFTER)]

    def _announce_again(self, waiting: list[Submission]) -> None:
        runs = self.look(waiting) if waiting else {}
        for submission in waiting:
            self._guarded(partial(self._check_run, lost=runs.get(submission.id)), submission)

    def _check_run(self, submission: Submission, lost: bool | None) -> None:
        """`lost` is None where no run is known."""
        if lost is False:
            if submission.announced is None:  # its announcer died before it could write that down
                self.submissions.announce(submission, lambda _: None)
        elif mine := self.submissions.take(submission, self.now, bool(lost)):
            self.submissions.announce(mine, self.emit)
            self.watched.again.append(mine.id)

    def _refuse(self, path: str, data: bytes, etag: str, reason: str) -> None:
        """Copied before it is deleted, so that it is never nowhere."""
        place = layout.refused(id_of(path, data), path)
        self._write_reason(place, path, reason)
        with suppress(ConflictError):
            self.objects.put_new(place, data)
        self.watched.refused.append(path)
        self._delete(path, etag)

    def _too_large(self, entry: Entry) -> None:
        """Refused once, and left where it is: moving it would mean reading it."""
        place = layout.refused(hash_of([entry.path, entry.size])[:ID_DIGITS], entry.path)
        if not self.objects.exists(_reason(place)):
            what = f"{entry.size:,} bytes: no spec is that large. It was left in the inbox; delete it there."
            self._write_reason(place, entry.path, what)
            self.watched.refused.append(entry.path)

    def _write_reason(self, place: str, path: str, reason: str) -> None:
        with suppress(ConflictError):
            self.objects.put_new(_reason(place), f"{path}\n{reason}\n".encode())

    def _delete(self, path: str, etag: str) -> None:
        """This very version only: what was uploaded over it meanwhile is another spec."""
        with suppress(ConflictError):
            self.objects.delete(path, expected_etag=etag)


def _reason(place: str) -> str:
    return f"{place}.reason.txt"
