"""How long tasks have been at work, as Dask's scheduler knows it: time in line for a worker is no work."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

log = logging.getLogger(__name__)

QUEUE_SECONDS = 86_400.0  # in which tasks must have got a worker, and their GPU slots
ASK_SECONDS = 20.0  # for a scheduler to answer


def seconds_at_work(client: Any, keys: Sequence[str]) -> float | None:
    """Of the one that has been at work for longest; nothing while all stand in line. None if none does, as no
    worker could run them, or nobody knows them; and if nobody answers."""
    try:
        found = client.sync(client._run_on_scheduler, _asked, list(keys), callback_timeout=ASK_SECONDS)
        return None if found is None else float(found)
    except Exception as error:
        log.warning(
            "Dask's scheduler does not say whether a task is in line: that counts as work (%r)", error
        )
        return None


def _asked(keys: list[str], dask_scheduler: Any) -> float | None:
    """Runs on the scheduler."""
    times = (_seconds(dask_scheduler, key) for key in keys)
    return max((time for time in times if time is not None), default=None)


def _seconds(scheduler: Any, key: str) -> float | None:
    task = scheduler.tasks.get(key)
    state = task.state if task else "forgotten"
    if state == "processing":
        worker = task.processing_on
        # One that has left its slot waits for what it gave to the cluster, which has time-outs of its own.
        return 0.0 if task in worker.long_running else float(worker.executing.get(task, 0.0))
    waits = state in ("memory", "erred", "waiting") or (state == "queued" and bool(scheduler.running))
    return 0.0 if waits else None
