"""One suite over two kinds of store: a local folder, and a real S3 server."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore
from tests.support.seaweed import SeaweedServer, s3_environment, seaweed

__all__ = ["s3_environment", "seaweed"]


@pytest.fixture
def local_settings(tmp_path: Path) -> StorageSettings:
    return StorageSettings(url=f"file://{tmp_path}/store", cache_dir=str(tmp_path / "cache"))


@pytest.fixture
def s3_settings(s3_environment: SeaweedServer, tmp_path: Path) -> StorageSettings:
    """A prefix of its own for each test: a bucket of its own would cost the server a volume."""
    return StorageSettings(
        url=f"s3://{s3_environment.bucket}/{uuid.uuid4().hex}",
        endpoint_url=s3_environment.endpoint,
        cache_dir=str(tmp_path / "cache"),
        timeout_seconds=10,
        retries=2,
    )


@pytest.fixture(params=["local", "s3"])
def settings(request: pytest.FixtureRequest) -> StorageSettings:
    found: StorageSettings = request.getfixturevalue(f"{request.param}_settings")
    return found


@pytest.fixture
def store(settings: StorageSettings) -> ArtifactStore:
    return ArtifactStore(settings)
