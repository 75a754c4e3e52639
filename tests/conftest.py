"""One thread in every process, and long files first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Before numpy, torch or faiss is loaded, and for all processes that tests start: there are as many of them as
# cores, and more threads only wait for each other on arrays and models this small.
os.environ["OMP_NUM_THREADS"] = "1"

FIRST = "stack"  # a room with one file that takes minutes, most of them waiting
# Of tests/flows: the other process fills up with the short ones.
LONG = ("test_demo.py", "test_index.py", "test_target.py", "test_links.py", "test_corpus.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Rooms stay together: see the Makefile."""
    rooms = {path: number for number, path in enumerate(dict.fromkeys(item.path.parent for item in items))}
    items.sort(key=lambda item: (_room(item, rooms), _rank(item.path.name)))


def _room(item: pytest.Item, rooms: dict[Path, int]) -> int:
    return -1 if item.path.parent == Path(__file__).parent / FIRST else rooms[item.path.parent]


def _rank(name: str) -> int:
    return LONG.index(name) if name in LONG else len(LONG)
