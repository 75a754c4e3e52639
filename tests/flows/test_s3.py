"""The same flow with its artifacts on a real S3 server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.demo_runs import FLAGS, mudg
from tests.support.seaweed import SeaweedServer

pytestmark = pytest.mark.timeout(1200)  # whole runs of the pipeline, on a machine that may be busy


def test_index_on_s3_is_found_by_another_machine(seaweed: SeaweedServer, tmp_path: Path) -> None:
    """The second folder knows nothing of the first but the store's address."""
    flags = [*FLAGS, "--set", f"storage.url=s3://{seaweed.bucket}/flows"]
    flags += ["--set", f"storage.endpoint_url={seaweed.endpoint}"]
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    built = mudg("index", "build", "--json", *flags, cwd=here, **seaweed.environment())
    assert built.returncode == 0, built.stderr[-3000:]
    assert json.loads(built.stdout)["computed"] > 0
    found = mudg("search", "a photo of a cat", "--json", *flags, cwd=there, **seaweed.environment())
    assert found.returncode == 0, found.stderr[-3000:]
    assert len(json.loads(found.stdout)["hits"]) == 10


def test_f32_wrong_credentials_fail_before_anything_starts(seaweed: SeaweedServer, tmp_path: Path) -> None:
    flags = ["--set", f"storage.url=s3://{seaweed.bucket}/x"]
    flags += ["--set", f"storage.endpoint_url={seaweed.endpoint}"]
    secret = "not-the-secret"
    wrong = seaweed.environment() | {"AWS_SECRET_ACCESS_KEY": secret}
    refused = mudg("index", "build", "--json", *flags, cwd=tmp_path, **wrong)
    assert refused.returncode == 4
    assert json.loads(refused.stdout)["error"] == "CredentialsError"
    assert secret not in refused.stdout + refused.stderr
