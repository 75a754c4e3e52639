"""What is known of a stack, in its folder: `stack.json`. Secrets are elsewhere."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mudg_core.errors import DataError, InputError, OrchestrationError
from tasks.executors.guarded_api import new_password

PLACES = ("cache", "dask", "logs", "prefect", "s3", "tls", "work")
STATE_FILE, KEYS_FILE, LOCK_FILE = "stack.json", "keys.json", "lock"


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Process(Record):
    """A process that we started. Its number alone says little, as numbers are used again."""

    name: str
    pid: int
    started: float
    command: tuple[str, ...]
    mark: str = ""
    ports: dict[str, int] = {}


class State(Record):
    """`id` is what all processes of the stack carry in their environment. Written before the first is
    started, so that even one that was started a moment before `mudg up` was killed can be found."""

    id: str
    ports: dict[str, int] = {}
    settings: dict[str, str] = {}
    workers: int = 0
    index_cron: str | None = None  # None: what prefect.yaml says
    gpu_limit: int | None = None  # None: as many as there are GPUs or workers
    registered: bool = False
    processes: tuple[Process, ...] = ()


class Keys(Record):
    """Made once for a stack: those of S3, what SeaweedFS signs its own requests with, Prefect's password."""

    access: str
    secret: str
    internal: str
    prefect: str


def check_owner(folder: Path) -> None:
    """Whoever else has the folder, or has put a link into it, could have us run their commands with our
    rights, or write our secrets where they choose."""
    below = [folder / name for name in PLACES]
    inside = [path for place in (folder, *below) if place.is_dir() for path in place.iterdir()]
    for path in (folder, *inside):
        try:
            found = path.lstat()
        except FileNotFoundError:  # not there yet, or a part of the stack has deleted its own
            continue
        if found.st_uid != os.geteuid() or stat.S_ISLNK(found.st_mode):
            raise InputError(
                what="a link stands where the stack's own files go"
                if stat.S_ISLNK(found.st_mode)
                else "a file of the stack belongs to another user",
                where=str(path),
                fix="give --folder one of your own that is empty or not there yet",
            )


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
            fix="end what is left of the stack by hand, and delete this file",
        ) from error


def write_state(folder: Path, state: State) -> None:
    write_private(folder / STATE_FILE, state.model_dump_json(indent=2) + "\n")


def keys_of(folder: Path) -> Keys:
    """The same for as long as the folder lives: its data can be read with no others."""
    path = folder / KEYS_FILE
    stored = json.loads(path.read_bytes()) if path.exists() else {}
    new = {
        "access": secrets.token_hex(10),
        "secret": secrets.token_hex(20),
        "internal": secrets.token_hex(20),
        "prefect": new_password(),
    }
    keys = Keys.model_validate(new | stored)  # that of an older release lacks some
    if keys.model_dump() != stored:
        write_private(path, keys.model_dump_json() + "\n")
    return keys


def write_private(path: Path, text: str) -> None:
    """For nobody else's eyes, and either whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    new.replace(path)


def check_folder(folder: Path) -> None:
    """A stack makes its folder private and can be wiped with it, so it wants one of its own."""
    check_owner(folder)
    ours = {STATE_FILE, KEYS_FILE}
    found = {item.name for item in folder.iterdir()} if folder.is_dir() else set()
    if found - {LOCK_FILE} and not found & ours:
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
                what="another `mudg up` or `mudg down` is at work on this stack",
                where=str(folder),
                fix="wait for it to end",
            ) from error
        yield
