"""What surrounds a run."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from flows.session import _ending_in_order


def test_sigterm_leaves_the_block_and_a_second_is_not_waited_for() -> None:
    before, left = signal.getsignal(signal.SIGTERM), []
    with pytest.raises(SystemExit) as caught, _ending_in_order():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            left.append(signal.getsignal(signal.SIGTERM))
    assert caught.value.code == 143 and left == [signal.SIG_DFL]
    assert signal.getsignal(signal.SIGTERM) is before


def test_elsewhere_than_in_the_main_thread_nothing_is_asked_of_signals() -> None:
    passed: list[bool] = []

    def run() -> None:
        with _ending_in_order():
            passed.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert passed == [True]
