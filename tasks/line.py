"""How long a task has been at work, as Dask's scheduler knows it. Asked there, so this imports nothing."""

from __future__ import annotations

from typing import Any


def seconds_at_work(key: str, dask_scheduler: Any) -> float | None:
    """Nothing while other tasks have the workers that could run it, or once it has ended and its result is on
    the way. None if there is no such worker, or no such task: then it stands in no line."""
    task = dask_scheduler.tasks.get(key)
    state = task.state if task else "forgotten"
    if state == "processing":
        return float(task.processing_on.executing.get(task, 0.0))
    waits = state in ("memory", "erred") or (state == "queued" and bool(dask_scheduler.running))
    return 0.0 if waits else None
