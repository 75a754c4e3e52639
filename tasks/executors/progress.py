"""How far a stage or a task has come, as a progress artifact in Prefect's UI.

Whoever computes leaves a number and goes on. A thread tells Prefect of it every few seconds, so a slow server
costs computing nothing, and one that is away costs a line in the log. What is done before the first word is
due is never spoken of: short tasks cost no call.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate

from tasks.executors.prefect_artifacts import create, current_run, key_of, warn_once
from tasks.run import Progress, silent

FIRST_SECONDS = 2.0
EVERY_SECONDS = 5.0
LAST_SECONDS = 15.0  # that the end of a task waits for its last word, at most


@contextmanager
def progress_bar(name: str, about: str) -> Iterator[Progress]:
    """What to call with a share of the work that is done, 0 to 1; it never raises and never waits. What fails
    keeps the share that it had reached."""
    flow_run, _ = current_run()
    if flow_run is None:
        yield silent
        return
    bar = _Bar(f"progress {name}", about, flow_run)
    try:
        yield bar
        bar.share = 1.0
    finally:
        bar.ended.set()
        if bar.shown is not None:  # else the thread has nothing left to say
            bar.thread.join(LAST_SECONDS)


class _Bar:
    """Begins with the first word, as work may be queued before. `shown` is what Prefect has of it: nothing
    until that was due."""

    def __init__(self, name: str, about: str, flow_run: UUID) -> None:
        self.key, self.about, self.flow_run = key_of(name), about, flow_run
        self.share, self.ended = 0.0, threading.Event()
        self.artifact: UUID | None = None
        self.shown: float | None = None
        self.begun = False
        run = contextvars.copy_context().run  # Prefect's settings, client and run are in the context
        self.thread = threading.Thread(target=run, args=(self._tell,), name=f"bar {name}", daemon=True)

    def __call__(self, share: float) -> None:
        self.share = share
        if not self.begun:
            self.begun = True
            self.thread.start()

    def _tell(self) -> None:
        if self.ended.wait(FIRST_SECONDS):
            return
        try:
            self._say()
            while not self.ended.wait(EVERY_SECONDS):
                self._say()
            self._say()
        except Exception as error:
            if not self.ended.is_set():  # of what is over, the run's state says more
                warn_once(self.flow_run, error)

    def _say(self) -> None:
        percent = round(100 * min(max(self.share, 0.0), 1.0), 1)
        if percent == self.shown:
            return
        self.shown = percent
        client = get_client(sync_client=True)
        if self.artifact is None:
            self.artifact = create(client, "progress", self.key, percent, self.about)
        else:
            client.update_artifact(self.artifact, ArtifactUpdate(data=percent))
