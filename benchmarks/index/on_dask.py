"""Training on a real Dask cluster, as a stage does it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import dask
import numpy as np
from distributed import Client, LocalCluster

from mudg_core.index import kmeans
from mudg_core.index.vectors import Float32
from tasks.executors.dask_worker import WorkerHost

SECONDS = 600.0


def train_on_dask(images: Float32, texts: Float32, start: kmeans.Clustering, workers: int) -> Float32:
    """Three iterations with the pairs resident on `workers` processes."""
    with TemporaryDirectory() as folder:
        np.save(Path(folder) / "images.npy", images)
        np.save(Path(folder) / "texts.npy", texts)
        with (
            dask.config.set({"distributed.worker.daemon": True}),
            LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
            ) as cluster,
            Client(cluster) as client,  # type: ignore[no-untyped-call]
        ):
            found: Float32 = client.submit(_train, folder, len(images), start).result(timeout=SECONDS)
            return found


def _train(folder: str, rows: int, start: kmeans.Clustering) -> Float32:
    def load(part: slice) -> kmeans.PairShard:
        images, texts = (np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in ("images", "texts"))
        return kmeans.PairShard(np.asarray(images[part]), np.asarray(texts[part]))

    with WorkerHost().pair_pool(load, partial(kmeans.cut, rows), SECONDS) as pool:
        return kmeans.train(pool, start, 3).centroids
