"""What every index is given: a gallery, queries to tune with, queries to report, and the exact answers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import faiss
import numpy as np
import numpy.typing as npt

from benchmarks.index.world import DIM, TextStream, World

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
NEAREST = 10
QUERIES: tuple[TextStream, TextStream] = ("tuning", "report")


def write_problem(folder: Path, world: World, images: int, queries: int) -> None:
    """Writes gallery.npy and, for tuning and report, NAME.npy and NAME_truth.npy (rows of the ten nearest).

    The gallery goes to its file block by block, and the exact search reads it from there in the same way, so
    that a million images need no more memory than one block.
    """
    folder.mkdir(parents=True, exist_ok=True)
    gallery = np.lib.format.open_memmap(folder / "gallery.npy", "w+", np.dtype(np.float32), (images, DIM))
    asked = np.concatenate([_whole(world.texts(queries, name)) for name in QUERIES])
    best = Nearest(len(asked))
    start = 0
    for block in world.images(images):
        gallery[start : start + len(block)] = block
        best.see(asked, block, start)
        start += len(block)
    gallery.flush()
    for name, texts, truth in zip(QUERIES, np.split(asked, 2), np.split(best.rows, 2), strict=True):
        np.save(folder / f"{name}.npy", texts)
        np.save(folder / f"{name}_truth.npy", truth)


class Nearest:
    """The nearest images of each query among the blocks seen so far, best first; of equals, the earlier."""

    def __init__(self, queries: int) -> None:
        self.cosines: Float32 = np.full((queries, NEAREST), -np.inf, np.float32)
        self.rows: Int64 = np.full((queries, NEAREST), -1, np.int64)

    def see(self, queries: Float32, block: Float32, start: int) -> None:
        count = min(NEAREST, len(block))
        cosines, rows = faiss.knn(queries, block, count, metric=faiss.METRIC_INNER_PRODUCT)
        every, names = np.hstack([self.cosines, cosines]), np.hstack([self.rows, rows + start])
        order = np.argsort(-every, axis=1, kind="stable")[:, :NEAREST]
        self.cosines = np.take_along_axis(every, order, axis=1)
        self.rows = np.take_along_axis(names, order, axis=1)


def _whole(blocks: Iterable[Float32]) -> Float32:
    return np.concatenate(list(blocks))
