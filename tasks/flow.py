"""A flow, declared once: what it is called and what it does, for whoever runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Flow(Generic[P, R]):
    """A plain function over stages; call it as one. `run_name` names one run of it, given the same inputs."""

    name: str
    description: str
    run_name: Callable[..., str]
    function: Callable[P, R]

    def __call__(self, *args: P.args, **inputs: P.kwargs) -> R:
        return self.function(*args, **inputs)


def flow(name: str, description: str, run_name: Callable[..., str]) -> Callable[[Callable[P, R]], Flow[P, R]]:
    """Declares a flow. `run_name` is given what the flow is given."""
    return lambda function: Flow(name, description, run_name, function)


def dated(name: str) -> str:
    """`build-index 2026-11-17 03:00`."""
    return f"{name} {datetime.now(UTC):%Y-%m-%d %H:%M}"
