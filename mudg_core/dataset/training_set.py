"""A training set on disk: a WebDataset shard, and a parquet that says where each image came from and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from mudg_core.corpus.decode import decode
from mudg_core.corpus.shards import ShardSample, read_members, write_shard
from mudg_core.dataset.fetch_filter_refill import CHOSEN, FetchResult
from mudg_core.errors import DataError

if TYPE_CHECKING:  # torch is slow to load, and readers of what was made do without
    from mudg_core.encode.models import Clip, Pixels

TAR = "dataset.tar"
PARQUET = "dataset.parquet"
PROVENANCE = "provenance.parquet"


def write_training_set(fetched: FetchResult, links: Mapping[int, Mapping[str, Any]], out: Path) -> None:
    """Writes the chosen images, and the outcome of every image of the plan, chosen or not."""
    chosen = fetched.chosen().select(["row", "label"]).to_pylist()
    samples = (
        ShardSample(
            key=_key(line["row"]),
            url=links[line["row"]]["url"],
            caption=links[line["row"]]["caption"],
            image=fetched.images[line["row"]],
            label=line["label"],
        )
        for line in chosen
    )
    write_shard(samples, out / TAR, out / PARQUET)
    table = fetched.table
    for column in ("url", "caption"):
        values = [links[row][column] for row in table.column("row").to_pylist()]
        table = table.append_column(column, pa.array(values))
    pq.write_table(table, out / PROVENANCE)


def read_training_set(
    folder: Path, clip: Clip, without: Collection[int] = ()
) -> tuple[Pixels, NDArray[np.int64]]:
    """Pixels as the student is shown them, and pseudo-labels; `without` rows that were taken down."""
    images, labels = _read(folder, clip.pixels, without)
    return np.stack(images), labels


def read_whole_images(
    folder: Path, clip: Clip, without: Collection[int] = ()
) -> tuple[list[Pixels], NDArray[np.int64]]:
    """The same with nothing cut off, for crops at random."""
    return _read(folder, clip.whole, without)


def _read(
    folder: Path, view: Callable[[Image.Image], Pixels], without: Collection[int]
) -> tuple[list[Pixels], NDArray[np.int64]]:
    table = pq.read_table(folder / PROVENANCE, columns=["row", "label", "outcome"])
    table = table.filter(pc.equal(table.column("outcome"), CHOSEN))
    if without:
        table = table.filter(pa.array(~np.isin(table.column("row").to_numpy(), list(without))))
    if not table.num_rows:
        raise DataError(
            what="all images of the training set were taken down",
            where=str(folder),
            fix="build the target again: it takes other images",
        )
    keys = [_key(row) for row in table.column("row").to_pylist()]
    images = read_members(folder / TAR, keys)
    return [view(decode(images[key])) for key in keys], table.column("label").to_numpy()


def _key(row: int) -> str:
    return f"{row:09d}"
