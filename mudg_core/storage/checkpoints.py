"""How far a long stage has come, kept in the store: a killed process, or another machine, goes on from there.

Two slots take turns, so that the newest checkpoint may be damaged and the one before it is still there. Both
are read, never listed; the highest step that is sound wins. Each write replaces exactly what its writer has
seen. Two processes on one stage compute the same, so one that loses a race has nothing left to save.

A store reads and writes objects whole. So a checkpoint has at most `LIMIT_BYTES`, and saving or reading one
takes up to twice its size in memory beside the caller's arrays: one as bytes, one to compare with or decode.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from mudg_core.errors import ChecksumError, ConflictError
from mudg_core.storage import layout
from mudg_core.storage.checkpoint_bytes import Arrays, Checkpoint, decode, encode
from mudg_core.storage.objects import Objects

NOTHING = -1  # the step of a slot that is empty or damaged: below every real one

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Slot:
    """What a slot held when it was last read or written; `etag` None means no object."""

    path: str
    etag: str | None
    step: int


class Checkpoints:
    """Those of one artifact that is being made. Never part of it: they decide how soon, not what."""

    def __init__(self, objects: Objects, stage: str, key: str) -> None:
        self.objects, self.stage, self.key = objects, stage, key
        self.paths = tuple(layout.checkpoint(stage, key, slot) for slot in layout.SLOTS)
        self._seen: tuple[Slot, ...] | None = None

    def save(self, step: int, arrays: Arrays, facts: Mapping[str, JsonValue]) -> None:
        """Keeps a step beyond all that are kept; does nothing for one that is not, as somebody was faster.

        Slots are read once and then known by what was written to them: the condition of the write tells if
        that no longer holds. To start over on purpose, `clear` first.
        """
        older, newer = sorted(self._seen or self._look(), key=lambda slot: slot.step)
        data = encode(self.stage, self.key, step, arrays, facts)
        if step <= newer.step:
            return
        try:
            etag = self.objects.replace(older.path, data, older.etag)
        except ConflictError:  # somebody else saved, or cleared: go on, and look again next time
            self._seen = None
        else:
            self._seen = (newer, Slot(older.path, etag, step))

    def latest(self) -> Checkpoint | None:
        """The furthest sound one. Looks at both before it keeps either, so that memory never holds two."""
        self._seen = self._look()
        for slot in sorted(self._seen, key=lambda slot: slot.step, reverse=True):
            if slot.step > NOTHING and (found := self._read(slot.path)[1]):
                return found
        return None

    def clear(self) -> None:
        self._seen = None
        for path in self.paths:
            self.objects.delete(path)

    def _look(self) -> tuple[Slot, ...]:
        return tuple(self._slot(path) for path in self.paths)

    def _slot(self, path: str) -> Slot:
        etag, found = self._read(path)
        return Slot(path, etag, found.step if found else NOTHING)

    def _read(self, path: str) -> tuple[str | None, Checkpoint | None]:
        """A damaged slot counts as empty but for its etag, by which the next save replaces it."""
        found = self.objects.read(path)
        if found is None:
            return None, None
        try:
            return found[1], decode(found[0], self.stage, self.key)
        except ChecksumError as error:
            log.warning("%s: %s; it is passed over", layout.uri(self.objects.url, path), error.what)
            return found[1], None
