"""The whole stack, for real: `mudg up`, `mudg doctor`, `mudg down`, as a user types them.

One stack serves all tests of this file, which go through its life in order.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from distributed import Client
from distributed.security import Security
from prefect import flow, task
from prefect.client.orchestration import SyncPrefectClient
from prefect.states import Running

from mudg.ops.stack.health import dask_client, workers_are_there
from mudg.ops.stack.parts import PARTS, weed
from mudg.ops.stack.ports import is_free
from mudg.ops.stack.prefect_setup import GPU_LIMIT, schedule_index
from mudg.ops.stack.processes import marked
from mudg.ops.stack.running import POOL, Stack, find_stack
from mudg.ops.stack.state import read_state
from tests.support.demo_runs import MUDG, environment, mudg

pytestmark = pytest.mark.timeout(900)  # a machine may be busy

CRON = "17 4 * * 2"
DASK_PAGES = ("info/main/workers.html", "info/main/logs.html", "json/identity.json", "metrics", "eventstream")
SETTINGS = ("--workers", "1", "--set", "corpus.rows=600", "--set", "compute.memory_limit=1GiB")


@dataclass(frozen=True)
class Up:
    """A folder with a stack, and what `mudg up` said of it."""

    cwd: Path
    told: dict[str, Any]

    @property
    def folder(self) -> Path:
        return self.cwd / ".mudg/stack"


def stack_of(up: Up) -> Stack:
    stack = find_stack(up.folder)
    assert stack is not None
    return stack


def api_client(up: Up) -> SyncPrefectClient:
    return SyncPrefectClient(up.told["api"], auth_string=stack_of(up).keys.prefect)


@task
def nothing() -> None:
    """What a run that was killed was at."""


@flow
def killed() -> None:
    """Such a run."""


def said(*arguments: str, cwd: Path, ends: int = 0) -> dict[str, Any]:
    done = mudg(*arguments, "--json", cwd=cwd)
    assert done.returncode == ends, done.stdout + done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    cwd = tmp_path_factory.mktemp("stack")
    try:
        yield Up(cwd, said("up", "--index-cron", CRON, "--gpu-limit", "3", *SETTINGS, cwd=cwd))
    finally:
        mudg("down", cwd=cwd)


def checks(up: Up, ends: int = 0) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in said("doctor", cwd=up.cwd, ends=ends)["checks"]}


def test_everything_is_started_and_well(up: Up) -> None:
    assert up.told["started"] == list(PARTS)
    found = checks(up)
    well = {"stack", "storage", "prefect", "work pool", "deployments", "gpu limit", "dask", "dask versions"}
    assert {name for name in well if found[name]["level"] == "ok"} == well
    assert up.told["s3"] in found["storage"]["detail"] and "3 tasks" in found["gpu limit"]["detail"]
    assert httpx.get(up.told["ui"], trust_env=False).headers["content-type"].startswith("text/html")


def test_the_server_knows_schedule_and_limit_and_when_a_run_is_dead(up: Up) -> None:
    with api_client(up) as client:
        assert client.read_global_concurrency_limit_by_name(GPU_LIMIT).limit == 3
        [automation] = client.read_automations_by_name("mudg-run-dead")
        assert automation.enabled
    assert scheduled(up) == (CRON, True)


def scheduled(up: Up) -> tuple[str, bool]:
    with api_client(up) as client:
        [built] = [one for one in client.read_deployments() if one.name == "build-index"]
        [schedule] = client.read_deployment_schedules(built.id)
    return schedule.schedule.cron, schedule.active


def test_a_second_up_changes_the_schedule_and_starts_nothing(up: Up) -> None:
    again = said("up", "--index-cron", "off", cwd=up.cwd)
    assert again["started"] == [] and again["processes"] == up.told["processes"]
    assert scheduled(up) == (CRON, False)
    schedule_index(stack_of(up), "0 4 * * *")
    assert scheduled(up) == ("0 4 * * *", True)


def test_nothing_listens_beyond_this_machine(up: Up) -> None:
    state = read_state(up.folder)
    assert state is not None
    listening = [
        connection.laddr
        for process in marked(state.id)
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert {address.ip for address in listening} == {"127.0.0.1"}
    assert set(state.ports.values()) <= {address.port for address in listening}


def test_f80_without_keys_nobody_reads_or_writes_the_store_by_http(up: Up) -> None:
    """S3, filer, master (which signed what anybody asked for) and volume; and what Dask shows of tasks."""
    stack = stack_of(up)
    port = stack.state.ports
    closed = {
        f"{port['s3']}/mudg/ready": 403,
        f"{port['s3']}/mudg?list-type=2": 403,
        f"{port['s3-filer']}/buckets/mudg/ready": 404,
        f"{port['s3-master']}/dir/assign": 404,
        f"{port['s3-master']}/dir/lookup?volumeId=1": 404,
        f"{port['s3-volume']}/1,01637037d6": 401,
        **{f"{port['dask-http']}/{page}": 404 for page in DASK_PAGES},
    }
    with httpx.Client(trust_env=False) as client:
        for address, status in closed.items():
            url = f"http://127.0.0.1:{address}"
            assert client.get(url).status_code == status, address
            for method in ("PUT", "POST", "DELETE"):
                assert client.request(method, url, content=b"mine").status_code in (401, 403, 404, 405), url


def test_f76_nobody_submits_code_to_dask_without_the_certificate(up: Up) -> None:
    """Neither in plain nor with a certificate of one's own."""
    address = up.told["dask"]
    own = Security.temporary()  # type: ignore[no-untyped-call]
    for url, security in ((address, own), (address.replace("tls://", "tcp://"), None)):
        with pytest.raises(OSError):
            Client(url, timeout=3, security=security, set_as_default=False)  # type: ignore[no-untyped-call]
    with dask_client(address, folder=up.folder) as client:
        assert client.submit(abs, -1).result(timeout=60) == 1


