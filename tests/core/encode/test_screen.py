"""Screening: rows leave for a reason that is told, and what stays is as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.encode.shard import REFUSED, EmbeddingShard
from mudg_core.encode.writer import COPY, SCHEMA, UNLIKE, ShardWriter, screen

COSINES = [0.9, 0.1, 0.5, 0.2]


@pytest.fixture
def shard(tmp_path: Path) -> EmbeddingShard:
    """Rows 10 to 13; row 12 is a copy of row 10, rows 11 and 13 have captions that hardly fit."""
    with ShardWriter(tmp_path / "whole", 2) as writer:
        features = np.array([[1, 0], [0, 1], [1, 0], [0.6, 0.8]], np.float32)
        known = {
            "row": [10, 11, 12, 13],
            "phash": [0, 2**62 - 1, 0, 2**40],
            "cosine": COSINES,
            "url": list("abcd"),
        }
        columns = {
            f.name: pa.array(known[f.name], f.type) if f.name in known else pa.nulls(4, f.type)
            for f in SCHEMA
        }
        writer.add(features, features, pa.table(columns, schema=SCHEMA))
        writer.close()
    return EmbeddingShard.open(tmp_path / "whole")


@pytest.mark.parametrize(
    ("dedup", "floor", "kept"),
    [
        (False, None, [10, 11, 12, 13]),
        (True, None, [10, 11, 13]),
        (False, 0.15, [10, 12, 13]),
        (True, 0.3, [10]),
        (True, 1.0, []),
    ],
)
def test_what_stays(
    dedup: bool, floor: float | None, kept: list[int], shard: EmbeddingShard, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    told = screen(shard, out, dedup=dedup, min_cosine=floor)
    lines = [row - 10 for row in kept]
    left = pq.read_table(out / REFUSED).to_pylist()
    assert sorted([*kept, *(line["row"] for line in left)]) == [10, 11, 12, 13]
    assert {reason: sum(line["reason"] == reason for line in left) for reason in (COPY, UNLIKE)} == told
    if not kept:
        return
    found = EmbeddingShard.open(out)
    assert found.rows.tolist() == kept
    assert np.array_equal(found.images, np.asarray(shard.images)[lines])
    assert found.metadata().column("url").to_pylist() == ["abcd"[line] for line in lines]
