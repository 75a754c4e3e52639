"""What a flow says of an S3 server that does not let it in; tests/stack has runs on one that does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.places import here
from tests.support.seaweed import SeaweedServer


def test_f32_wrong_credentials_fail_before_anything_starts(
    s3_environment: SeaweedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ["--set", f"storage.url=s3://{s3_environment.bucket}/x"]
    flags += ["--set", f"storage.endpoint_url={s3_environment.endpoint}"]
    secret = "not-the-secret"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.setattr("tasks.executors.session.prefect_api", None)
    refused = here(tmp_path, "index", "build", "--json", *flags, ends=4)
    assert json.loads(refused.stdout.splitlines()[-1])["error"] == "CredentialsError"
    assert secret not in refused.stdout + refused.stderr
