"""Does a part of the stack do what it is there for? Each question is short; whoever asks repeats it."""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from mudg.ops.stack.certificates import certificate_of
from mudg.ops.stack.running import BUCKET, POOL, Stack

SECONDS = 5.0


def server_answers(stack: Stack) -> bool:
    return _get(f"{stack.api_url}/health") and _get(stack.ui_url)


def scheduler_answers(stack: Stack) -> bool:
    return _get(f"http://127.0.0.1:{stack.state.ports['dask-http']}/health")


def store_takes_files(stack: Stack) -> bool:
    """A file that was put into the bucket can be opened by a signed link, as a browser would."""
    import boto3  # type: ignore[import-untyped, unused-ignore]
    from botocore.config import Config  # type: ignore[import-untyped, unused-ignore]
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped, unused-ignore]

    config = Config(
        connect_timeout=SECONDS,
        read_timeout=SECONDS,
        retries={"total_max_attempts": 1},
        s3={"addressing_style": "path"},
    )
    client = boto3.session.Session().client(
        "s3",
        endpoint_url=stack.s3_url,
        region_name="us-east-1",
        aws_access_key_id=stack.keys.access,
        aws_secret_access_key=stack.keys.secret,
        config=config,
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
    """With the keys of a stack's folder, or those of Dask's own configuration. Untyped, as Dask's annotations
    cover only a part of it."""
    from distributed import Client
    from distributed.security import Security

    security = None
    if folder is not None:
        files = certificate_of(folder)
        security = Security(  # type: ignore[no-untyped-call]
            tls_ca_file=str(files.ca),
            tls_client_cert=str(files.cert),
            tls_client_key=str(files.key),
            require_encryption=True,
        )
    return Client(address, timeout=seconds, set_as_default=False, security=security)  # type: ignore[no-untyped-call]


def worker_reports(stack: Stack) -> bool:
    """It has told the server of itself since it was started: the server remembers earlier ones, too."""
    process = stack.process("prefect-worker")
    started = datetime.fromtimestamp(process.started, UTC) if process else datetime.now(UTC)
    try:
        reply = httpx.post(
            f"{stack.api_url}/work_pools/{POOL}/workers/filter",
            json={},
            auth=stack.auth,
            timeout=SECONDS,
            trust_env=False,
        )
        found = reply.raise_for_status().json()
    except httpx.HTTPError:
        return False
    return any(datetime.fromisoformat(one["last_heartbeat_time"]) >= started for one in found)


def _get(address: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(address, timeout=SECONDS, trust_env=False).status_code == httpx.codes.OK
    return False
