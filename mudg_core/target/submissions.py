"""Submissions: targets that wait for a run, have one, or had one.

A submission is one object of the store, so that adding, announcing, claiming and cancelling are each one
conditional write, and nothing can be half done:

    stored      `submitted`, by somebody who sets out to announce it (`taken`)
    announced   `announced`: the event is out, which starts a run
    claimed     `run` has it. Any other run of the same submission sees this and ends at once, or takes it
                over, if that run is dead
    finished    `outcome`: what the run produced
    cancelled   no run may claim it any more

A run may also end before its claim, as when the store is away just then. It is announced again, and `lost`
counts such runs: the last of `MOST_LOST` is not followed by another.

Events may come twice, or not at all; the claim is what makes "exactly once" of that.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from pydantic import Field, JsonValue, ValidationError

from mudg_core.errors import ConflictError, DataError, InputError, MissingArtifactError
from mudg_core.storage import layout
from mudg_core.storage.manifest import Record, hash_of
from mudg_core.storage.objects import Objects
from mudg_core.target.spec import Target

ID_DIGITS = 32
MOST_LOST = 3  # runs that may end before they claim it: whatever ends each of them is no accident
TRIES = 20  # at one change, while others write in between

log = logging.getLogger(__name__)


class Submission(Record):
    """`digest` is of the bytes that were submitted, `source` is "command" or a path in the inbox. `files` has
    the text of files that came along, by the setting of `augment` that names them."""

    id: str
    target: Target
    digest: str
    source: str
    submitted: datetime
    taken: datetime
    token: str  # other bytes for every writer: one whose write was refused can tell that it lost
    announced: datetime | None = None
    lost: int = 0
    run: str = ""
    cancelled: datetime | None = None
    outcome: dict[str, JsonValue] | None = None
    files: dict[str, str] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def waiting(self) -> bool:
        """No run has it, and one may."""
        return not self.run and self.cancelled is None

    def changed(self, **values: object) -> Submission:
        return self.model_copy(update={**values, "token": uuid.uuid4().hex})


Change = Callable[[Submission], Submission]


class Submissions:
    """Those of one store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def add(
        self,
        target: Target,
        data: bytes,
        source: str,
        token: str | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Submission:
        """Stores a new one, to be announced by the caller; ConflictError if its id is taken already. Without
        a token of the caller's, the same spec may be asked for any number of times."""
        now = datetime.now(UTC)
        new = Submission(
            id=token or uuid.uuid4().hex,
            target=target,
            digest=hashlib.sha256(data).hexdigest(),
            source=source,
            submitted=now,
            taken=now,
            token=uuid.uuid4().hex,
            files=dict(files or {}),
        )
        self.objects.put_new(layout.submission(new.name, new.id), _bytes(new))
        return new

    def read(self, name: str, token: str) -> Submission:
        return self._read(name, token)[0]

    def change(self, name: str, token: str, change: Change) -> Submission:
        """Again until nobody else has written in between; what `change` leaves as it is, is not written."""
        for _ in range(TRIES):
            submission, etag = self._read(name, token)
            changed = change(submission)
            if changed != submission:
                try:
                    self.objects.replace(layout.submission(name, token), _bytes(changed), etag)
                except ConflictError:
                    continue
            return changed
        raise ConflictError(what=f"submission {token} changes without pause", fix="run again")

    def take(self, submission: Submission, now: datetime, lost: bool = False) -> Submission | None:
        """Sets out to announce one that somebody else left unannounced, or whose run was `lost`; None if a
        third was faster."""
        mine = submission.changed(taken=now, lost=submission.lost + lost)
        try:
            stored = self.change(
                mine.name, mine.id, lambda stored: mine if stored.token == submission.token else stored
            )
        except MissingArtifactError:
            return None
        return mine if stored == mine else None

    def announce(self, submission: Submission, emit: Callable[[Submission], None]) -> Submission:
        """Emits the event, and only then writes down that it is out."""
        emit(submission)
        now = datetime.now(UTC)
        return self.change(submission.name, submission.id, lambda stored: stored.changed(announced=now))

    def claim(self, name: str, token: str, run: str) -> Submission:
        """For a run, before it does anything: whether it may go on is whether `run` is its own. The same run
        may claim again, as it does when it is retried."""
        return self.change(name, token, lambda stored: stored.changed(run=run) if stored.waiting else stored)

    def take_over(self, submission: Submission, run: str) -> Submission:
        """Takes the claim of a run that is dead, unless somebody else has it by now."""

        def taken(stored: Submission) -> Submission:
            over = stored.outcome is not None or stored.cancelled is not None
            return stored if over or stored.run != submission.run else stored.changed(run=run)

        return self.change(submission.name, submission.id, taken)

    def cancel(self, name: str, token: str) -> Submission:
        now = datetime.now(UTC)
        return self.change(
            name, token, lambda stored: stored if stored.cancelled else stored.changed(cancelled=now)
        )

    def finish(self, submission: Submission, outcome: dict[str, JsonValue]) -> Submission:
        return self.change(submission.name, submission.id, lambda stored: stored.changed(outcome=outcome))

    def find(self, text: str) -> Submission:
        """For people: the newest of a target, or the one whose id begins so."""
        paths = list(filter(layout.is_own, self.objects.list(layout.SUBMISSIONS)))
        of_target = list(self._readable(p for p in paths if p.startswith(f"{layout.SUBMISSIONS}{text}/")))
        if of_target:
            return max(of_target, key=lambda submission: submission.submitted)
        matches = [path for path in paths if path.rpartition("/")[2].startswith(text)] if text else []
        if len(matches) != 1:
            raise InputError(
                what=f"{'several submissions are' if matches else 'no submission is'} called {text[:80]!r}",
                where=self.objects.url,
                fix="give a target's name, or more of an id; `mudg target list` shows both",
            )
        return self.read(*_name_and_id(matches[0]))

    def newest(self, limit: int, since: float = 0.0) -> list[Submission]:
        """The last so many that anything happened to, newest first; `since` in seconds since 1970."""
        entries = [
            entry
            for entry in self.objects.entries(layout.SUBMISSIONS)
            if layout.is_own(entry.path) and entry.modified >= since
        ]
        recent = sorted(entries, key=lambda entry: -entry.modified)[:limit]
        submissions = self._readable(entry.path for entry in recent)
        return sorted(submissions, key=lambda submission: submission.submitted, reverse=True)

    def _readable(self, paths: Iterable[str]) -> Iterator[Submission]:
        """One that is damaged does not keep the others from being seen."""
        for path in paths:
            try:
                yield self.read(*_name_and_id(path))
            except MissingArtifactError:
                continue  # deleted since it was listed
            except DataError as error:
                log.warning("%s: %s", error.where, error.what)

    def _read(self, name: str, token: str) -> tuple[Submission, str]:
        """A submission and its etag."""
        path = layout.submission(name, token)
        stored = self.objects.read(path)
        if stored is None:
            raise MissingArtifactError(
                what=f"there is no submission {token} of target {name}",
                where=self.objects.url,
                fix="see that whoever submits and whoever runs use the same store (storage.url)",
            )
        try:
            return Submission.model_validate_json(stored[0]), stored[1]
        except ValidationError as error:
            raise DataError(
                what="a submission is damaged, or of a newer release of mudg",
                where=layout.uri(self.objects.url, path),
                fix="delete it, and submit again",
            ) from error


def _name_and_id(path: str) -> tuple[str, str]:
    name, _, file = path.removeprefix(layout.SUBMISSIONS).partition("/")
    return name, file.removesuffix(".json")


def id_of(path: str, data: bytes) -> str:
    """The id of an object in the inbox: the same bytes at the same place are one submission."""
    return hash_of([path, hashlib.sha256(data).hexdigest()])[:ID_DIGITS]


def _bytes(submission: Submission) -> bytes:
    """Without `files` where there are none, so that older releases read it."""
    return submission.model_dump_json(indent=1, exclude=None if submission.files else {"files"}).encode()
