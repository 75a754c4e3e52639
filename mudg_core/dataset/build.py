"""Fetch, filter, refill: from a selection plan to images that are really there and really fit.

Only selected images are fetched. One that is dead, unreadable or unlike its query costs its group one turn,
and the next of the group takes its place, until every group has its quota or no one left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from mudg_core.corpus.decode import Refused, decode
from mudg_core.errors import DataError

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]

DEAD = "dead link"
UNREADABLE = "unreadable image"
UNLIKE = "unlike its query"
CHOSEN = "chosen"
SPARE = "not needed"

Fetch = Callable[[Sequence[int]], dict[int, bytes]]
Embed = Callable[[list[Image.Image]], Float32]


@dataclass(frozen=True)
class Filled:
    """The plan with each image's outcome and fresh cosine, and the bytes of the chosen ones by row."""

    table: pa.Table
    images: dict[int, bytes]

    def chosen(self) -> pa.Table:
        return self.table.filter(
            pa.array(self.table.column("outcome").to_numpy(zero_copy_only=False) == CHOSEN)
        )


def fill(plan: pa.Table, references: Float32, fetch: Fetch, embed: Embed, min_cosine: float) -> Filled:
    """Works through the plan in rounds; `references[i]` is the text feature that line i is compared with.

    A row that `fetch` does not return counts as a dead link.
    """
    rows, groups, quotas, turns = (plan.column(c).to_numpy() for c in ("row", "group", "quota", "turn"))
    outcome = np.full(len(rows), SPARE, dtype=object)
    fresh = np.full(len(rows), np.nan, dtype=np.float32)
    images: dict[int, bytes] = {}
    queue = np.lexsort((turns, groups))
    missing = {int(g): int(q) for g, q in zip(groups, quotas, strict=True)}
    while len(batch := _next_round(queue, groups, missing)):
        queue = queue[~np.isin(queue, batch)]
        for line, cosine, verdict, data in _try(batch, rows, references, fetch, embed, min_cosine):
            outcome[line], fresh[line] = verdict, cosine
            if verdict == CHOSEN:
                images[int(rows[line])] = data
                missing[int(groups[line])] -= 1
    table = plan.append_column("outcome", pa.array(outcome.tolist())).append_column(
        "fresh_cosine", pa.array(fresh)
    )
    if not images:
        raise DataError(
            what=f"none of {len(rows)} candidate images could be used: {_tally(outcome)}",
            fix="check that the corpus is reachable, or lower dataset.min_cosine",
        )
    return Filled(table, images)


def _next_round(queue: Int64, groups: Int64, missing: dict[int, int]) -> Int64:
    """The next lines of every group that still misses some, as many as it misses."""
    wanted = np.array([missing[int(g)] for g in groups[queue]], dtype=np.int64)
    starts = np.ones(len(queue), dtype=bool)
    starts[1:] = np.diff(groups[queue]) != 0
    first = np.maximum.accumulate(np.where(starts, np.arange(len(queue)), 0)) if len(queue) else queue
    return queue[np.arange(len(queue)) - first < wanted]


def _try(
    batch: Int64, rows: Int64, references: Float32, fetch: Fetch, embed: Embed, min_cosine: float
) -> Iterable[tuple[int, float, str, bytes]]:
    """Line, fresh cosine, outcome and bytes of each image of a round."""
    found = fetch([int(row) for row in rows[batch]])
    decoded: list[tuple[int, Image.Image]] = []
    for line in batch.tolist():
        data = found.get(int(rows[line]))
        image = _decode(data) if data is not None else None
        if image is not None:
            decoded.append((line, image))
        else:
            yield line, float("nan"), DEAD if data is None else UNREADABLE, b""
    if not decoded:
        return
    features = embed([image for _, image in decoded])
    for (line, _), feature in zip(decoded, features, strict=True):
        cosine = float(feature @ references[line])
        yield line, cosine, CHOSEN if cosine >= min_cosine else UNLIKE, found[int(rows[line])]


def _decode(data: bytes) -> Image.Image | None:
    try:
        return decode(data)
    except Refused:
        return None


def _tally(outcome: NDArray[np.object_]) -> str:
    names, counts = np.unique(outcome.astype(str), return_counts=True)
    return ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
