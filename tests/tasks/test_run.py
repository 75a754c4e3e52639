"""How shards are dealt out to tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from mudg_core.settings import Settings
from tasks.run import Run


@pytest.mark.parametrize(
    ("shards", "workers", "most", "expected"),
    [
        (64, 2, 32, 16),
        (12, 2, 32, 3),
        (1000, 2, 32, 32),
        (64, 2, 1, 1),
        (3, 8, 32, 1),
        (0, 2, 32, 1),
        (5, 1, 32, 3),
    ],
)
def test_shards_share_a_task_while_workers_stay_busy(
    shards: int, workers: int, most: int, expected: int, tmp_path: Path
) -> None:
    compute = {"workers": workers, "shards_per_task": most}
    settings = Settings().replace({"compute": compute, "storage": {"url": f"file://{tmp_path}"}})
    assert Run(settings).shards_per_task(shards) == expected
