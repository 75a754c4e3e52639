"""What a person sees of training: log lines while it runs, and TensorBoard's scalars afterwards.

Event files hold wall times, so they belong to the `volatile` files of an artifact. They get a name without
the machine's, which is nobody's business.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

EVENTS = "events.out.tfevents.train"  # TensorBoard looks for `tfevents` in a name
LINE_SECONDS = 10.0


class Watch:
    """Told of every step. The first line comes after the first, so that nobody waits long to see it work."""

    def __init__(
        self,
        folder: Path,
        steps: int,
        log: Any = None,
        clock: Callable[[], float] = time.monotonic,
        progress: Callable[[float], None] = lambda share: None,
    ) -> None:
        self.folder, self.steps, self.clock, self.progress = folder, steps, clock, progress
        self.log = log or logging.getLogger(__name__)
        self.said = -LINE_SECONDS + clock()

    @property
    def file(self) -> Path:
        return self.folder / EVENTS

    def __enter__(self) -> Watch:
        from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(self.folder))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()
        (written,) = self.folder.iterdir()
        written.rename(self.file)

    def __call__(self, step: int, loss: float, rate: float | None) -> None:
        """`rate`: images a second; none of a step of an earlier run, which is told again."""
        self.progress(step / self.steps)
        self.writer.add_scalar("loss", loss, step)
        if rate is None:
            return
        self.writer.add_scalar("images_per_second", rate, step)
        if step == self.steps or self.clock() - self.said >= LINE_SECONDS:
            self.said = self.clock()
            self.log.info("step %d of %d: loss %.4f, %.1f images/s", step, self.steps, loss, rate)
