"""Processes that stay, so that two ways of doing the same work can take turns in them.

They are started as a local cluster starts its workers, begin a piece of work at the same moment, and keep
what they have loaded from one piece to the next.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any, Generic, TypeVar

A = TypeVar("A")
R = TypeVar("R")
START_SECONDS = 300.0


@dataclass(frozen=True)
class Done(Generic[R]):
    """What each process has returned, and when it began and ended (of the clock that all share)."""

    results: list[R]
    spans: list[tuple[float, float]]

    @property
    def wall(self) -> float:
        """From the first that began to the last that was done."""
        return max(end for _, end in self.spans) - min(begin for begin, _ in self.spans)


class Crew:
    """Its processes, each with a pipe."""

    def __init__(self, pipes: list[Connection]) -> None:
        self.pipes = pipes

    def do(self, work: Callable[[A], R], shares: Sequence[A]) -> Done[R]:
        """`work` of one share in each process, all at once. An error in one is raised here."""
        assert len(shares) == len(self.pipes)
        for pipe, share in zip(self.pipes, shares, strict=True):
            pipe.send((work, share))
        answers = [pipe.recv() for pipe in self.pipes]
        for result, _ in answers:
            if isinstance(result, BaseException):
                raise result
        return Done([result for result, _ in answers], [span for _, span in answers])


@contextmanager
def crew(processes: int, environ: Mapping[str, str]) -> Iterator[Crew]:
    """`environ` is set before anything is imported: libraries read their number of threads once."""
    context = multiprocessing.get_context("spawn")
    barrier, pairs = context.Barrier(processes), [context.Pipe() for _ in range(processes)]
    members = [context.Process(target=_serve, args=(theirs, barrier), daemon=True) for _, theirs in pairs]
    with environment(environ):
        for member in members:
            member.start()
    for _, theirs in pairs:
        theirs.close()  # so that a process that dies is an EOFError here, and not a wait
    try:
        yield Crew([ours for ours, _ in pairs])
    finally:
        for ours, _ in pairs:
            ours.close()
        for member in members:
            member.join(START_SECONDS)


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """For processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(pipe: Connection, barrier: Barrier) -> None:
    """Until the other end is closed."""
    while True:
        try:
            work, share = pipe.recv()
        except EOFError:
            return
        barrier.wait(START_SECONDS)
        pipe.send(_timed(work, share))


def _timed(work: Callable[[Any], Any], share: Any) -> tuple[Any, tuple[float, float]]:
    begin = time.monotonic()
    try:
        result = work(share)
    except Exception as error:
        result = error
    return result, (begin, time.monotonic())
