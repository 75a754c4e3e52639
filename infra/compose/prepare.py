"""Sets the stack up; a second run changes nothing: a bucket, a work pool, our deployments, a limit of tasks
that use a GPU at a time, and the automation that ends dead runs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from botocore.exceptions import ClientError
from prefect.client.orchestration import get_client

from mudg.ops.stack.prefect_setup import GPU_LIMIT, end_dead_runs
from mudg_core.settings import ComputeSettings, StorageSettings, load_settings
from mudg_core.storage.objects_s3 import make_client

ROOT = Path(__file__).parents[2]
COMMANDS = (
    ("prefect", "work-pool", "create", "mudg", "--type", "process", "--overwrite"),
    ("prefect", "--no-prompt", "deploy", "--all"),
)


def make_bucket(settings: StorageSettings) -> None:
    """Only one that we create gets our lifecycle rules: an existing one is configured by its owner."""
    bucket = settings.url.removeprefix("s3://").partition("/")[0]
    client = make_client(settings)
    try:
        client.head_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] != 404:
            raise
        client.create_bucket(Bucket=bucket)
        rules = json.loads((ROOT / "infra/s3/lifecycle.json").read_text())
        client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=rules)
    finally:
        client.close()


def configure_server(gpus: int) -> None:
    """Limits hold over all runs, whichever cluster they use."""
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(GPU_LIMIT, gpus)
        end_dead_runs(client)


def main() -> None:
    settings = load_settings()
    if settings.storage.url.startswith("s3://"):
        make_bucket(settings.storage)
    for command in COMMANDS:
        subprocess.run(command, cwd=ROOT, check=True)
    configure_server(_gpus(settings.compute))


def _gpus(compute: ComputeSettings) -> int:
    """On CPUs each worker counts as one. This container sees no GPU, so `GPUS` says how many there are."""
    if compute.device.startswith("cuda"):
        return int(os.environ.get("GPUS") or 1)
    return compute.workers


if __name__ == "__main__":
    main()
