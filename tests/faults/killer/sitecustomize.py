"""On the PYTHONPATH of a run: kills the run's main process by SIGKILL at one exact point of one stage.

KILL_INSIDE is `STAGE:POINT`. Points are those of the commit protocol: all files made but none stored, all
stored but not committed, committed but not yet reported. Python imports a module of this name at every start,
so that Dask workers, where stages run, have it too; the first process to see it is the main one.
KILL_WORKER_INSIDE kills the worker instead, the first that comes there: it leaves a file called KILLED_ONCE.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

WORKER = os.environ.get("KILL_WORKER_INSIDE", "")
STAGE, _, POINT = (os.environ.get("KILL_INSIDE", "") or WORKER).partition(":")
METHODS = {"made": "_upload", "stored": "_upload", "committed": "_commit"}  # "made" is before the first


def deadly(method: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(store: Any, manifest: Any, *arguments: Any) -> Any:
        if POINT == "made":
            kill(manifest)
        result = method(store, manifest, *arguments)
        if POINT != "made":
            kill(manifest)
        return result

    return wrapper


def kill(manifest: Any) -> None:
    if manifest.recipe.stage != STAGE:
        return
    if WORKER:
        with suppress(FileExistsError), Path(os.environ["KILLED_ONCE"]).open("x"):
            os.kill(os.getpid(), signal.SIGKILL)
    else:
        os.kill(int(os.environ["KILL_PID"]), signal.SIGKILL)
        time.sleep(60)  # this process goes no further; it has to notice by itself that it is an orphan


if STAGE:
    os.environ.setdefault("KILL_PID", str(os.getpid()))
    from mudg_core.storage.store import ArtifactStore

    setattr(ArtifactStore, METHODS[POINT], deadly(getattr(ArtifactStore, METHODS[POINT])))
