"""Sources lie on a disk or in a bucket; everything is tried on both."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore
from tests.support.seaweed import SeaweedServer, s3_environment, seaweed

__all__ = ["s3_environment", "seaweed"]

Publish = Callable[[Path], str]


@pytest.fixture
def store(tmp_path: Path, request: pytest.FixtureRequest) -> ArtifactStore:
    """Local; its settings also say how to reach buckets, if a test has one."""
    endpoint = None
    if "s3" in str(request.node.callspec.params) if hasattr(request.node, "callspec") else False:
        endpoint = request.getfixturevalue("s3_environment").endpoint
    return ArtifactStore(
        StorageSettings(
            url=f"file://{tmp_path}/store",
            cache_dir=str(tmp_path / "cache"),
            endpoint_url=endpoint,
            retries=1,
        )
    )


@pytest.fixture(params=["local", "s3"])
def publish(request: pytest.FixtureRequest) -> Publish:
    """Puts a folder where sources lie, and tells its URL."""
    if request.param == "local":
        return str
    server: SeaweedServer = request.getfixturevalue("s3_environment")
    prefix = uuid.uuid4().hex

    def upload(folder: Path) -> str:
        client = server.client()
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                key = f"{prefix}/{path.relative_to(folder).as_posix()}"
                client.upload_file(str(path), server.bucket, key)
        client.close()
        return f"s3://{server.bucket}/{prefix}"

    return upload
