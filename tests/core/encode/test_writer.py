"""Streaming .npy files: read by numpy whatever their length, and never half aligned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mudg_core.encode.shard import EmbeddingShard
from mudg_core.encode.writer import SCHEMA, Npy, ShardWriter
from mudg_core.errors import DataError


def lines(first: int, count: int) -> pa.Table:
    known = {
        "row": np.arange(first, first + count),
        "phash": np.arange(count) * 2**40,
        "cosine": np.zeros(count),
    }
    columns = {f.name: known[f.name] if f.name in known else pa.nulls(count, f.type) for f in SCHEMA}
    return pa.table(columns, schema=SCHEMA)


@pytest.mark.parametrize("sizes", [[], [1], [3, 4], [0, 2], [70_000, 31]])
def test_npy_of_unknown_length(sizes: list[int], tmp_path: Path) -> None:
    parts = [np.random.default_rng(size).random((size, 3)).astype(np.float16) for size in sizes]
    file = Npy(tmp_path / "a" / "b.npy", 3)
    for part in parts:
        file.append(part)
    file.close()
    found = np.load(tmp_path / "a" / "b.npy", allow_pickle=False)
    assert found.dtype == np.float16 and np.array_equal(found, np.concatenate([np.zeros((0, 3)), *parts]))


def test_many_small_batches(tmp_path: Path) -> None:
    features = np.random.default_rng(0).random((40_000, 2)).astype(np.float32)
    with ShardWriter(tmp_path, 2) as writer:
        for start in range(0, 40_000, 1000):
            part = features[start : start + 1000]
            writer.add(part, -part, lines(start, 1000))
        assert writer.close().rows == 40_000
    shard = EmbeddingShard.open(tmp_path)
    assert np.array_equal(shard.images, features.astype(np.float16))
    assert np.array_equal(shard.texts, -features.astype(np.float16))
    assert shard.rows.tolist() == list(range(40_000))
    assert not (tmp_path / "metadata" / "ungrouped.parquet").exists()


def test_lengths_that_differ_are_noticed(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, 2) as writer, pytest.raises(DataError, match="differ in length"):
        writer.add(np.ones((3, 2), np.float32), np.ones((2, 2), np.float32), lines(0, 3))
        writer.close()
