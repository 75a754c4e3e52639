"""A flow of one tiny stage, whose tasks do as a file in the run's folder says: faults without hours of work.

What a task does is no part of its recipe: whoever runs again without the file finds the same artifact.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from prefect.settings import PREFECT_API_URL

from deployments.on_prefect import call
from mudg_core.errors import DataError, MudgError
from mudg_core.settings import Settings, load_settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts
from mudg_core.storage.manifest import Manifest
from tasks.executors.session import session
from tasks.flow import flow
from tasks.policy import Work, stage
from tasks.run import Run

BEHIND_PROXY = "TINY_BEHIND_PROXY"
if os.environ.get(BEHIND_PROXY):  # a worker that goes everywhere by a proxy; ours go directly to this machine
    os.environ.update(NO_PROXY="", no_proxy="")
WAIT_SECONDS = 300.0
BLOCK, BLOCKS = 64 << 20, 20


def _die(place: Path, number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _rest(place: Path, number: int) -> None:
    """While the scheduler hears of siblings that are done: else they would be lost with their worker."""
    time.sleep(1)


def _fail(place: Path, number: int) -> None:
    raise DataError(what=f"number {number} is no good")


def _hang(place: Path, number: int) -> None:
    """Until the test says go. Others that come here with the same number do not wait: the first is alone."""
    try:
        (place / f"at-{number}").open("x").write(str(os.getpid()))
    except FileExistsError:
        return
    deadline = time.monotonic() + WAIT_SECONDS
    while not (place / f"go-{number}").exists():
        assert time.monotonic() < deadline, "nobody said go"
        time.sleep(0.05)


def _grow(place: Path, number: int) -> None:
    """Takes memory up to a bound, and then keeps it for a while: somebody ends this before."""
    held = [b"x" * BLOCK for _ in range(BLOCKS)]
    time.sleep(60)
    assert not held, "nobody minded"


def _watch_commits(place: Path, number: int) -> None:
    """From now on this process notes what its commits came to."""
    commit = ArtifactStore._commit

    def noted(store: ArtifactStore, manifest: Manifest) -> ArtifactRef:
        found = commit(store, manifest)
        _note(place / "commits", f"{os.getpid()} {manifest.digest} {found.digest}")
        return found

    ArtifactStore._commit = noted  # type: ignore[method-assign]


def _cut(place: Path, number: int) -> None:
    """From now on this process has no way to the Prefect server: what is open is shut, nothing opens."""
    connect, port = socket.socket.connect, urlsplit(PREFECT_API_URL.value() or "").port

    def refused(line: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[1] == port:
            _note(place / "refused", str(number))
            raise ConnectionRefusedError(address)
        connect(line, address)

    socket.socket.connect = refused  # type: ignore[method-assign, assignment]
    for line in psutil.Process().net_connections("tcp"):
        if line.raddr and line.raddr.port == port:
            with socket.socket(fileno=os.dup(line.fd)) as known:
                known.shutdown(socket.SHUT_RDWR)


ACTIONS: dict[str, Callable[[Path, int], None]] = {
    "cut": _cut,
    "die": _die,
    "rest": _rest,
    "fail": _fail,
    "hang": _hang,
    "grow": _grow,
    "watch": _watch_commits,
}


def _note(path: Path, line: str) -> None:
    with path.open("a") as notes:
        notes.write(f"{line}\n")


@stage("tiny")
def tiny(work: Work, *, number: int) -> Facts:
    """Never the same bytes twice, so that a second commit would show."""
    place = Path(work.settings.storage.cache_dir).parents[1]
    _note(place / "begun", str(number))
    script = place / f"do-{number}"
    for action in script.read_text().split() if script.exists() else ():
        ACTIONS[action](place, number)
    (work.scratch / "made.txt").write_text(f"{number} by {os.getpid()} at {time.time_ns()}")
    return Facts({"rows": 1})


@flow("tiny", "Tiny artifacts.", run_name=lambda settings, numbers: "tiny")
def tiny_flow(settings: Settings, numbers: list[int]) -> list[str]:
    return [str(ref) for ref in tiny.map(Run(settings), [tiny.job(number=number) for number in numbers])]


def settings_of(folder: Path, **compute: Any) -> Settings:
    storage = {"url": f"file://{folder}/.mudg", "cache_dir": str(folder / ".mudg/cache")}
    return load_settings(overrides={"storage": storage, "compute": {"workers": 1, **compute}}, environ={})


def begun(folder: Path) -> list[int]:
    """Numbers in the order in which their making was begun, as often as it was."""
    return [int(line) for line in (folder / "begun").read_text().split()]


def ref_of(folder: Path, number: int) -> ArtifactRef | None:
    settings = settings_of(folder)
    return ArtifactStore(settings.storage).find(tiny.recipe(settings, {"number": number}))


def verified(folder: Path, number: int) -> ArtifactRef:
    """What is committed of a number, every byte of it read."""
    ref = ref_of(folder, number)
    assert ref is not None
    ArtifactStore(settings_of(folder).storage).verify(ref)
    return ref


def main() -> None:
    """`FOLDER COMPUTE NUMBERS`, the last two as JSON: one run as a command does it, and how it ended."""
    folder, compute, numbers = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
    try:
        with session(settings_of(folder, **compute)) as ready:
            ended: dict[str, Any] = {"made": call(tiny_flow, ready, numbers)}
    except MudgError as error:
        ended = {"error": type(error).__name__, "what": error.what, "where": error.where}
    sys.stdout.write(json.dumps(ended) + "\n")
