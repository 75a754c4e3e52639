"""A team's stack in a folder of its own, seen from outside: by the `mudg` command and Prefect's HTTP API."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import psutil
import yaml

from mudg.ops.stack.running import find_stack
from mudg_core.settings import load_settings
from mudg_core.stage_names import stage_name
from mudg_core.storage import ArtifactStore
from tests.support.demo_runs import SMALL, mudg

T = TypeVar("T")
ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
SETTINGS = SMALL | {"train.iterations": 30, "evaluate.alpha_points": 0}
WAIT = 240.0


@dataclass
class Team:
    """`submitted`: what runs were asked for, so that a failing test can say where it stood."""

    folder: Path
    submitted: list[dict[str, Any]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        stack = find_stack(self.folder / ".mudg/stack")
        assert stack is not None, "the stack is not up"
        return stack.environment()

    @property
    def login_url(self) -> str:
        stack = find_stack(self.folder / ".mudg/stack")
        assert stack is not None, "the stack is not up"
        return stack.login_url

    @property
    def store(self) -> ArtifactStore:
        return ArtifactStore(load_settings(environ=self.environment).storage)

    def pid(self, part: str) -> int:
        stack = find_stack(self.folder / ".mudg/stack")
        process = stack.process(part) if stack else None
        assert process is not None, f"{part} was never started"
        return process.pid

    def command(self, *arguments: str) -> dict[str, Any]:
        """The JSON object that a command ends with. Those that are about the stack find it by themselves; to
        others it must be named, as by `source .mudg/stack/env`."""
        named = {} if arguments[0] in ("up", "down", "doctor", "target") else self.environment
        done = mudg(*arguments, "--json", cwd=self.folder, **named)
        assert done.returncode == 0, f"{arguments}: {done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return result

    def up(self, *flags: str) -> dict[str, Any]:
        settings = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
        return self.command("up", *flags, *settings)

    def submit(self, name: str, *flags: str, **spec: Any) -> dict[str, Any]:
        body = {"name": name} | spec
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(body, sort_keys=False))
        result = self.command("target", "submit", str(path), *flags)
        self.submitted.append(result)
        return result

    def ask(self, path: str, **body: Any) -> list[dict[str, Any]]:
        """Prefect's own answer; a server that is away for a moment is asked again."""

        found: list[dict[str, Any]] = self._send("POST", path, body).json()
        return found

    def _send(self, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
        def answer() -> httpx.Response | None:
            address = f"{self.environment['PREFECT_API_URL']}/{path}"
            try:
                user, _, password = self.environment["PREFECT_API_AUTH_STRING"].partition(":")
                got = httpx.request(method, address, json=body, timeout=20, auth=(user, password))
            except httpx.TransportError:
                return None
            return None if got.status_code == httpx.codes.SERVICE_UNAVAILABLE else got.raise_for_status()

        return until(answer, f"an answer of Prefect to {path}", 60)

    def runs(self, flow: str) -> list[dict[str, Any]]:
        """Runs of a flow, oldest first."""
        wanted = {"name": {"any_": [flow]}}
        return self.ask("flow_runs/filter", flows=wanted, sort="START_TIME_ASC")

    def start(self, flow: str) -> str:
        """A run of its deployment at once, whatever the schedule says."""
        made = self._send("POST", f"deployments/{self._deployment(flow)['id']}/create_flow_run", {})
        return str(made.json()["id"])

    def _deployment(self, flow: str) -> dict[str, Any]:
        (found,) = self.ask("deployments/filter", flows={"name": {"any_": [flow]}})
        return found

    def end_schedule(self, flow: str) -> None:
        """From now on its deployment runs only when it is asked to."""
        found = self._deployment(flow)
        for schedule in found["schedules"]:
            self._send("PATCH", f"deployments/{found['id']}/schedules/{schedule['id']}", {"active": False})

    def task_runs(self, run: str) -> list[dict[str, Any]]:
        return self.ask("task_runs/filter", task_runs={"flow_run_id": {"any_": [run]}}, limit=200)

    def artifacts(self, run: str) -> list[dict[str, Any]]:
        return self.ask("artifacts/filter", artifacts={"flow_run_id": {"any_": [run]}}, limit=200)

    def ended(self, run: str, seconds: float = WAIT) -> dict[str, Any]:
        """A flow run once it has ended, however that was."""

        def look() -> dict[str, Any] | None:
            (found,) = self.ask("flow_runs/filter", flow_runs={"id": {"any_": [run]}})
            return found if found["state_type"] in ENDED else None

        return until(look, f"the end of run {run}", seconds)

    def await_task(self, run: str, stage: str, since: float = 0.0) -> None:
        """Until a task of a stage is at work, which began after a moment."""

        def look() -> bool | None:
            tasks = [task for task in self.task_runs(run) if task["name"].startswith(f"{stage_name(stage)} ")]
            assert not any(task["state_type"] in ENDED for task in tasks), f"{stage} has ended already"
            running = [task["state"] for task in tasks if task["state_type"] == "RUNNING"]
            told = [state for state in running if state]  # of one that has just begun the server may lack it
            return any(moment(state["timestamp"]) > since for state in told) or None

        until(look, f"a running task of {stage}", WAIT)

    def processes(self) -> list[str]:
        """Of everything that was told of the stack's folder: the commands."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = [*process.cmdline(), *process.environ().values()]
                if any(str(self.folder / ".mudg") in word for word in words):
                    found.append(" ".join(process.cmdline()))
        return found

    def process_of(self, run: str) -> psutil.Process | None:
        """The process that a flow run's own code runs in, if it is still there."""
        for process in psutil.process_iter():
            try:
                if process.environ().get("PREFECT__FLOW_RUN_ID") == run:
                    return process
            except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        return None


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def until(look: Callable[[], T | None], what: str, seconds: float) -> T:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (found := look()) is not None:
            return found
        time.sleep(0.5)
    raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")
