"""What is known of a stack, in its folder: `stack.json`. Secrets are elsewhere."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mudg_core.errors import DataError, InputError, OrchestrationError

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
    """Made once for a stack. The filer takes no writes but those that S3 has signed with `internal`."""

    access: str
    secret: str
    internal: str


def read_state(folder: Path) -> State | None:
    path = folder / STATE_FILE
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
    if not path.exists():
        keys = Keys(
            access=secrets.token_hex(10), secret=secrets.token_hex(20), internal=secrets.token_hex(20)
        )
        write_private(path, keys.model_dump_json() + "\n")
    return Keys.model_validate_json(path.read_bytes())


def write_private(path: Path, text: str) -> None:
    """For nobody else's eyes, and either whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    new.replace(path)


def check_folder(folder: Path) -> None:
    """A stack makes its folder private and can be wiped with it, so it wants one of its own."""
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
