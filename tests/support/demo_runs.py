"""Runs of the real `mudg` command, small enough for tests."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

MUDG = str(Path(sys.executable).with_name("mudg"))
TIMEOUT = 600
SMALL = {
    "corpus.source": "demo",
    "encode.model": "demo:index",
    "corpus.rows": 600,
    "corpus.rows_per_shard": 150,
    "index.cells": 8,
    "index.iterations": 4,
    "augment.pool": 100,
    "augment.count": 4,
    "dataset.neighbors": 16,
    "dataset.per_class": 4,
    "train.iterations": 4,
    "train.batch_size": 16,
    "evaluate.demo_images_per_class": 2,
    "compute.shards_per_task": 2,
    "compute.workers": 1,  # most of a small run is workers importing torch
}
ASKED_TWICE = (
    2  # recall, by the index build and by the report; fingerprints of evaluation images, by both arms
)
FLAGS = [part for name, value in SMALL.items() for part in ("--set", f"{name}={value}")]


def environment(**extra: str) -> dict[str, str]:
    """The caller's environment without settings of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUDG_", "PREFECT_"))}
    return kept | extra


def mudg(*arguments: str, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [MUDG, *arguments],
        cwd=cwd,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def demo(cwd: Path, *flags: str, **extra: str) -> dict[str, Any]:
    """The JSON object of a small `mudg demo`."""
    done = mudg("demo", "--json", *FLAGS, *flags, cwd=cwd, **extra)
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def task_states(folder: Path) -> Counter[str]:
    """How many task runs of stages the private Prefect server recorded in each state, over all runs."""
    query = (
        "SELECT state_name FROM task_run WHERE task_key LIKE 'execute-%' OR task_key LIKE 'record_cached-%'"
    )
    with closing(sqlite3.connect(folder / ".mudg/prefect/prefect.db")) as database:
        return Counter(state for (state,) in database.execute(query))


def ui_artifacts(folder: Path) -> dict[str, Any]:
    """Texts and tables that the private Prefect server has to show, by their keys; of each the newest."""
    query = "SELECT key, type, data FROM artifact WHERE type IN ('table', 'markdown') ORDER BY created"
    with closing(sqlite3.connect(folder / ".mudg/prefect/prefect.db")) as database:
        found = [(key, kind, json.loads(data)) for key, kind, data in database.execute(query)]
    return {key: json.loads(data) if kind == "table" else data for key, kind, data in found}


def digests(folder: Path) -> dict[str, str]:
    """Digest by stage and key of every artifact in a local store."""
    manifests = [json.loads(path.read_text()) for path in folder.glob(".mudg/artifacts/*/*/manifest.json")]
    return {f"{m['recipe']['stage']}/{m['key']}": m["digest"] for m in manifests}
