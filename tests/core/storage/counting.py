"""A long stage in small, and a process that runs it until it is killed: arguments SETTINGS between|within."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore, Checkpoints, Facts
from tests.core.storage.making import overwrite, recipe

STEPS, FATAL = 8, 5


def counter(
    checkpoints: Checkpoints, done: list[int], after: Callable[[int], None] = lambda step: None
) -> Callable[[Path], Facts]:
    """Each step changes its array; `done` tells which steps were computed here and not resumed."""

    def make(folder: Path) -> Facts:
        last = checkpoints.latest()
        before, state = (last.step, last.arrays["state"]) if last else (0, np.ones(1000, np.int64))
        for step in range(before + 1, STEPS + 1):
            state = state * 3 + step
            done.append(step)
            checkpoints.save(step, {"state": state}, {"sum": int(state.sum())})
            after(step)
        (folder / "state.bin").write_bytes(state.tobytes())
        return Facts({"sum": int(state.sum())})

    return make


def main() -> None:
    store = ArtifactStore(StorageSettings.model_validate_json(sys.argv[1]))
    checkpoints = store.checkpoints(recipe())

    def die(step: int) -> None:
        if step == FATAL:
            if sys.argv[2] == "within":  # as if the disk had kept only the beginning of the last write
                path = checkpoints.paths[(FATAL - 1) % 2]
                found = store.objects.read(path)
                assert found is not None
                overwrite(store, path, found[0][: len(found[0]) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

    store.build(recipe(), counter(checkpoints, [], die))


if __name__ == "__main__":
    main()
