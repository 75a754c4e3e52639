"""What garbage collection means to delete, and how a run that wants it back gets it.

One object, `gc/condemned.json`, has a mark for every artifact that is on its way out. It only ever changes by
compare-and-swap, so a collector and a run that both want one artifact cannot both have it. People read
"marked for deletion" for `condemned`:

    condemned   nobody names it; it goes once the grace period is over and still nobody does
    dying       it is being deleted; whoever finds it takes it for missing, and makes it again
    used        a run wanted it while it was condemned: it is as if it had been made then

A mark names the attempt that it speaks of: an artifact that was made again is another one. A reader may trust
marks that it read a minute ago: what was not condemned then cannot be dying before the grace period is over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Literal, TypeAlias

from mudg_core.errors import ConflictError, DataError, InputError
from mudg_core.storage import layout
from mudg_core.storage.build_info import now
from mudg_core.storage.manifest import Manifest, Record
from mudg_core.storage.objects import Objects

REFRESH_SECONDS = 60.0
TRIES = 20


class Mark(Record):
    attempt: str
    state: Literal["condemned", "dying", "used"]
    since: str


Marks: TypeAlias = dict[str, Mark]


class GcMarks:
    """The marks of one store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self._seen: tuple[float, Marks] | None = None

    def read(self) -> tuple[Marks, str | None]:
        """All marks, and the etag to replace them by; None if there is no object."""
        stored = self.objects.read(layout.CONDEMNED)
        if stored is None:
            return {}, None
        try:
            marks = {name: Mark.model_validate(mark) for name, mark in json.loads(stored.data).items()}
        except (ValueError, AttributeError, TypeError, InputError) as error:
            what = "the marks of garbage collection are damaged"
            where = layout.uri(self.objects.url, layout.CONDEMNED)
            fix = "delete this object: artifacts marked for deletion then get a new grace period"
            raise DataError(what=what, where=where, fix=fix) from error
        return marks, stored.etag

    def write(self, marks: Marks, etag: str | None) -> None:
        """ConflictError if anybody else has written since."""
        body = {name: mark.model_dump(mode="json") for name, mark in sorted(marks.items())}
        self.objects.replace(layout.CONDEMNED, json.dumps(body, indent=0).encode(), etag)
        self._seen = None

    def change(self, how: Callable[[Marks], Marks]) -> None:
        """Again and again until nobody else has written in between."""
        for _ in range(TRIES):
            marks, etag = self.read()
            changed = how(dict(marks))
            if changed == marks:
                return
            try:
                self.write(changed, etag)
            except ConflictError:
                continue
            return
        raise ConflictError(
            what="other writers change the marks of garbage collection all the time", fix="run again"
        )

    def try_keep(self, manifest: Manifest) -> bool:
        """Whether an artifact may be used; from now on it then stays. False: it is being deleted.

        Its own mark is enough to keep its ancestors too: a collector never lets one die before what was made
        of it, and keeps what a kept one was made from.
        """
        if not _on_its_way_out(self._recent(), manifest):
            return True
        state = ""

        def lift(marks: Marks) -> Marks:
            nonlocal state
            state = _on_its_way_out(marks, manifest)
            if state != "condemned":
                return marks
            used = Mark(attempt=manifest.circumstances.attempt, state="used", since=now())
            return marks | {manifest.ref.place: used}

        self.change(lift)
        return state != "dying"

    def _recent(self) -> Marks:
        if self._seen is None or time.monotonic() - self._seen[0] > REFRESH_SECONDS:
            self._seen = time.monotonic(), self.read()[0]
        return self._seen[1]


def _on_its_way_out(marks: Marks, manifest: Manifest) -> str:
    """The state of a mark that speaks of this very artifact; empty if it may be used as it is."""
    mark = marks.get(manifest.ref.place) if marks else None
    if mark is None or mark.attempt != manifest.circumstances.attempt or mark.state == "used":
        return ""
    return mark.state
