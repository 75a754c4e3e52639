"""How far tasks are, told by workers of a real Dask cluster to the process of the flow."""

from __future__ import annotations

import threading

import pytest
from distributed import Client, LocalCluster

from tasks.executors import dask_reports
from tasks.executors.prefect_dask import WorkerHost
from tasks.stage_progress import Report, reporting


def work() -> None:
    with reporting("model/a", WorkerHost().report) as reporter:
        reporter.count(200, "steps")


def test_reports_of_workers_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Report] = []
    ended = threading.Event()

    def hear(report: Report) -> None:
        seen.append(report)
        if report.ended:
            ended.set()

    monkeypatch.setattr(dask_reports.BOARD, "report", hear)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        dask_reports.listen(client)
        dask_reports.listen(client)
        client.submit(work).result(timeout=60)
        assert ended.wait(60)
    assert seen == [Report("model/a"), Report("model/a", 0.0, 200, "steps", ended=True)]


def test_nobody_need_be_there_to_hear() -> None:
    work()
