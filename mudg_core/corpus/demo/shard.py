"""The demo world as img2dataset would have crawled it."""

from __future__ import annotations

from collections.abc import Iterator

from mudg_core.corpus.demo.world import DemoWorld
from mudg_core.corpus.shards import AnyPath, ShardSample, encode_jpeg, write_shard


def demo_samples(world: DemoWorld, first_row: int, rows: int) -> Iterator[ShardSample]:
    """Rows as a crawler sees them: what they truly show stays behind."""
    for index in range(first_row, first_row + rows):
        row, key = world.row(index), f"{index:09d}"
        if row.image is None:
            yield ShardSample(key, row.url, row.caption, error_message="HTTP Error 404: Not Found")
        else:
            side = world.size
            yield ShardSample(key, row.url, row.caption, encode_jpeg(row.image), None, side, side, side, side,
                              "{}")


def write_demo_shard(
    world: DemoWorld, first_row: int, rows: int, tar_path: AnyPath, parquet_path: AnyPath
) -> int:
    """Rows `first_row` to `first_row + rows` of the demo world as one shard; returns how many."""
    return write_shard(demo_samples(world, first_row, rows), tar_path, parquet_path)
