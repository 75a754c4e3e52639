"""The one retry policy: how often, after which delays, and for which errors."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mudg_core.errors import DataError, StorageError
from mudg_core.retries import PREFECT_SERVER, STAGE_TASKS, RetryPolicy, s3_requests, web_links


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds: list[float] = []
    monkeypatch.setattr("mudg_core.retries.sleep", seconds.append)
    return seconds


def failing(*errors: Exception) -> Callable[[], str]:
    """Raises one after the other, then succeeds."""
    left = list(errors)

    def function() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return function


def test_delays_grow_to_their_limit() -> None:
    assert list(RetryPolicy(4, 1.0, factor=3, max_seconds=10).delays()) == [1, 3, 9, 10]
    assert list(PREFECT_SERVER.delays()) == [2.5, 5, 10, 20, 40]


@pytest.mark.parametrize(
    ("policy", "lowest", "highest"),
    [
        (STAGE_TASKS, [1, 5], [3, 15]),
        (s3_requests(3), [0.05, 0.1, 0.2], [0.1, 0.2, 0.4]),
        (web_links(2, 30.0), [15, 30], [45, 90]),
    ],
)
def test_jitter_spreads_delays_within_bounds(
    policy: RetryPolicy, lowest: list[float], highest: list[float]
) -> None:
    for _ in range(100):
        delays = list(policy.delays())
        bounds = zip(lowest, delays, highest, strict=True)
        assert all(low - 1e-9 <= delay <= high + 1e-9 for low, delay, high in bounds)


def test_a_seeded_delay_repeats() -> None:
    policy = web_links(1, 30.0)
    assert policy.delay(1, random.Random(3)) == policy.delay(1, random.Random(3)) != 30


def test_a_retryable_error_is_retried_after_each_delay(slept: list[float]) -> None:
    errors = [StorageError(what="first"), ConnectionError("second")]
    seen: list[BaseException] = []
    assert RetryPolicy(2, 1.0).call(failing(*errors), seen.append) == "done"
    assert slept == [1, 2] and seen == errors


def test_the_last_error_is_raised(slept: list[float]) -> None:
    with pytest.raises(StorageError, match="third"):
        RetryPolicy(2, 1.0).call(failing(*(StorageError(what=name) for name in ("first", "second", "third"))))
    assert slept == [1, 2]


@pytest.mark.parametrize("error", [DataError(what="x"), TypeError("x")])
def test_an_error_that_no_attempt_can_help_is_raised_at_once(slept: list[float], error: Exception) -> None:
    with pytest.raises(type(error)):
        RetryPolicy(2, 1.0).call(failing(error))
    assert slept == []


def test_no_retries_is_one_attempt(slept: list[float]) -> None:
    with pytest.raises(StorageError):
        RetryPolicy(0, 1.0).call(failing(StorageError(what="x")))
    assert slept == []
