"""What surrounds a run."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

import tasks.executors.session
from mudg_core.settings import load_settings
from tasks.executors.session import _ending_in_order, session


@pytest.fixture
def unhandled() -> Iterator[None]:
    """As in a program that has no handler of its own; the servers of other tests have set one."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("unhandled")
def test_sigterm_leaves_the_block_and_a_second_is_not_waited_for() -> None:
    before, left = signal.getsignal(signal.SIGTERM), []
    with pytest.raises(SystemExit) as caught, _ending_in_order():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            left.append(signal.getsignal(signal.SIGTERM))
    assert caught.value.code == 143 and left == [signal.SIG_DFL]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("configured", ["", "http://127.0.0.1:9/api"])
def test_only_a_server_that_others_use_is_asked_for_slots(
    configured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        tasks.executors.session, "prefect_api", lambda home: nullcontext("http://127.0.0.1:9/api")
    )
    monkeypatch.setattr(
        tasks.executors.session, "scheduler", lambda compute: nullcontext("tcp://127.0.0.1:9")
    )
    place = {"storage": {"url": f"file://{tmp_path}", "cache_dir": str(tmp_path / "cache")}}
    with (
        temporary_settings({PREFECT_API_URL: configured or None}),
        session(load_settings(overrides=place, environ={})) as settings,
    ):
        assert settings.compute.gpu_slots is bool(configured)
        assert settings.compute.dask_address == "tcp://127.0.0.1:9"


def test_elsewhere_than_in_the_main_thread_nothing_is_asked_of_signals() -> None:
    passed: list[bool] = []

    def run() -> None:
        with _ending_in_order():
            passed.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert passed == [True]
