"""The same flow with its artifacts on a real S3 server."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.demo_runs import FLAGS, mudg
from tests.support.places import Place, here
from tests.support.seaweed import SeaweedServer

pytestmark = pytest.mark.timeout(1200)  # whole runs of the pipeline, on a machine that may be busy


def test_index_on_s3_is_found_by_another_machine(
    servers: Place, s3_environment: SeaweedServer, tmp_path: Path
) -> None:
    """The second folder knows nothing of the first but the store's address."""
    flags = [*FLAGS, "--set", f"storage.url=s3://{s3_environment.bucket}/flows"]
    flags += ["--set", f"storage.endpoint_url={s3_environment.endpoint}", "--set", "corpus.rows=300"]
    place, there = replace(servers, folder=tmp_path / "here", flags=flags), tmp_path / "there"
    for folder in (place.folder, there):
        folder.mkdir()
    assert place.run("index", "build", "--set", "index.variant=paired")["computed"] > 0
    found = mudg("search", "a photo of a cat", "--json", *flags, cwd=there, **s3_environment.environment())
    assert found.returncode == 0, found.stderr[-3000:]
    assert len(json.loads(found.stdout)["hits"]) == 10


def test_f32_wrong_credentials_fail_before_anything_starts(
    s3_environment: SeaweedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ["--set", f"storage.url=s3://{s3_environment.bucket}/x"]
    flags += ["--set", f"storage.endpoint_url={s3_environment.endpoint}"]
    secret = "not-the-secret"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.setattr("flows.session.prefect_api", None)
    refused = here(tmp_path, "index", "build", "--json", *flags, ends=4)
    assert json.loads(refused.stdout.splitlines()[-1])["error"] == "CredentialsError"
    assert secret not in refused.stdout + refused.stderr