def test_f80_another_user_without_the_certificate_cannot_use_grpc(up: Up, tmp_path: Path) -> None:
    """`weed shell` deleted and moved objects. With the certificate it still does all that."""
    port = stack_of(up).state.ports
    words = [
        weed(),
        "shell",
        f"-master=127.0.0.1:{port['s3-master']}",
        f"-filer=127.0.0.1:{port['s3-filer']}",
    ]
    tmp_path.chmod(0o777)
    theirs = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    nobody = 65534 if os.geteuid() == 0 else None

    def shell(environment: dict[str, str], user: int | None) -> str:
        with subprocess.Popen(
            words,
            env=environment,
            user=user,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            with suppress(subprocess.TimeoutExpired):
                return process.communicate("fs.ls /buckets/mudg\nexit\n", timeout=10)[0]
            process.kill()
            return process.communicate()[0]

    assert "ready" not in shell(theirs, nobody)
    assert "ready" in shell(theirs | PARTS["s3"].environment(stack_of(up)), None)


def test_secrets_are_nowhere_but_in_their_files(up: Up) -> None:
    stack = find_stack(up.folder)
    assert stack is not None
    texts = [path.read_text(errors="replace") for path in (up.folder / "logs").iterdir()]
    texts += [(up.folder / "stack.json").read_text(), *map(str, up.told.values())]
    texts += [" ".join(process.cmdline()) for process in marked(stack.state.id)]
    assert not any(
        key in text for key in (stack.keys.secret, stack.keys.internal, stack.keys.prefect) for text in texts
    )
    assert up.folder.stat().st_mode & 0o777 == 0o700


def test_workers_get_the_users_settings_and_the_threads_of_a_local_cluster(up: Up) -> None:
    names = ("MUDG_CORPUS__ROWS", "MUDG_STORAGE__URL", "OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_")
    with dask_client(up.told["dask"], 30, folder=up.folder) as client:
        [found] = client.run(lambda: [os.environ.get(name) for name in names]).values()
        [worker] = client.scheduler_info()["workers"].values()
    omp = os.environ.get("OMP_NUM_THREADS", "1")
    assert found == ["600", "s3://mudg/store", omp, str(256 << 20)]
    assert worker["memory_limit"] == 1 << 30 and worker["nthreads"] == 1


def test_a_killed_part_is_told_and_mended(up: Up) -> None:
    before = up.told["processes"]
    os.kill(before["dask-workers"], signal.SIGKILL)
    found = checks(up, ends=1)
    assert found["stack"]["level"] == "fault" and "dask-workers" in found["stack"]["detail"]
    mended = said("up", cwd=up.cwd)
    assert mended["started"] == ["dask-workers"]
    same = {name: pid for name, pid in mended["processes"].items() if name != "dask-workers"}
    assert same == {name: pid for name, pid in before.items() if name != "dask-workers"}
    stack = find_stack(up.folder)
    assert stack is not None and workers_are_there(stack)


def test_down_leaves_no_process_no_port_and_no_run(up: Up) -> None:
    state = read_state(up.folder)
    with api_client(up) as client:  # a run whose process was killed before it could say so
        deployment = client.create_deployment(client.create_flow(killed), "killed", work_pool_name=POOL)
        run = client.create_flow_run_from_deployment(deployment, state=Running())
        client.create_task_run(nothing, run.id, "0", state=Running())
    assert state is not None and len(marked(state.id)) >= len(PARTS)
    told = said("down", cwd=up.cwd)
    assert set(told["ended"]) == set(PARTS) and told["ended"][0] == "prefect-worker"
    assert not marked(state.id)
    assert [port for port in state.ports.values() if not is_free(port)] == []
    assert not list(Path("/tmp").glob(f"seaweedfs-s3-*{state.ports['s3']}.sock"))
    with closing(sqlite3.connect(up.folder / "prefect/prefect.db")) as database:
        query = "SELECT state_type FROM {} WHERE state_type NOT IN ('SCHEDULED', 'COMPLETED')"
        left = [database.execute(query.format(table)).fetchall() for table in ("flow_run", "task_run")]
    assert left == [[("CRASHED",)], [("CRASHED",)]]
    assert said("down", cwd=up.cwd) == {"ended": [], "wiped": []}
    assert "prefect" in said("down", "--wipe", cwd=up.cwd)["wiped"] and not up.folder.exists()


def test_what_a_killed_up_has_started_is_ended_by_down(tmp_path: Path) -> None:
    command = [MUDG, "up", "--workers", "1"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as starting:
        deadline = time.monotonic() + 300
        while not (state := read_state(tmp_path / ".mudg/stack")) or len(state.processes) < 2:
            assert time.monotonic() < deadline and starting.poll() is None
            time.sleep(0.02)
        starting.kill()
    assert state is not None and marked(state.id)
    said("down", cwd=tmp_path)
    assert not marked(state.id)
