"""`mudg down`: stops what `mudg up` has started and nothing else, users before those that they use."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx

from mudg.ops.stack import ports
from mudg.ops.stack.credentials import KEYS_FILE
from mudg.ops.stack.parts import DEPLOY, PARTS
from mudg.ops.stack.processes import end
from mudg.ops.stack.running import POOL, Stack, find_stack
from mudg.ops.stack.state import FOLDERS, LOCK_FILE, STATE_FILE, locked, read_state
from mudg_core.errors import OrchestrationError

CRASHED = {"state": {"type": "CRASHED", "message": "the stack was taken down"}, "force": True}
DEPLOY_GRACE = 5.0
ORDER = ("prefect-worker", DEPLOY, "dask-workers", "dask-scheduler", "prefect-server", "s3")
DATA = (*FOLDERS, "dask.yaml", "env", KEYS_FILE, STATE_FILE, LOCK_FILE)


def stop_part(stack: Stack, name: str) -> bool:
    """Whether anything of it was there to be stopped."""
    part = PARTS.get(name)
    grace = part.grace if part else DEPLOY_GRACE
    all_at_once = part is not None and not part.ends_its_own
    stopped = end(stack.state.id, name, stack.process(name), grace, all_at_once=all_at_once)
    stack.forget(name)
    if name == "s3":
        _remove_sockets(stack)
    return stopped


def _remove_sockets(stack: Stack) -> None:
    """SeaweedFS has them in /tmp, where the longest path of a folder cannot be too long for one, and leaves
    them. Those of ports that somebody else has by now are theirs."""
    port = stack.state.ports.get("s3")
    if port is not None and ports.is_free(port):
        for file in (f"seaweedfs-s3-{port}.sock", f"seaweedfs-s3-grpc-{port + ports.GRPC_OFFSET}.sock"):
            Path("/tmp", file).unlink(missing_ok=True)


def stop_stack(folder: Path) -> Iterator[str]:
    """The name of each part that was there, once it is gone. What the stack has stored stays."""
    state = read_state(folder)
    if state is None:
        return
    with locked(folder):
        stack = Stack(folder, read_state(folder) or state)
        for name in ORDER:
            if stop_part(stack, name):
                yield name
            if name == "prefect-worker" and stack.listens("prefect-server"):
                crash_open_runs(stack)


def crash_open_runs(stack: Stack) -> None:
    """Runs that were killed before they could report it would be shown as running for ever. To be called only
    if the server is our own: another one may have its port by now, and runs of its own."""
    runs = {"work_pools": {"name": {"any_": [POOL]}}, "flow_runs": _in("RUNNING", "PENDING", "CANCELLING")}
    with (
        suppress(httpx.HTTPError),
        httpx.Client(base_url=stack.api_url, auth=stack.auth, timeout=10, trust_env=False) as client,
    ):
        for run in client.post("/flow_runs/filter", json=runs).raise_for_status().json():
            tasks = {"flow_runs": {"id": {"any_": [run["id"]]}}, "task_runs": _in("RUNNING", "PENDING")}
            for task in client.post("/task_runs/filter", json=tasks).raise_for_status().json():
                client.post(f"/task_runs/{task['id']}/set_state", json=CRASHED)
            client.post(f"/flow_runs/{run['id']}/set_state", json=CRASHED)


def _in(*states: str) -> dict[str, object]:
    return {"state": {"type": {"any_": states}}}


def wipe(folder: Path) -> list[str]:
    """Deletes what stacks keep, and only in a folder that has held one: a mistyped folder loses nothing."""
    if read_state(folder) is None:
        return []
    with locked(folder):
        if find_stack(folder):
            raise OrchestrationError(
                what="it was started again meanwhile", where=str(folder), fix="mudg down --wipe"
            )
        names = [name for name in DATA if (folder / name).exists()]
        for name in names:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
    return names
