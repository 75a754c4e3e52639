"""Small sources of every kind, from the demo world."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus.demo.world import DemoWorld, demo_samples
from mudg_core.corpus.shards import ShardSample, write_shard

WORLD = DemoWorld(seed=3)


def rows(first: int, count: int) -> list[ShardSample]:
    return list(demo_samples(WORLD, first, count))


def tars(folder: Path, shards: int = 3, each: int = 20, *, tables: bool = True) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(shards):
        tar = folder / f"{number:05d}.tar"
        write_shard(rows(number * each, each), tar, tar.with_suffix(".parquet"))
        if not tables:
            tar.with_suffix(".parquet").unlink()
    return folder


def images(folder: Path, count: int = 6) -> Path:
    for number, sample in enumerate(sample for sample in rows(0, 2 * count) if sample.image):
        place = folder / ("boats" if number % 2 else "cats_and_dogs")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"red-one_{number:02d}.jpg").write_bytes(sample.image or b"")
        if number % 3 == 0:
            (place / f"red-one_{number:02d}.txt").write_bytes(
                b"\xef\xbb\xbf" + sample.caption.encode() + b"\r\n"
            )
        if number + 1 == count:
            break
    return folder


def links(folder: Path, count: int = 50, name: str = "part-0", per_group: int = 7) -> Path:
    folder.mkdir(exist_ok=True)
    table = {
        "URL": [f"https://x.example/{i}.jpg" for i in range(count)],
        "TEXT": [f"caption {i}" for i in range(count)],
    }
    table |= {"WIDTH": list(range(count)), "md5": [f"{i:032x}" for i in range(count)]}
    pq.write_table(pa.table(table), folder / f"{name}.parquet", row_group_size=per_group)
    return folder


def embeddings(folder: Path, parts: dict[int, int], dim: int = 16, dtype: type = np.float16) -> Path:
    """`parts`: rows of each partition by its number."""
    for name in ("img_emb", "text_emb", "metadata"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for part, count in parts.items():
        random = np.random.default_rng(part)
        for name in ("img_emb", "text_emb"):
            np.save(folder / name / f"{name}_{part}.npy", random.normal(size=(count, dim)).astype(dtype))
        captions = [f"caption {part} {row}" for row in range(count)]
        table = pa.table({"image_path": [f"{part}/{row}" for row in range(count)], "caption": captions})
        pq.write_table(table, folder / "metadata" / f"metadata_{part}.parquet")
    return folder
