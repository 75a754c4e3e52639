"""What is made once for all processes of a test run, by whichever comes to it first."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def made_once(
    factory: pytest.TempPathFactory, name: str, make: Callable[[Path], dict[str, Any]]
) -> tuple[Path, dict[str, Any]]:
    """The folder that `make` has filled, and what it said. Others wait, as long as their test may take; if it
    failed, or its process is gone, the next one makes it."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # a process has a folder of its own in there
    folder, said = root / name, root / f"{name}.json"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            result = json.dumps(make(folder))
            said.write_text(result)
    return folder, json.loads(said.read_text())
