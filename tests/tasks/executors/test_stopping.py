"""Who is told that a process ends: a main thread by its signal, a thread of a Dask worker by the worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from tasks.executors.stopping import stopping, unwanted


def test_a_signal_is_told_inside_the_block_and_nowhere_else() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopping() as asked:
        assert not asked()
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_thread_of_its_own_can_ask_too() -> None:
    answers: list[bool] = []

    def work() -> None:
        with stopping() as asked:
            answers.append(asked())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [False]


def until_told(folder: str, question: Callable[[], AbstractContextManager[Callable[[], bool]]]) -> None:
    with question() as asked:
        Path(folder, "started").touch()
        deadline = time.monotonic() + 60
        while not asked() and time.monotonic() < deadline:
            time.sleep(0.01)
        Path(folder, str(asked())).touch()


@pytest.mark.filterwarnings("ignore")  # of a worker that is closed under its task
def test_f08_a_stage_sees_that_its_worker_closes(tmp_path: Path) -> None:
    """As `dask worker` does when it gets SIGTERM: it closes its nanny, whose worker waits for its threads."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        doing = client.submit(until_told, str(tmp_path), stopping, pure=False)
        while not (tmp_path / "started").exists():
            time.sleep(0.05)
        cluster.scale(0)
        deadline = time.monotonic() + 60
        while not (tmp_path / "True").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        doing.release()
    assert (tmp_path / "True").exists()


@contextmanager
def dropping() -> Iterator[Callable[[], bool]]:
    yield unwanted()


@pytest.mark.parametrize("question", [stopping, dropping])
def test_f14_a_stage_sees_that_nobody_wants_its_result(tmp_path: Path, question: Any) -> None:
    """The worker stays: it is the team's, and only one flow has gone."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        with Client(cluster) as client:
            client.submit(until_told, str(tmp_path), question, pure=False)
            while not (tmp_path / "started").exists():
                time.sleep(0.05)
        deadline = time.monotonic() + 60
        while not (tmp_path / "True").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert (tmp_path / "True").exists()
