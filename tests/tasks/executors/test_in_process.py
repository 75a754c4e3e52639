"""Stages in threads of this process: what becomes of them when the run is ended."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from mudg.execution import session
from mudg_core.settings import Settings
from tasks.executors import in_process
from tasks.executors.in_process import ThreadHost
from tasks.executors.processes import LocalProcesses
from tasks.run import current_executor


def settings_of(folder: Path, **compute: object) -> Settings:
    storage = {"url": f"file://{folder}", "cache_dir": str(folder / "cache")}
    return Settings().replace({"storage": storage, "compute": compute})


class Training:
    """A batch in a thread that saves its work when it is asked to end."""

    def __init__(self) -> None:
        self.begun, self.saved = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.begun.wait(30)

    def run(self) -> None:
        with in_process._blas, ThreadHost().stopping() as stop:
            self.begun.set()
            while not stop():
                pass
            self.saved.set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_who_ends_a_run_lets_training_save_its_work(tmp_path: Path, error: type[BaseException]) -> None:
    """`mudg` turns SIGTERM into a KeyboardInterrupt in the main thread, where no stage computes."""
    with pytest.raises(error), session(settings_of(tmp_path, executor="in-process")):
        training = Training()
        raise error
    assert training.saved.is_set() and not in_process.ending.is_set()


def test_what_does_not_listen_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "SAVE_SECONDS", 0.0)
    go_on = threading.Event()

    def deaf() -> None:
        with in_process._blas:
            go_on.wait(60)

    thread = threading.Thread(target=deaf, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt), in_process.closing():
        raise KeyboardInterrupt
    go_on.set()
    thread.join(30)


@pytest.mark.parametrize(
    ("executor", "workers", "processes"),
    [("auto", 1, False), ("auto", 2, True), ("processes", 1, True), ("in-process", 2, False)],
)
def test_the_executor_is_the_one_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str, workers: int, processes: bool
) -> None:
    for name in ("PREFECT_API_URL", "PREFECT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    with session(settings_of(tmp_path, executor=executor, workers=workers)):
        assert isinstance(current_executor(), LocalProcesses) is processes


def test_a_signal_is_told_inside_the_block_and_nowhere_else() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ThreadHost().stopping() as asked:
        assert not asked()
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked()
    assert signal.getsignal(signal.SIGTERM) is before
