"""Kill the demo at any moment and run it again: it resumes, and the result is byte for byte the same.

Kills happen one after the other in one folder, so that each run meets what all the earlier ones left behind.
"""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.runs import ON_SERVERS, KilledRun, kill_after, kill_inside, server_started
from tests.support.demo_runs import ASKED_TWICE, demo, digests

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

STAGES = [
    "corpus-shard",
    "embedding-shard",
    "samples",
    "neighbors",
    "pairs",
    "centroids",
    "cells",
    "router",
    "choice",
    "code",
    "index-part",
    "index",
    "recall",
    "evaluation",
    "queries",
    "candidates",
    "evaluation-prints",
    "leaks",
    "labels",
    "picks",
    "dataset",
    "held-out",
    "model",
    "zero-shot",
    "gate",
    "scores",
    "warnings",
    "classifier",
    "map",
    "report",
]
POINTS = ["made", "stored", "committed"]
MOMENTS = 10


@dataclass(frozen=True)
class Undisturbed:
    result: dict[str, Any]
    digests: dict[str, str]
    seconds: float


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder, started = tmp_path_factory.mktemp("undisturbed"), time.monotonic()
    result = demo(folder, *ON_SERVERS)
    return Undisturbed(result, digests(folder), time.monotonic() - started)


def assert_resumes(folder: Path, undisturbed: Undisturbed) -> None:
    left = digests(folder)
    resumed = demo(folder)  # by processes of its own: they find what the cluster has made
    assert resumed["cached"] == len(left) + ASKED_TWICE
    assert resumed["mudg"] == undisturbed.result["mudg"]
    assert digests(folder) == undisturbed.digests


def test_killed_once_inside_every_stage(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """At a point of the commit protocol that is drawn anew for each stage."""
    assert {name.split("/")[0] for name in undisturbed.digests} == set(STAGES), "a stage is new, or gone"
    points = random.Random(0)
    for stage in STAGES:
        point = points.choice(POINTS)
        before = len(digests(tmp_path))
        assert kill_inside(tmp_path, stage, point) == -signal.SIGKILL, f"{stage} was not killed"
        assert len(digests(tmp_path)) >= before
    assert_resumes(tmp_path, undisturbed)


def test_killed_at_random_moments(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """The main process alone, or everything at once, as the kernel does it when memory is short. Not too late
    in a run, or the first kills would leave nothing to do for the later ones."""
    moments = random.Random(1)
    for number in range(MOMENTS):
        kill_after(tmp_path, moments.uniform(0, 0.6 * undisturbed.seconds), whole_group=number % 2 == 1)
    assert_resumes(tmp_path, undisturbed)


def test_killed_while_the_server_starts(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """The first start makes the database; everything at once catches it half made."""
    moments = random.Random(2)
    for number in range(6):
        run = KilledRun(tmp_path)
        process = run.start()
        server_started(run)
        time.sleep(moments.uniform(0, undisturbed.seconds / 4))
        (os.killpg if number % 2 else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
        run.assert_gone()
    assert_resumes(tmp_path, undisturbed)


def test_run_again_while_the_killed_one_still_computes(undisturbed: Undisturbed, tmp_path: Path) -> None:
    """`make` was killed and not what it had started: two runs meet in one folder, and both finish."""
    run = KilledRun(tmp_path)
    make = run.start('"$0" "$@"; exit $?')
    server_started(run)
    os.kill(make.pid, signal.SIGKILL)
    make.wait()
    assert demo(tmp_path)["mudg"] == undisturbed.result["mudg"]
    run.assert_gone(seconds=300)
    assert digests(tmp_path) == undisturbed.digests
