"""SIGTERM while a student trains: its worker saves how far it has come, and the next run goes on there."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore, Checkpoints
from tests.faults.runs import EXECUTORS, KilledRun
from tests.support.demo_runs import FLAGS, MUDG, digests, environment, mudg

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

LONG = {"train.iterations": 300, "train.checkpoint_every": 10_000, "train.checkpoint_seconds": 10_000}
COMMAND = [
    "demo",
    "--json",
    *FLAGS,
    *(part for pair in LONG.items() for part in ("--set", "{}={}".format(*pair))),
]


def saved(folder: Path) -> list[int]:
    """Steps of the checkpoints that are there."""
    store = ArtifactStore(StorageSettings(url=f"file://{folder}/.mudg", cache_dir=str(folder / "cache")))
    keys = {path.parent.name for path in folder.glob(".mudg/checkpoints/model/*/*")}
    found = [Checkpoints(store.objects, "model", key).latest() for key in sorted(keys)]
    return [checkpoint.step for checkpoint in found if checkpoint]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_f08_the_command_is_told_to_end_while_it_trains(executor: str, tmp_path: Path) -> None:
    clean, folder = tmp_path / "clean", tmp_path / "run"
    for each in (clean, folder):
        each.mkdir()
    assert mudg(*COMMAND, cwd=clean).returncode == 0
    run = KilledRun(folder)
    with subprocess.Popen(
        [MUDG, *COMMAND, "--set", f"compute.executor={executor}", "--set", "compute.workers=2"],
        cwd=folder,
        env=environment(FAULTS_MARK=run.mark),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while not list(folder.glob(".mudg/scratch/*/tensorboard")):
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 128 + signal.SIGTERM
    run.assert_gone()
    steps = saved(folder)
    assert steps and all(0 < step < LONG["train.iterations"] for step in steps)
    assert mudg(*COMMAND, cwd=folder).returncode == 0
    assert digests(folder) == digests(clean) and not saved(folder)
