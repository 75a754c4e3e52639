"""A small index, built once for all tests that need one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.demo_runs import FLAGS
from tests.support.once import made_once
from tests.support.places import Place

SMALL = [*FLAGS, "--set", "index.rows_per_part=200"]  # two shards a part


@dataclass(frozen=True)
class Built:
    place: Place
    result: dict[str, Any]

    @property
    def index(self) -> str:
        return str(self.result["index"])


@pytest.fixture(scope="module")
def first(local: Place, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Four shards, built as a user does it, in a copy for each file of tests."""

    def build(folder: Path) -> dict[str, Any]:
        return replace(place, folder=folder).command("index", "build")

    place = replace(local, flags=SMALL)
    folder, result = made_once(tmp_path_factory, "first", build)
    return Built(replace(place, folder=folder).copy(tmp_path_factory.mktemp("first")), result)
