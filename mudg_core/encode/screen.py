"""Leaving rows of an embedded shard out by their quality: near copies, and captions that do not fit their
image.

Apart from embedding, because the forward pass is what costs: another floor does not embed anything again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.encode.shard import IMAGES, METADATA, REFUSED, TEXTS, EmbeddingShard
from mudg_core.encode.writer import REFUSED_SCHEMA, Npy

BLOCK = 65_536
COPY, UNLIKE = "near copy of an earlier row", "caption unlike its image"


def screen(shard: EmbeddingShard, out: Path, *, dedup: bool, min_cosine: float | None) -> dict[str, int]:
    """The shard without such rows, below `out`, and how many were left out for which reason."""
    metadata = shard.metadata()
    columns = (metadata.column(name).to_numpy() for name in ("row", "duplicate_of", "cosine"))
    rows, first, cosine = columns
    copies = (first != rows) if dedup else np.zeros(len(rows), bool)
    unlike = ~copies & (cosine < min_cosine) if min_cosine is not None else np.zeros(len(rows), bool)
    kept = np.flatnonzero(~(copies | unlike))
    for name, features in ((IMAGES, shard.images), (TEXTS, shard.texts)):
        file = Npy(out / name, features.shape[1])
        for start in range(0, len(kept), BLOCK):
            file.append(features[kept[start : start + BLOCK]])
        file.close()
    (out / METADATA).parent.mkdir()
    pq.write_table(metadata.take(pa.array(kept)), out / METADATA, compression="zstd")
    reasons = np.select([copies, unlike], [COPY, UNLIKE], "")
    left = metadata.append_column("reason", pa.array(reasons)).filter(pa.array(copies | unlike))
    pq.write_table(left.select(REFUSED_SCHEMA.names).cast(REFUSED_SCHEMA), out / REFUSED)
    return {COPY: int(copies.sum()), UNLIKE: int(unlike.sum())}
