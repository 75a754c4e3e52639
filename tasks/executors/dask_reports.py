"""Reports of Dask workers: events of the scheduler, to which the flow's own client listens."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakSet

from distributed import get_worker

from tasks.stage_progress import BOARD, Report

TOPIC = "mudg-reports"
_listening: WeakSet[Any] = WeakSet()


def send(report: Report) -> None:
    """On a worker. Who does not hear of it sees less, and nothing else is lost."""
    with suppress(Exception):
        get_worker().log_event(TOPIC, report.to_json())


def listen(client: Any) -> None:
    """In the flow's process; once for each client."""
    if client in _listening:
        return
    _listening.add(client)
    with suppress(Exception):
        client.subscribe_topic(TOPIC, _hear)


def _hear(event: tuple[float, Any]) -> None:
    report = Report.from_json(event[1])
    if report is not None:
        BOARD.report(report)
