"""Links in rounds: all of them first, then, after a pause, those alone whose failure may have passed.

img2dataset's own retries would ask a server again at once, and also for what cannot change.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mudg_core.corpus.shards import Place, locate
from mudg_core.corpus.web.img2dataset import fetch
from mudg_core.corpus.web.reasons import NO_RESULT, PASSING, stable_reason
from mudg_core.errors import OrchestrationError
from mudg_core.settings import DownloadSettings

MAX_PAUSE = 600.0
MAX_EXIF = 10_000
_FACTS = ("width", "height", "original_width", "original_height", "exif")
_ROWS_AT_A_TIME = 100  # as it writes them


class Fetched(NamedTuple):
    """Where a picture lies, and what is known of it."""

    tar: Path
    key: str
    place: Place
    width: int
    height: int
    original_width: int
    original_height: int
    exif: str | None


@dataclass
class Progress:
    """By position: what was fetched, or why it was not. A row that has been tried is in one of the two."""

    fetched: dict[int, Fetched] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    rounds: int = 0
    asked: int = 0  # rows, in every round

    def share(self, ended: int) -> float:
        """Roughly what is done of all that was asked for so far, by connections that ended: a redirect is one
        more, and a retry round is more to do."""
        return min(1.0, ended / max(1, self.asked))

    def settle(self, position: int, result: Fetched | str) -> None:
        if isinstance(result, str):
            self.reasons[position] = result
        else:
            self.reasons.pop(position, None)
            self.fetched[position] = result


def fetch_in_rounds(
    links: pa.Table,
    scratch: Path,
    proxy: str,
    settings: DownloadSettings,
    progress: Progress,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Settles every row that has no reason yet; `progress` holds what is known if an error ends it."""
    waiting = [position for position in range(links.num_rows) if position not in progress.reasons]
    for number in range(settings.retries + 1):
        if not waiting:
            return
        if number:
            sleep(pause(number, waiting, links, settings.backoff_seconds))
        progress.rounds += 1
        progress.asked += len(waiting)
        for kind, positions in by_hash(links, waiting):
            folder = scratch / f"{number}-{kind}"
            wanted = _wanted(links, positions, kind)
            results = read_results(fetch(wanted, folder, proxy, settings, meanwhile), len(positions))
            for position, result in zip(positions, results, strict=True):
                progress.settle(position, result)
        waiting = [position for position in waiting if progress.reasons.get(position) in PASSING]


def pause(number: int, waiting: Sequence[int], links: pa.Table, backoff: float) -> float:
    """Longer every round, and different for every shard, so that workers do not come back all at once."""
    seed = zlib.crc32(str(links["url"][waiting[0]]).encode()) + number
    return min(MAX_PAUSE, backoff * 2.0 ** (number - 1) * random.Random(seed).uniform(0.5, 1.5))


def by_hash(links: pa.Table, positions: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Rows by the hash that they are checked against; a call checks one kind, and for all of its rows."""
    left = list(positions)
    for kind in ("sha256", "md5"):
        if kind in links.column_names:
            known = pc.is_valid(links[kind]).to_pylist()
            if here := [position for position in left if known[position]]:
                yield kind, here
            left = [position for position in left if not known[position]]
    if left:
        yield "none", left


def _wanted(links: pa.Table, positions: Sequence[int], kind: str) -> pa.Table:
    rows = links.take(pa.array(positions))
    columns = {"url": rows["url"].cast(pa.string())}
    if kind != "none":
        columns[kind] = pc.ascii_lower(rows[kind].cast(pa.string()))
    return pa.table(columns)


def read_results(out: Path, rows: int) -> list[Fetched | str]:
    """What became of each row of a call, in order, however img2dataset came by them."""
    tar = out / "00000.tar"
    results: list[Fetched | str] = [NO_RESULT] * rows
    try:
        table = _table(out / "00000.parquet")
        keys = {row["key"] for row in table if row["status"] == "success"}
        places = locate(tar, keys)
        for row in table:
            results[int(row["key"])] = _result(row, tar, places)
    except (pa.ArrowException, ValueError, IndexError, KeyError) as error:
        raise OrchestrationError(
            what=f"img2dataset's result cannot be read: {error!r}",
            where=str(out),
            fix="use img2dataset 1.47 (`make setup` installs it)",
        ) from error
    return results


def _table(path: Path) -> list[dict[str, Any]]:
    columns = ["key", "status", "error_message", *_FACTS]
    rows: list[dict[str, Any]] = []
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(_ROWS_AT_A_TIME, columns=columns):
            for row in batch.to_pylist():
                too_long = row["exif"] is not None and len(row["exif"]) > MAX_EXIF
                rows.append(row | {"exif": None} if too_long else row)
    return rows


def _result(row: dict[str, Any], tar: Path, places: dict[str, Place]) -> Fetched | str:
    if row["status"] != "success":
        return stable_reason(row["error_message"] or "")
    place = places.get(row["key"])
    if place is None:
        return NO_RESULT
    return Fetched(tar, row["key"], place, *(row[name] for name in _FACTS))
