"""One thread in every process, and long files first."""

from __future__ import annotations

import os

import pytest

# Before numpy, torch or faiss is loaded, and for all processes that tests start: there are as many of them as
# cores, and more threads only wait for each other on arrays and models this small.
os.environ["OMP_NUM_THREADS"] = "1"

# Of tests/flows: the other process fills up with the short ones.
LONG = ("test_demo.py", "test_index.py", "test_target.py", "test_links.py", "test_corpus.py", "test_s3.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rooms stay together: see the Makefile."""
    rooms = {path: number for number, path in enumerate(dict.fromkeys(item.path.parent for item in items))}
    items.sort(key=lambda item: (rooms[item.path.parent], _rank(item.path.name)))


def _rank(name: str) -> int:
    return LONG.index(name) if name in LONG else len(LONG)
