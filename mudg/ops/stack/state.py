"""The record of a stack in its folder, `stack.json`, and whether that folder is ours alone. Secrets are
elsewhere."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mudg.ops.stack.credentials import KEYS_FILE, TLS_FOLDER, write_private
from mudg_core.errors import DataError, InputError, OrchestrationError

FOLDERS = ("cache", "dask", "logs", "prefect", "s3", TLS_FOLDER, "work")
STATE_FILE, LOCK_FILE = "stack.json", "lock"


class Process(BaseModel):
    """A process that we started. Its number alone says little, as numbers are used again."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    pid: int
    started: float
    command: tuple[str, ...]
    mark: str = ""
    ports: dict[str, int] = {}


class State(BaseModel):
    """`id` is what all processes of the stack carry in their environment. Written before the first is
    started, so that even one that was started a moment before `mudg up` was killed can be found."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    ports: dict[str, int] = {}
    settings: dict[str, str] = {}
    workers: int = 0
    index_cron: str | None = None  # None: what prefect.yaml says
    gpu_limit: int | None = None  # None: as many as there are GPUs or workers
    registered: bool = False
    processes: tuple[Process, ...] = ()


def read_state(folder: Path) -> State | None:
    path = folder / STATE_FILE
    if os.path.lexists(path):
        check_owner(folder)
    try:
        return State.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise DataError(
            what=f"the record of the stack cannot be read: {error}",
            where=str(path),
            fix="stop what is left of the stack by hand, and delete this file",
        ) from error


def write_state(folder: Path, state: State) -> None:
    write_private(folder / STATE_FILE, state.model_dump_json(indent=2) + "\n")


def check_owner(folder: Path) -> None:
    """Whoever else has the folder, or has put a link into it, could have us run their commands with our
    rights, or write our secrets where they choose."""
    folders = [folder, *(folder / name for name in FOLDERS)]
    entries = [path for place in folders if place.is_dir() for path in place.iterdir()]
    for path in (folder, *entries):
        try:
            status = path.lstat()
        except FileNotFoundError:  # not there yet, or a part of the stack has deleted its own
            continue
        is_link = stat.S_ISLNK(status.st_mode)
        if is_link or status.st_uid != os.geteuid():
            raise InputError(
                what="a link stands where the stack's own files go"
                if is_link
                else "a file of the stack belongs to another user",
                where=str(path),
                fix="give --folder one of your own that is empty or not there yet",
            )


def check_folder(folder: Path) -> None:
    """A stack makes its folder private and can be wiped with it, so it wants one of its own."""
    check_owner(folder)
    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if names - {LOCK_FILE} and not names & {STATE_FILE, KEYS_FILE}:
        raise InputError(
            what="the folder has files in it that are no stack's",
            where=str(folder),
            fix="give --folder one that is empty or not there yet",
        )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One `mudg up` or `mudg down` at a time. The lock goes with the process that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    check_owner(folder)
    folder.chmod(0o700)
    with (folder / LOCK_FILE).open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OrchestrationError(
                what="another `mudg up` or `mudg down` is running on this stack",
                where=str(folder),
                fix="wait for it to end",
            ) from error
        yield
