"""Whether this process has been told to end, for stages that can save their work first.

A Dask worker runs stages in threads, where no signal arrives and none can be asked for. Its main thread gets
the SIGTERM (or its nanny does), and then waits some seconds for running stages: they see that it is closing.
Nor does a thread hear that nobody wants its result any more, because the flow was cancelled or has died: the
worker knows, and a stage that goes on would keep others from the GPU.
Elsewhere (a notebook, a script) a stage runs in the main thread, and takes the signal itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Status, get_worker

ENDING = frozenset({Status.closing, Status.closing_gracefully, Status.closed, Status.failed})


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """A question to ask now and then inside the block. A signal in the block no longer ends the process by
    itself: whoever asks has to."""
    worker = _worker()
    if worker is not None:
        key = worker.get_current_task()
        yield lambda: _is_over(worker, key)
    elif threading.current_thread() is threading.main_thread():
        stop_requested = threading.Event()
        before = signal.signal(signal.SIGTERM, lambda *_: stop_requested.set())
        try:
            yield stop_requested.is_set
        finally:
            signal.signal(signal.SIGTERM, before)
    else:
        yield lambda: False


def unwanted() -> Callable[[], bool]:
    """A question for work that has nothing to save: does nobody want its result any more? Only Dask can tell.
    To be called by the thread of the task; any thread may ask."""
    worker = _worker()
    if worker is None:
        return lambda: False
    key = worker.get_current_task()
    return lambda: _is_dropped(worker, key)


def _is_over(worker: Any, key: Any) -> bool:
    return worker.status in ENDING or _is_dropped(worker, key)


def _is_dropped(worker: Any, key: Any) -> bool:
    task = worker.state.tasks.get(key)
    return task is None or task.state == "cancelled"


def _worker() -> Any | None:
    try:
        return get_worker()
    except ValueError:
        return None
