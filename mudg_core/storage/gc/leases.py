"""A run's claim on what it uses: while it is renewed, garbage collection leaves all that alone.

A lease is one object that names the artifacts of its run, and when it expires. The run renews it from a
thread of its own. A run that was killed renews nothing more, and its lease soon expires.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from mudg_core.errors import DataError, InputError, MudgError
from mudg_core.storage import layout
from mudg_core.storage.manifest import ArtifactRef, Record
from mudg_core.storage.objects import Objects

RENEWALS = 3  # within the time of a lease: two may fail

log = logging.getLogger(__name__)


class Lease(Record):
    """`keeps` has the places of artifacts (`stage/key`)."""

    run: str
    started: datetime
    expires: datetime
    keeps: tuple[str, ...] = ()


class LeaseHolder:
    """The lease of one run. Nothing is written before the first use, as many runs have nothing to claim."""

    def __init__(self, objects: Objects, minutes: float) -> None:
        self.objects, self.minutes = objects, minutes
        self.run = uuid.uuid4().hex
        self.started = datetime.now(UTC).replace(microsecond=0)  # as manifests tell when they were made
        self._keeps: set[str] = set()
        self._lock, self._ended, self._begun = threading.Lock(), threading.Event(), False

    def use(self, refs: Iterable[ArtifactRef]) -> None:
        """Claims artifacts, with the next renewal at the latest: marks are never younger than that."""
        with self._lock:
            self._keeps.update(ref.place for ref in refs)
            first, self._begun = not self._begun, True
        if first:
            self.renew()
            threading.Thread(target=self._renewing, name=f"lease {self.run[:8]}", daemon=True).start()

    def renew(self) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            expires = datetime.now(UTC) + timedelta(minutes=self.minutes)
            keeps = tuple(sorted(self._keeps))
            lease = Lease(run=self.run, started=self.started, expires=expires, keeps=keeps)
            path = layout.lease(self.run)
            stored = self.objects.read(path)
            self.objects.replace(path, lease.model_dump_json().encode(), stored.etag if stored else None)

    def end(self) -> None:
        """Best effort: a lease that is left behind runs out by itself."""
        self._ended.set()
        with self._lock:
            if not self._begun:
                return
            try:
                self.objects.delete(layout.lease(self.run))
            except MudgError as error:
                log.warning("the lease of this run could not be ended: %s", error.what)

    def _renewing(self) -> None:
        while not self._ended.wait(self.minutes * 60 / RENEWALS):
            try:
                self.renew()
            except MudgError as error:
                log.warning("the lease of this run could not be renewed: %s", error.what)


def read_leases(objects: Objects) -> list[Lease]:
    """All that are there, expired or not. One that cannot be read is an error: it may claim a lot."""
    leases = []
    for path in filter(layout.is_own, objects.list(layout.LEASES)):
        if (stored := objects.read(path)) is None:
            continue
        try:
            leases.append(Lease.model_validate(json.loads(stored.data)))
        except (ValueError, InputError) as error:
            where, fix = layout.uri(objects.url, path), "delete it if no run is going on"
            raise DataError(what="a lease is damaged", where=where, fix=fix) from error
    return leases
