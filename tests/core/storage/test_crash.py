"""Processes that are killed in the middle of a commit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore
from mudg_core.storage.local_cache import scratch_folder, sweep
from tests.core.storage.making import forbidden, maker, recipe, stored

ROOT = Path(__file__).parents[3]


def crash(settings: StorageSettings, when: str) -> None:
    command = [sys.executable, "-m", "tests.core.storage.crashing", settings.model_dump_json(), when]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def test_f02_killed_between_data_and_manifest(settings: StorageSettings) -> None:
    crash(settings, "before")
    store = ArtifactStore(settings)
    left = stored(store)
    assert left and all("/attempts/" in path for path in left)  # it did get that far
    assert store.find(recipe()) is None
    ref = store.build(recipe(), maker())
    store.verify(ref)
    assert not set(left) & {store.manifest(ref).path(entry.name) for entry in store.manifest(ref).files}


def test_f03_killed_after_the_manifest(settings: StorageSettings) -> None:
    crash(settings, "after")
    store = ArtifactStore(settings)
    ref = store.build(recipe(), forbidden)
    store.verify(ref)


def test_scratch_of_the_dead_is_swept_and_that_of_the_living_is_not(local_settings: StorageSettings) -> None:
    crash(local_settings, "making")
    scratch = Path(local_settings.url.removeprefix("file://")) / "scratch"
    (dead,) = scratch.iterdir()
    ArtifactStore(local_settings)
    assert dead.exists()  # young: perhaps somebody looks into it
    with scratch_folder(scratch) as living:
        for folder in (dead, living):
            os.utime(folder, (time.time() - 2 * 86400,) * 2)
        ArtifactStore(local_settings)
        assert living.exists() and not dead.exists()
    assert not living.exists()


def test_sweeping_never_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(tmp_path / "absent")
    (tmp_path / "put-1").write_bytes(b"half")
    sweep(tmp_path, older_than=-1)
    assert not any(tmp_path.iterdir())
