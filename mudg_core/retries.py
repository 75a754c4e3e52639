"""The one retry policy: who tries again, how often, after which delay, and what is worth another try.

Callers take a policy from here and narrow `retryable` to the exceptions of the library that they use.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import sleep
from typing import Protocol, TypeVar

from mudg_core.errors import MudgError

T = TypeVar("T")


class Uniform(Protocol):
    """What jitter is drawn from: the module `random`, or a seeded generator where runs must repeat."""

    def uniform(self, a: float, b: float, /) -> float: ...


def is_retryable(error: BaseException) -> bool:
    """Our own errors say whether trying again can help; unknown ones (a lost connection) get their chance."""
    if isinstance(error, MudgError):
        return error.retryable
    if isinstance(error, AssertionError | KeyError | TypeError | ValueError):
        return False
    return isinstance(error, Exception)


@dataclass(frozen=True)
class RetryPolicy:
    """Delays grow by `factor` from `first_seconds` to `max_seconds`, each spread by ± `jitter` of itself."""

    retries: int  # after the first attempt
    first_seconds: float
    factor: float = 2.0
    max_seconds: float = 600.0
    jitter: float = 0.0
    retryable: Callable[[BaseException], bool] = is_retryable

    def delay(self, retry: int, generator: Uniform = random) -> float:
        """Seconds before a retry, counted from 1."""
        seconds = self.first_seconds * self.factor ** (retry - 1)
        return min(self.max_seconds, seconds * generator.uniform(1 - self.jitter, 1 + self.jitter))

    def delays(self) -> Iterator[float]:
        return (self.delay(retry) for retry in range(1, self.retries + 1))

    def call(
        self,
        function: Callable[[], T],
        before_retry: Callable[[BaseException], None] = lambda error: None,
        pause: Callable[[float], object] | None = None,
    ) -> T:
        """The last error is raised as it is, and so is one that no further attempt could help. `pause` sleeps
        between attempts, for whoever must be able to end a sleep."""
        for delay in self.delays():
            try:
                return function()
            except Exception as error:
                if not self.retryable(error):
                    raise
                before_retry(error)
            (pause or sleep)(delay)
        return function()


STAGE_TASKS = RetryPolicy(retries=2, first_seconds=2, factor=5, jitter=0.5)
PREFECT_SERVER = RetryPolicy(retries=5, first_seconds=2.5)  # one that is started again is back in a minute


def s3_requests(retries: int) -> RetryPolicy:
    """Of what botocore does not repeat by itself."""
    return RetryPolicy(retries, first_seconds=0.075, jitter=1 / 3)


def web_links(retries: int, first_seconds: float) -> RetryPolicy:
    """Rounds over all links of a shard whose failure may pass."""
    return RetryPolicy(retries, first_seconds, jitter=0.5)
