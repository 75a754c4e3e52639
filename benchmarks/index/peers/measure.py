"""How a peer is measured: sweep on the tuning queries, then time the best settings on the report's.

Runs in the peer's environment, so it knows the standard library and numpy alone. The answer is one line of
JSON on standard output, whatever the peer itself has printed before.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Ids = npt.NDArray[np.integer[Any]]
Params = dict[str, Any]
NEAREST = 10
ROUNDS = 3  # of timing; the best counts, as a busy machine only ever adds to it
SINGLE = 1000  # queries that are also asked one at a time


class Problem(NamedTuple):
    """The files that every index is given."""

    gallery: Float32
    tuning: Float32
    tuning_truth: Ids
    report: Float32
    report_truth: Ids


class Time(NamedTuple):
    """CPU seconds of all threads together, and seconds on the wall."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Built:
    """An index with what it cost, and the searches to try on it.

    `search` answers all queries at once with the rows of the ten nearest; `read` says how many vectors all
    queries since it was last called were compared with, where the peer tells.
    """

    params: Params
    took: Time
    index_bytes: int
    sweep: Iterable[Params]
    search: Callable[[Float32, Params], Ids]
    read: Callable[[], int] | None = None


class Tried(NamedTuple):
    """One setting of a search on the tuning queries."""

    params: Params
    recall: dict[str, float]
    seconds: float


def main(description: str | None, build: Callable[[Problem, int], Iterator[Built]]) -> None:
    """The command line that all peers share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path, help="with gallery.npy, tuning.npy, report.npy and their truths")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    problem = Problem(*(np.load(arguments.folder / f"{name}.npy") for name in Problem._fields))
    points = [point for built in build(problem, arguments.threads) for point in measure(built, problem)]
    sys.stdout.write("\n" + json.dumps({"points": points}) + "\n")


def timed(work: Callable[[], Any]) -> tuple[Any, Time]:
    wall, cpu = time.perf_counter(), time.process_time()
    done = work()
    return done, Time(time.process_time() - cpu, time.perf_counter() - wall)


def measure(built: Built, problem: Problem) -> Iterator[dict[str, Any]]:
    """A point for each setting on the front of recall and speed: the others win at no recall."""
    tried = []
    for params in built.sweep:
        found, took = timed(partial(built.search, problem.tuning, params))
        tried.append(Tried(params, recall(found, problem.tuning_truth), took.cpu))
    for one in front(tried):
        yield point(built, problem, one)


def front(tried: Iterable[Tried]) -> list[Tried]:
    """Those that no other setting beats both in recall at 10 and in time, the quickest first."""
    kept: list[Tried] = []
    for one in sorted(tried, key=lambda one: one.seconds):
        if not kept or one.recall["recall_at_10"] > kept[-1].recall["recall_at_10"]:
            kept.append(one)
    return kept


def recall(found: Ids, truth: Ids) -> dict[str, float]:
    """How often the first is the nearest, and the share of the ten nearest that is among the ten found."""
    shared = (found[:, :NEAREST, None] == truth[:, None, :NEAREST]).any(axis=1)
    return {
        "recall_at_1": float((found[:, 0] == truth[:, 0]).mean()),
        "recall_at_10": float(shared.mean()),
    }


def point(built: Built, problem: Problem, tried: Tried) -> dict[str, Any]:
    """Recall and speed on the report queries: all at once, and one at a time as a service would ask."""
    queries, some = problem.report, problem.report[:SINGLE]
    if built.read:
        built.read()
    rounds = [timed(partial(built.search, queries, tried.params)) for _ in range(ROUNDS)]
    read = built.read() / (ROUNDS * len(queries)) if built.read else None
    _, single = timed(lambda: [built.search(query[None], tried.params) for query in some])
    return {
        "params": built.params | tried.params,
        "tuning": tried.recall,
        "report": recall(rounds[0][0], problem.report_truth),
        "qps_cpu": len(queries) / min(took.cpu for _, took in rounds),
        "qps_wall": len(queries) / min(took.wall for _, took in rounds),
        "single_qps_cpu": len(some) / single.cpu,
        "vectors_read": read,
        "build_cpu_seconds": built.took.cpu,
        "build_wall_seconds": built.took.wall,
        "index_bytes": built.index_bytes,
    }
