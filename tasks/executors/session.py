"""What a run needs around it: a Prefect API and a Dask cluster, each started if there is none."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefect.settings import PREFECT_API_URL

from mudg_core.settings import Settings
from tasks.executors.clusters import scheduler
from tasks.executors.prefect_server import prefect_api
from tasks.run import prepared


@contextmanager
def session(settings: Settings) -> Iterator[Settings]:
    """The settings with absolute paths and a scheduler address that is valid inside the block. A server of
    our own has no limits, and asking it for slots costs seconds: its database is busy, and Prefect's client
    waits before it asks again."""
    settings = prepared(settings)
    home = Path(settings.storage.cache_dir).with_name("prefect")
    slots = settings.compute.gpu_slots and bool(PREFECT_API_URL.value())
    with _ending_in_order(), prefect_api(home), scheduler(settings.compute) as address:
        yield settings.replace({"compute": {"dask_address": address, "gpu_slots": slots}})


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """A SIGTERM leaves this block as an error does, instead of ending the process on the spot: the cluster
    closes, and its workers give stages some seconds to save how far they have come. Prefect takes the signal
    first, and hands it on. A second one is not waited for. Whoever handles it already, as `mudg` does, keeps
    it."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(number: int, _frame: Any) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)
