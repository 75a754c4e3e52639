"""The tiny model, on one thread: more of them only wait for each other when it is this small."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.core.encode.tiny import loaded, tiny, tiny_folder

__all__ = ["loaded", "tiny", "tiny_folder"]


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
