"""The tiny model, exported."""

from pathlib import Path

import pytest

from mudg_core.encode.models import Clip
from tests.core.encode.tiny import loaded, tiny, tiny_folder
from tests.support.exported import exported

__all__ = ["folder", "loaded", "tiny", "tiny_folder"]


@pytest.fixture(scope="session")
def folder(loaded: Clip, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return exported(loaded, tmp_path_factory.mktemp("exported"))
