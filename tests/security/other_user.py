"""Another user of the machine, who can reach every port of the stack and has none of its keys.

As root that is `nobody`. Without root no other user can be had: then ports are attacked with an empty
environment, and of files only the modes are looked at.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from mudg.ops.stack.processes import marked
from mudg.ops.stack.running import Stack, find_stack
from mudg.ops.stack.state import State, write_state
from mudg_core.errors import InputError
from tests.security import forged, stores
from tests.security.intruder_requests import DASK_LOGS, EVIL, SOCKETS, calls
from tests.security.owner import Owner
from tests.security.results import NeedsRoot, NotTried, Result, attempt
from tests.security.stores import Try

NOBODY = 65534
SECONDS = 120
CLOSED = {400, 401, 403, 404, 405, 501}
DASK_PAGES = (
    DASK_LOGS,
    "/info/main/exceptions.html",
    "/info/main/workers.html",
    "/json/identity.json",
    "/metrics",
)
FILES = ("*", "tls/*", "logs/*", "s3/*", "prefect/prefect.db*")
Answer = dict[str, Any]


def attacks(stack: Stack, folder: Path) -> Iterator[Result]:
    forgery = forged.forge(stack, folder)
    before, owner = stores.Precious(stack), Owner(stack)
    belongings = owner.belongings()
    tries = [*stores.tries(stack), *_prefect_tries(owner), *_dask_tries(stack, forgery), *_file_tries(stack)]
    for one, answer in zip(tries, _as_intruder(tries, forgery), strict=True):
        yield attempt(one.tried, one.fault, partial(_judge, one, answer), one.case)
    yield from forged.shells(stack, folder, forgery, _user())
    yield attempt("all of that changed the store", 80, before.same)
    yield attempt("all of that left anything on Prefect's server", 79, lambda: owner.same(belongings))
    yield attempt(
        "command lines of the stack's processes hold a secret", 80, partial(_check_command_lines, stack)
    )
    yield attempt("a port is open beyond this machine", 76, partial(_check_addresses, stack))
    yield attempt("a stack's folder prepared by another user is used", 89, partial(_prepared_folder, folder))
    if _user() is None:
        yield attempt("the stack's files and processes as another user", 80, _needs_root)


def _user() -> int | None:
    return NOBODY if os.geteuid() == 0 else None


def _as_intruder(tries: list[Try], forgery: forged.Forged) -> list[Answer]:
    job = {"user": _user(), "tls": forgery.tls, "tries": [(one.verb, one.arguments) for one in tries]}
    process = subprocess.run(
        [sys.executable, "-m", "tests.security.intruder"],
        input=json.dumps(job),
        env={"PATH": os.environ["PATH"], "HOME": str(forgery.folder), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if process.returncode:
        raise NotTried(f"the intruder has failed: {process.stderr[-500:]}")
    answers: list[Answer] = json.loads(process.stdout.splitlines()[-1])
    return answers


def _judge(one: Try, answer: Answer) -> str:
    """Only an answer that says no is one: a server that does not answer at all has refused nothing."""
    if "error" in answer:
        raise NotTried(answer["error"])
    if one.verb == "request":
        if answer.get("status") is None or (answer["status"] >= 500 and answer["status"] not in CLOSED):
            raise NotTried(str(answer))
        assert answer["status"] in CLOSED, f"answered {answer['status']}: {answer['text'][:200]}"
        return str(answer["status"])
    assert "refused" in answer, answer["text"][:200]
    if answer.get("kind") in ("FileNotFoundError", "ConnectionRefusedError"):
        raise NotTried(answer["refused"])
    return str(answer["refused"])


def _prefect_tries(owner: Owner) -> Iterator[Try]:
    head = {"Content-Type": "application/json"}
    for how, more in {"without": {}, "with a wrong": {"Authorization": "Basic bXVkZzp3cm9uZw=="}}.items():
        for what, (method, path, body) in calls(owner).items():
            arguments = [method, f"{owner.stack.api_url}/{path}", head | more, json.dumps(body)]
            yield Try(f"Prefect's API {how} password", 79, "request", arguments, what)
    address = owner.stack.api_url.replace("http", "ws")
    first = [json.dumps({"type": "auth", "token": "mudg:wrong"}), owner.event(EVIL)]
    for path in SOCKETS:
        yield Try(
            "Prefect's websockets with a wrong password", 79, "websocket", [f"{address}/{path}", first], path
        )


def _dask_tries(stack: Stack, forgery: forged.Forged) -> Iterator[Try]:
    """The scheduler, and every port of workers and nannies but those that serve pages."""
    secured: dict[str, tuple[str, Answer | None]] = {
        "in plain": ("tcp", None),
        "with a forged certificate": ("tls", forgery.tls),
    }
    scheduler = f"127.0.0.1:{stack.state.ports['dask']}"
    for how, (scheme, tls) in secured.items():
        yield Try("submit code to Dask's scheduler", 76, "submit", [f"{scheme}://{scheduler}", tls], how)
        for port in _dask_ports(stack):
            yield Try(
                "talk to Dask's workers", 76, "talk", [f"{scheme}://127.0.0.1:{port}", tls], f"{port} {how}"
            )
    for page in DASK_PAGES:
        url = f"http://127.0.0.1:{stack.state.ports['dask-http']}{page}"
        yield Try("read logs, errors and tasks on Dask's pages", 76, "request", ["GET", url, {}, ""], page)


def _dask_ports(stack: Stack) -> list[int]:
    parent = stack.process("dask-workers")
    if parent is None:
        raise NotTried("there are no workers")
    processes = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children(recursive=True)]
    return sorted({connection.laddr.port for one in processes for connection in _listening(one)})


def _listening(process: psutil.Process) -> list[Any]:
    return [one for one in process.net_connections() if one.status == psutil.CONN_LISTEN]


def _file_tries(stack: Stack) -> Iterator[Try]:
    if _user() is None:
        return
    for path in sorted({path for pattern in FILES for path in stack.folder.glob(pattern) if path.is_file()}):
        name = str(path.relative_to(stack.folder))
        yield Try("read the stack's files", 80, "read", [str(path)], name)
        yield Try("write the stack's files", 80, "write", [str(path)], name)
    yield Try("list the stack's folder", 80, "names", [str(stack.folder)])
    for part in stack.state.processes:  # which stay; a run of a schedule may be gone when its turn comes
        yield Try("read the environment of a process", 80, "read", [f"/proc/{part.pid}/environ"], part.name)
        yield Try("read the memory of a process", 80, "read", [f"/proc/{part.pid}/mem"], part.name)
        yield Try("end a process", 80, "kill", [part.pid], part.name)
    for path in stores.unix_sockets(stack):
        yield Try("SeaweedFS by its sockets in /tmp", 80, "unix_socket", [str(path)], path.name)


def _check_command_lines(stack: Stack) -> str:
    """Everybody may read those."""
    secrets = (stack.keys.secret, stack.keys.internal, stack.keys.prefect.partition(":")[2])
    lines = [" ".join(process.cmdline()) for process in marked(stack.state.id)]
    assert not any(secret in line for secret in secrets for line in lines), "a secret is on a command line"
    mode = stack.folder.stat().st_mode & 0o777
    assert mode == 0o700, f"the folder has mode {mode:o}"
    return f"none of {len(lines)}; the folder has mode {mode:o}"


def _check_addresses(stack: Stack) -> str:
    addresses = {one.laddr.ip for process in marked(stack.state.id) for one in _listening(process)}
    assert addresses == {"127.0.0.1"}, f"open at {addresses}"
    return "all listen on 127.0.0.1"


def _needs_root() -> str:
    raise NeedsRoot("nobody else can act as another user")


def _prepared_folder(folder: Path) -> str:
    """Its settings would become our environment."""
    place = folder / "prepared"
    place.mkdir()
    write_state(place, State(id="evil", settings={"MUDG_DOWNLOAD__COMMAND": "/bin/sh"}))
    if _user() is None:
        raise NeedsRoot("a folder can be given away by nobody else")
    for path in (place, *place.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    try:
        find_stack(place)
    except InputError as error:
        return error.what
    raise AssertionError("it was read")
