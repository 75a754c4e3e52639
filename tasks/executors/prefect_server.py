"""A private Prefect server for runs without one, so that nobody has to start anything first.

Prefect's own temporary server would be started once in every Dask worker. This one is started once, keeps
its database beside the artifacts, listens on 127.0.0.1 only, and dies with the process that started it, even
when that process is killed. Ctrl-C in a terminal does not reach it: a run that ends in order needs it to the
last.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
from prefect.events.worker import EventsWorker
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_KEY, PREFECT_API_URL, temporary_settings

from mudg_core.errors import OrchestrationError
from mudg_core.processes import dying_with
from tasks.executors.guarded_api import guarding, new_password
from tasks.executors.prefect_database import keep, lay_out

START_SECONDS = 120.0
STOP_SECONDS = 3.0
SETTLE_SECONDS = 10.0
QUIET_SECONDS = 1.0  # in which the server has heard of nothing new
REPLY_SECONDS = 10.0


@contextmanager
def prefect_api(home: Path) -> Iterator[str]:
    """The API to use: the one that the user has configured, or a private server for the time of the block."""
    if configured := PREFECT_API_URL.value():
        check_password(configured)
        yield configured
        return
    home = home.absolute()
    home.mkdir(parents=True, exist_ok=True)
    database = home / "prefect.db"
    is_to_make = lay_out(database)
    port = _free_port()
    url, password = f"http://127.0.0.1:{port}/api", new_password()
    with (home / "server.log").open("ab") as log:
        process = _start(port, home, database, log.fileno(), guarding(port, password))
    try:
        _wait_until_healthy(process, url, home)
        if is_to_make:
            keep(database)
        with _leading_to(url, password):
            started = datetime.now(UTC)
            yield url
            _settle(url, started, password)
    finally:
        _stop(process)


@contextmanager
def _leading_to(url: str, password: str) -> Iterator[None]:
    """Dask workers are processes of their own and inherit the environment."""
    ours = {"PREFECT_API_URL": url, "PREFECT_API_AUTH_STRING": password}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        with temporary_settings({PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: password}):
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def check_password(url: str) -> None:
    """Before any work: Prefect's own client would say no more than `401`, and that from deep inside a run. A
    server that does not answer is for others to tell of."""
    password = PREFECT_API_AUTH_STRING.value() or ""
    auth = (password.partition(":")[0], password.partition(":")[2]) if password else None
    if PREFECT_API_KEY.value():  # Prefect's cloud
        return
    with suppress(httpx.TransportError):
        reply = httpx.get(f"{url}/admin/version", auth=auth, timeout=REPLY_SECONDS)
        if reply.status_code == httpx.codes.UNAUTHORIZED:
            raise OrchestrationError(
                what=f"the Prefect server {'refuses the password' if password else 'wants a password'}",
                where=url,
                fix="set PREFECT_API_AUTH_STRING to the server's (that of `mudg up` is in .mudg/stack/env)",
            )


def server_command(port: int, level: str = "error") -> list[str]:
    """Prefect's server for this machine alone. It keeps connections longer than Prefect's clients do (25 s):
    a client that asks while one is being closed waits two seconds and more before it asks again."""
    command = [sys.executable, "-m", "uvicorn", "--factory"]
    command += ["tasks.executors.guarded_api:create_app", "--host", "127.0.0.1", "--port", str(port)]
    return [*command, "--log-level", level, "--lifespan", "on", "--timeout-keep-alive", "60"]


def _start(
    port: int, home: Path, database: Path, log: int, guards: dict[str, str]
) -> subprocess.Popen[bytes]:
    environment = (
        os.environ
        | guards
        | {
            "PREFECT_HOME": str(home),
            "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{database}",
            "PREFECT_UI_ENABLED": "0",
            "PREFECT_API_BLOCKS_REGISTER_ON_START": "0",  # we use none, and finding them means importing Dask
            "PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION": "0",
            "PREFECT__SERVER_EPHEMERAL": "1",
            "PREFECT__SERVER_FINAL": "1",
        }
    )
    return subprocess.Popen(
        server_command(port),
        env=environment,
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=dying_with(os.getpid()),
    )


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str, home: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    with httpx.Client(timeout=2.0, trust_env=False) as client:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if client.get(f"{url}/health").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
    raise OrchestrationError(
        what="the private Prefect server did not start",
        where=str(home / "server.log"),
        fix="read that log, or set PREFECT_API_URL to a server of your own",
    )


def _settle(url: str, since: datetime, password: str) -> None:
    """Prefect tells its server of tasks by events, which it records in its own time. A server that ends
    before keeps tasks that seem to run for good, and whoever looks for those that hang finds them."""
    EventsWorker.drain_all(timeout=SETTLE_SECONDS)
    deadline = time.monotonic() + SETTLE_SECONDS
    ours = {"flow_runs": {"start_time": {"after_": since.isoformat()}}}
    unfinished = ours | {"task_runs": {"state": {"type": {"any_": ["PENDING", "RUNNING"]}}}}
    user, _, word = password.partition(":")
    with httpx.Client(timeout=2.0, trust_env=False, auth=(user, word)) as client, suppress(httpx.HTTPError):
        known, since_then = -1, time.monotonic()
        while time.monotonic() < deadline:
            if client.post(f"{url}/task_runs/count", json=unfinished).json():
                since_then = time.monotonic()
            count = client.post(f"{url}/task_runs/count", json=ours).json()
            if count != known:  # of a task whose events are still in line the server knows nothing
                known, since_then = count, time.monotonic()
            if time.monotonic() - since_then > QUIET_SECONDS:
                return
            time.sleep(0.1)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
