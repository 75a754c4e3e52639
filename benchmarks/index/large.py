"""A gallery of a million images through every stage, shard by shard: the peak memory of its process.

python -m benchmarks.index.large FOLDER [--images N] [--texts N]
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.index.world import DIM, World
from mudg_core.encode.shard import IMAGES, METADATA, TEXTS, EmbeddingShard, gather_images
from mudg_core.index import ivf, kmeans
from mudg_core.index.coarse import Coarse
from mudg_core.index.neighbors import Neighbors, nearest
from mudg_core.index.part import Placement, Votes, assign_shard, join, placed_images, plan_part
from mudg_core.index.recall import recall_at
from mudg_core.index.router import first_cells, fit
from mudg_core.index.routing import Probing
from mudg_core.index.search import Searcher
from mudg_core.index.training_data import NEIGHBORS, Counts, TrainingPairs, draw, image_sum, make_pairs
from mudg_core.index.vectors import normalised

ROWS_PER_SHARD, CELLS, ITERATIONS, KEEP = 100_000, 1024, 3, 11


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--texts", type=int, default=8_000)
    arguments = parser.parse_args()
    started = time.monotonic()
    figures = run(arguments.folder, arguments.images, arguments.texts)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    figures |= {"peak_gb": round(peak / 1e9, 2), "seconds": round(time.monotonic() - started, 1)}
    sys.stdout.write(json.dumps(figures) + "\n")


def run(folder: Path, images: int, texts: int) -> dict[str, float]:
    shards = [EmbeddingShard.open(path) for path in write_shards(folder, images)]
    samples = draw(shards, Counts(texts, 1000, 1000, 1), seed=0)
    found = [nearest(samples.vectors, shard.images, shard.rows, KEEP) for shard in shards]
    near = reduce(Neighbors.merge, found)
    sums = [image_sum(shard) for shard in shards]
    mean = sum(total for total, _ in sums) / sum(rows for _, rows in sums)
    training = samples.counts.part("training")
    pairs = make_pairs(
        samples.of("training"),
        near.rows[training, :NEIGHBORS],
        near.cosines[training, :NEIGHBORS],
        shards,
        np.asarray(mean, np.float32),
        seed=0,
    )
    source = TrainingPairs("centred", pairs, samples)
    pool = kmeans.LocalPool([source.load(part) for part in source.shards(2)])
    centroids = kmeans.train(pool, source.start(CELLS, 0), ITERATIONS).centroids
    coarse = Coarse.unrouted(source.centring, centroids)
    cells = [assign_shard(coarse, shard) for shard in shards]
    homes = [Placement(one.rows, one.cells) for one in cells]
    routed = fit(coarse, samples.of("training"), join(homes).homes(pairs.neighbors), seed=0).coarse
    votes = first_cells(routed, samples.of("training"))
    files = []
    for number, (shard, home, near_here) in enumerate(zip(shards, homes, found, strict=True)):
        here = near_here.rows[training, :NEIGHBORS], near_here.cosines[training, :NEIGHBORS]
        placement = plan_part([home], Votes.of(pairs, [here], *votes), 0.1, np.zeros(0, np.int64))
        index = ivf.blank("sq8", CELLS, normalised(pairs.gallery))
        ivf.populate(index, placed_images(placement, [shard]))
        files.append((folder / f"{number}.faiss", int(index.ntotal)))
        ivf.write(index, files[-1][0])
    parts = [ivf.load(file, rows=rows, dim=DIM) for file, rows in files]
    searcher = Searcher(routed, parts, lambda rows: gather_images(shards, rows), spilled=True)
    report = samples.counts.part("report")
    hits = searcher.search(samples.of("report"), 10, Probing(64, 0.95, 0.7), rerank=30)
    recall = recall_at(hits.hits.rows, near.rows[report, :NEIGHBORS], 10).value
    return {
        "images": images,
        "texts": texts,
        "recall_at_10": recall,
        "read": float(hits.read.mean() / images),
    }


def write_shards(folder: Path, images: int) -> list[Path]:
    """Images and captions of a world, as the embedding stage leaves them."""
    world, made = World(0), []
    pairs = zip(world.images(images, ROWS_PER_SHARD), world.texts(images, block=ROWS_PER_SHARD), strict=True)
    for number, (pictures, captions) in enumerate(pairs):
        path = folder / f"shard-{number}"
        for name, features in ((IMAGES, pictures), (TEXTS, captions)):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            np.save(path / name, features.astype(np.float16))
        rows = np.arange(len(pictures)) + number * ROWS_PER_SHARD
        (path / METADATA).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"row": rows}), path / METADATA)
        made.append(path)
    return made


if __name__ == "__main__":
    main()
