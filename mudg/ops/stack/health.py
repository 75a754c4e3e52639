"""Does a part of the stack do what it is there for? Each question is short; whoever asks repeats it."""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from mudg.ops.stack.credentials import certificate_of
from mudg.ops.stack.running import BUCKET, POOL, Stack

SECONDS = 5.0


def server_answers(stack: Stack) -> bool:
    return _get(f"{stack.api_url}/health") and _get(stack.ui_url)


def scheduler_answers(stack: Stack) -> bool:
    return _get(f"http://127.0.0.1:{stack.state.ports['dask-http']}/health")


def _get(address: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(address, timeout=SECONDS, trust_env=False).status_code == httpx.codes.OK
    return False


def store_takes_files(stack: Stack) -> bool:
    """A file that was put into the bucket can be opened by a signed link, as a browser would."""
    import boto3  # type: ignore[import-untyped, unused-ignore]
    from botocore.config import Config  # type: ignore[import-untyped, unused-ignore]
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped, unused-ignore]

    client = boto3.session.Session().client(
        "s3",
        endpoint_url=stack.s3_url,
        region_name="us-east-1",
        aws_access_key_id=stack.keys.access,
        aws_secret_access_key=stack.keys.secret,
        config=Config(
            connect_timeout=SECONDS,
            read_timeout=SECONDS,
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
        ),
    )
    with closing(client), suppress(BotoCoreError, ClientError):
        if BUCKET not in [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]:
            client.create_bucket(Bucket=BUCKET)
        client.put_object(Bucket=BUCKET, Key="ready", Body=b"ready", ContentType="text/plain")
        return _get(client.generate_presigned_url("get_object", {"Bucket": BUCKET, "Key": "ready"}))
    return False


def workers_are_there(stack: Stack) -> bool:
    """As the scheduler sees it."""
    with suppress(OSError), dask_client(stack.dask_address, folder=stack.folder) as client:
        return bool(len(client.scheduler_info(n_workers=-1)["workers"]) >= stack.state.workers)
    return False


def dask_client(address: str, seconds: float = SECONDS, folder: Path | None = None) -> Any:
    """With the certificate of a stack's folder, or that of Dask's own configuration. Untyped, as Dask's
    annotations cover only a part of it."""
    from distributed import Client
    from distributed.security import Security

    security = None
    if folder is not None:
        cert, key = (str(file) for file in certificate_of(folder))
        security = Security(  # type: ignore[no-untyped-call]
            tls_ca_file=cert, tls_client_cert=cert, tls_client_key=key, require_encryption=True
        )
    return Client(address, timeout=seconds, set_as_default=False, security=security)  # type: ignore[no-untyped-call]


def worker_reports(stack: Stack) -> bool:
    """The server has heard of it since it was started: it remembers earlier ones, too."""
    process = stack.process("prefect-worker")
    started = datetime.fromtimestamp(process.started, UTC) if process else datetime.now(UTC)
    url = f"{stack.api_url}/work_pools/{POOL}/workers/filter"
    with suppress(httpx.HTTPError):
        reply = httpx.post(url, json={}, auth=stack.auth, timeout=SECONDS, trust_env=False)
        heartbeats = [worker["last_heartbeat_time"] for worker in reply.raise_for_status().json()]
        return any(datetime.fromisoformat(heartbeat) >= started for heartbeat in heartbeats)
    return False
