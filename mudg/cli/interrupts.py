"""Ctrl-C, SIGTERM and a closed terminal: one line, an orderly end, and within seconds no process is left.

What a signal meets is not ours alone: Prefect takes SIGTERM while a flow runs, libraries swallow exceptions,
and a server may not answer while a run is being closed. So two act. The main thread leaves what it does by an
exception, and closes what it has opened: workers save how far they have come. A thread beside it hears of
every signal by Python's wake-up, whoever handles it, and ends everything when that takes too long.

Nothing but the standard library is imported before a signal comes: this is set up before all else.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

CLOSE_SECONDS = 3.0  # for the orderly end; with the rest it makes less than five
KILL_SECONDS = 0.5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KEPT = (
    "interrupted: every stage that was finished is kept in the store, and the same command goes on from there"
)
CLEAR_LINE, SHOW_CURSOR = "\r\x1b[K", "\x1b[?25h"


class Interrupts:
    """The first signal, and what is done about it."""

    def __init__(self) -> None:
        self.first: int | None = None
        self._left = False
        self._telling = threading.RLock()  # a second signal may come while the first is told of

    def listen(self) -> None:
        """One that was ignored before stays ignored: so `nohup` and a shell's `&` ask for it."""
        heard, wakened = os.pipe()
        os.set_blocking(wakened, False)
        signal.set_wakeup_fd(wakened, warn_on_full_buffer=False)
        threading.Thread(target=self.watch, args=(heard,), daemon=True, name="interrupts").start()
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self.take)

    def take(self, number: int, _frame: Any) -> None:
        """In the main thread."""
        self._tell(number)
        if not self._left:
            self._left = True
            raise KeyboardInterrupt

    def watch(self, heard: int) -> None:
        """In a thread of its own. A second Ctrl-C is not waited for; of SIGTERM a second one says nothing, as
        Prefect sends its own again when a flow has ended."""
        while (data := os.read(heard, 1)) and data[0] not in SIGNALS:
            pass
        if not data:
            return
        timer = threading.Timer(CLOSE_SECONDS, self.leave)
        timer.daemon = True
        timer.start()  # before a word is said: a terminal that was stopped (Ctrl-S) takes none
        self._tell(data[0])
        while data := os.read(heard, 1):
            if data[0] == signal.SIGINT:
                self.leave()

    def leave(self) -> NoReturn:
        """Ends what this process has started, and then itself, whatever its threads are at."""
        with suppress(Exception):
            _end_children()
        os._exit(128 + (self.first or signal.SIGINT))

    def _tell(self, number: int) -> None:
        """Once. Whoever says something later would only say that it was interrupted, at length."""
        with self._telling:
            if self.first is not None:
                return
            self.first = number
            erase = CLEAR_LINE + SHOW_CURSOR if sys.stderr is not None and os.isatty(2) else ""
            with suppress(OSError):
                os.write(2, f"{erase}{KEPT}\n".encode())
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 1)
                os.dup2(nowhere, 2)


def run_interruptibly(command: Callable[[], None]) -> None:
    """Signals end the command, and the process with it. The first may come as soon as they are taken."""
    interrupts = Interrupts()
    try:
        interrupts.listen()
        command()
    finally:
        if interrupts.first is not None:
            interrupts.leave()


def _end_children() -> None:
    """Asked first, so that a worker need not be killed in the middle of a write; then killed."""
    import psutil

    children = psutil.Process().children(recursive=True)
    for ask in (psutil.Process.terminate, psutil.Process.kill):
        for child in children:
            with suppress(psutil.Error):
                ask(child)
        _, children = psutil.wait_procs(children, timeout=KILL_SECONDS)
