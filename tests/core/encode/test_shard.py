"""Embedded shards on disk: refused unless whole, gathered in the order asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.encode.shard import (
    IMAGES,
    METADATA,
    TEXTS,
    EmbeddingShard,
    gather_images,
    gather_metadata,
)
from mudg_core.errors import DataError


def shard_at(folder: Path, rows: Sequence[int], dim: int = 4) -> EmbeddingShard:
    """A shard whose image feature i is full of its row number."""
    for name in (IMAGES, TEXTS):
        (folder / name).parent.mkdir(parents=True)
        np.save(folder / name, np.repeat(np.array(rows, np.float16)[:, None], dim, axis=1))
    (folder / METADATA).parent.mkdir()
    table = pa.table({"row": np.array(rows, np.int64), "caption": [f"c{row}" for row in rows]})
    pq.write_table(table, folder / METADATA)
    return EmbeddingShard.open(folder)


@pytest.mark.parametrize("harm", ["images", "texts", "metadata", "dim"])
def test_f46_misaligned_files(harm: str, tmp_path: Path) -> None:
    shard_at(tmp_path, [1, 2, 3])
    if harm == "metadata":
        pq.write_table(pa.table({"row": np.arange(2)}), tmp_path / METADATA)
    else:
        shape = (3, 5) if harm == "dim" else (2, 4)
        np.save(tmp_path / (TEXTS if harm == "texts" else IMAGES), np.zeros(shape, np.float16))
    with pytest.raises(DataError, match="misaligned") as caught:
        EmbeddingShard.open(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_f72_object_array_is_refused(tmp_path: Path) -> None:
    shard_at(tmp_path, [1, 2, 3])
    np.save(tmp_path / IMAGES, np.array([{"a": 1}, 2, 3], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read") as caught:
        EmbeddingShard.open(tmp_path)
    assert caught.value.where == str(tmp_path)


@pytest.mark.parametrize("name", [IMAGES, TEXTS, METADATA])
@pytest.mark.parametrize("content", [b"", b"garbage" * 50, None])
def test_unreadable_files_are_data_errors(name: str, content: bytes | None, tmp_path: Path) -> None:
    shard_at(tmp_path, [1, 2, 3])
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        EmbeddingShard.open(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_gathering_keeps_the_order_asked_for(tmp_path: Path) -> None:
    shards = [
        shard_at(tmp_path / "a", [0, 1, 3]),
        shard_at(tmp_path / "b", [10, 12]),
        shard_at(tmp_path / "c", [20]),
    ]
    rows = np.array([12, 0, 20, 3, 12, 1, 10])
    features = gather_images(shards, rows)
    assert features.dtype == np.float32
    assert features.tolist() == [[float(row)] * 4 for row in rows]
    lines = gather_metadata(shards, rows).to_pylist()
    assert [line["row"] for line in lines] == rows.tolist()
    assert [line["caption"] for line in lines] == [f"c{row}" for row in rows]
    assert [line["shard"] for line in lines] == [1, 0, 2, 0, 1, 0, 1]


@pytest.mark.parametrize("row", [2, -1, 11, 99])
def test_rows_in_no_shard(row: int, tmp_path: Path) -> None:
    shards = [shard_at(tmp_path / "a", [0, 1, 3]), shard_at(tmp_path / "b", [10, 12])]
    with pytest.raises(DataError, match=rf"rows \[{row}\] are in no shard"):
        gather_images(shards, np.array([0, row, 12]))
    with pytest.raises(DataError, match="1 rows are in no shard"):
        gather_metadata(shards, np.array([0, row, 12]))
    with pytest.raises(DataError, match="in no shard"):
        gather_metadata(shards, np.array([row]))
