"""Kill a worker, or the whole build, while a corpus is embedded: no row is lost and none is there twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from mudg_core.encode.shard import EmbeddingShard
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore
from tests.core.corpus.sources import making
from tests.faults.runs import EXECUTORS, KILLER, KilledRun
from tests.support.demo_runs import MUDG, digests, environment, mudg

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SHARDS, EACH = 8, 60
FLAGS = [
    part
    for name, value in {
        "encode.model": "demo:index",
        "corpus.rows_per_shard": EACH,
        "index.cells": 4,
        "index.iterations": 2,
        "compute.shards_per_task": 2,
        "compute.workers": 2,
    }.items()
    for part in ("--set", f"{name}={value}")
]
BUILD = ["index", "build", "--json", *FLAGS]


def added(folder: Path, source: Path) -> Path:
    folder.mkdir()
    done = mudg("corpus", "add", str(source), "--json", *FLAGS, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["new_shards"] == SHARDS
    return folder


def build(folder: Path, **extra: str) -> None:
    done = mudg(*BUILD, cwd=folder, **extra)
    assert done.returncode == 0, done.stderr[-3000:]


def embedded_rows(folder: Path) -> list[int]:
    """Of all embedded shards, as they lie in the store."""
    store = ArtifactStore(StorageSettings(url=f"file://{folder}/.mudg", cache_dir=str(folder / "cache")))
    keys = sorted(name for name in digests(folder) if name.startswith("embedding-shard/"))
    shards = [EmbeddingShard.open(store.folder(store.resolve(key))) for key in keys]
    return [int(row) for row in np.concatenate([shard.rows for shard in shards])]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return making.tars(tmp_path_factory.mktemp("source") / "tars", SHARDS, EACH)


@pytest.fixture(scope="module")
def clean(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = added(tmp_path_factory.mktemp("clean") / "run", source)
    build(folder)
    return folder


def assert_same(folder: Path, clean: Path) -> None:
    rows = embedded_rows(folder)
    assert len(rows) == len(set(rows))
    assert sorted(rows) == sorted(embedded_rows(clean))
    assert digests(folder) == digests(clean)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("point", ["made", "stored", "committed"])
def test_f01_f02_f03_a_worker_killed_while_it_embeds(
    point: str, executor: str, source: Path, clean: Path, tmp_path: Path
) -> None:
    """The build goes on by itself: another worker does the work again, or adopts what was committed."""
    folder, mark = added(tmp_path / "run", source), tmp_path / "killed"
    build(
        folder,
        PYTHONPATH=str(KILLER),
        KILL_WORKER_INSIDE=f"embedding-shard:{point}",
        KILLED_ONCE=str(mark),
        MUDG_COMPUTE__EXECUTOR=executor,
    )
    assert mark.exists()
    assert_same(folder, clean)


def test_f13_a_build_killed_at_random_moments(source: Path, clean: Path, tmp_path: Path) -> None:
    """Whoever builds again goes on with what was committed."""
    folder, moments = added(tmp_path / "run", source), random.Random(5)
    for number in range(4):
        run = KilledRun(folder)
        with (folder / "killed.log").open("ab") as log:
            process = subprocess.Popen(
                [MUDG, *BUILD],
                cwd=folder,
                env=environment(FAULTS_MARK=run.mark),
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        with suppress(subprocess.TimeoutExpired):
            process.wait(moments.uniform(10, 25))
        if process.poll() is None:
            (os.killpg if number % 2 else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
        run.assert_gone()
    build(folder)
    assert_same(folder, clean)
