"""Pictures from the web, decoded and made small in a process of their own.

Our decoder refuses what it can judge by a header. Whatever still hurts a decoder, by time or by a crash, ends
that process and costs one picture: its row is refused, and the next one gets a new process.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from PIL import Image

from mudg_core.corpus.decode import Limits, Refused, decode_measured
from mudg_core.errors import OrchestrationError

TOO_SLOW = "image: too slow to decode"
CRASHED = "image: crashed the decoder"
CPU_SECONDS = 20.0  # for one picture; the worst that our decoder lets pass takes a few
WAITS = 6  # so many times its CPU time, for a process that stands still
_INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
_ROOT = Path(__file__).parents[3]


class Small(NamedTuple):
    """An upright JPEG, and the sizes that the picture has and had."""

    image: bytes
    width: int
    height: int
    original_width: int
    original_height: int


class ShrinkSettings(NamedTuple):
    """`side`: the shorter side of what is kept, never enlarged."""

    side: int
    quality: int
    max_bytes: int
    max_pixels: int
    cpu_seconds: float = CPU_SECONDS


class Shrinker:
    """Gives what a picture becomes, or the reason why it is refused."""

    def __init__(self, settings: ShrinkSettings) -> None:
        self.settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection

    def __enter__(self) -> Shrinker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def __call__(self, data: bytes) -> Small | str:
        process = self._process = self._process or self._start()
        timer = _Timer(self.settings.cpu_seconds * WAITS, process)
        timer.start()
        try:
            self._pipe.send_bytes(data)
            facts, image = json.loads(self._pipe.recv_bytes()), self._pipe.recv_bytes()
        except (EOFError, ConnectionError):
            reason = self._why_it_ended()
            return TOO_SLOW if timer.has_killed else reason
        finally:
            timer.cancel()
        return str(facts["reason"]) if "reason" in facts else Small(image, *facts["sizes"])

    def _start(self) -> subprocess.Popen[bytes]:
        """Without our secrets, and out of reach of a terminal's Ctrl-C: it ends when its input does."""
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        self._pipe, theirs = Pipe()
        with theirs:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), json.dumps(self.settings)],
                env=environment | {"PYTHONPATH": str(_ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def _why_it_ended(self) -> str:
        code = self._end()
        if code >= 0:  # not the picture's doing: an import that failed, or no memory
            what = f"the process that decodes images from the web ended with exit code {code}"
            fix = "see its output above; free memory if it is short, and run again"
            raise OrchestrationError(what=what, fix=fix)
        return TOO_SLOW if code == -signal.SIGPROF else CRASHED

    def _end(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        self._pipe.close()
        try:
            return process.wait(self.settings.cpu_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


class _Timer(threading.Timer):
    """Kills a process that takes too long by the clock, as one does that was stopped."""

    has_killed = False

    def __init__(self, seconds: float, process: subprocess.Popen[bytes]) -> None:
        super().__init__(seconds, self._kill)
        self.process, self.daemon = process, True

    def _kill(self) -> None:
        self.has_killed = True
        self.process.kill()


def shrink(data: bytes, settings: ShrinkSettings) -> Small:
    """Raises `Refused`, and only that, for a bad picture."""
    limits = Limits(max_bytes=settings.max_bytes, max_pixels=settings.max_pixels)
    image, original = decode_measured(data, limits, settings.side)
    if min(image.size) > settings.side:
        scale = settings.side / min(image.size)
        wide, high = (max(settings.side, round(length * scale)) for length in image.size)
        image = image.resize((wide, high), Image.Resampling.BICUBIC)
    stored = io.BytesIO()
    image.save(stored, "JPEG", quality=settings.quality)
    return Small(stored.getvalue(), *image.size, *original)


def serve(pipe: Connection, settings: ShrinkSettings) -> None:
    """One picture after the other, each with so much CPU time and no more: the system ends us at its end."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with suppress(EOFError):
        while True:
            data = pipe.recv_bytes()
            signal.setitimer(signal.ITIMER_PROF, settings.cpu_seconds)
            try:
                small = shrink(data, settings)
                facts, image = {"sizes": small[1:]}, small.image
            except Refused as refused:
                facts, image = {"reason": refused.reason}, b""  # type: ignore[dict-item]
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send_bytes(json.dumps(facts).encode())
            pipe.send_bytes(image)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), ShrinkSettings(*json.loads(sys.argv[2])))
