"""Submissions and the inbox are tried on both kinds of store, as their conditions are what matters."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactStore
from mudg_core.storage.objects_s3 import S3Objects
from tests.support.seaweed import SeaweedServer, seaweed

__all__ = ["seaweed"]


@pytest.fixture(scope="module")
def s3_objects(seaweed: SeaweedServer) -> S3Objects:
    """One client for all tests, as making one takes longer than most of them."""
    settings = StorageSettings(url=f"s3://{seaweed.bucket}/x", endpoint_url=seaweed.endpoint)
    return S3Objects(settings, seaweed.client())


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    settings = StorageSettings(url=f"file://{tmp_path}/store", cache_dir=str(tmp_path / "cache"))
    if request.param == "local":
        return ArtifactStore(settings)
    objects: S3Objects = request.getfixturevalue("s3_objects")
    objects.prefix = uuid.uuid4().hex
    return ArtifactStore(settings, objects)
