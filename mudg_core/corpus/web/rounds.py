"""Links in rounds: all of them first, then, after a pause, those alone whose failure may have passed.

img2dataset's own retries would ask a server again at once, and also for what cannot change.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from time import monotonic, sleep
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mudg_core.corpus.shards import Place, locate, pictures_in, read_places
from mudg_core.corpus.web.img2dataset import TICK_SECONDS, fetch, is_complete
from mudg_core.corpus.web.rules import NO_RESULT, PASSING, TIMED_OUT, stable_reason
from mudg_core.corpus.web.shrink import Shrinker, ShrinkSettings
from mudg_core.errors import OrchestrationError
from mudg_core.retries import web_links
from mudg_core.settings import DownloadSettings

KEPT = "kept"
ROWS_PER_CALL = 1000  # whose pictures lie on the disk as they were sent, megabytes each, at a time
_ROWS_AT_A_TIME = 100  # as it writes them


class Sent(NamedTuple):
    """Where a picture lies as a server has sent it. Nobody has looked at it yet."""

    tar: Path
    place: Place


class Fetched(NamedTuple):
    """Where a picture lies, and the sizes (width, height) that it has and had."""

    file: Path
    place: Place
    sizes: tuple[int, int, int, int]


@dataclass
class Progress:
    """By position: what was fetched, or why it was not. A row that has been tried is in one of the two."""

    fetched: dict[int, Fetched] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    rounds: int = 0
    requested: int = 0  # rows, in every round

    def share(self, ended: int) -> float:
        """Roughly what is done of all that was asked for so far, by connections that ended: a redirect is one
        more, and a retry round is more to do."""
        return min(1.0, ended / max(1, self.requested))

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
        progress.requested += len(waiting)
        for kind, positions in by_hash(links, waiting):
            for start in range(0, len(positions), ROWS_PER_CALL):
                some = positions[start : start + ROWS_PER_CALL]
                folder = scratch / f"{number}-{kind}-{start}"
                results = read_results(
                    fetch(_links_to_fetch(links, some, kind), folder, proxy, settings, meanwhile), len(some)
                )
                for position, result in zip(
                    some, _shrunk(results, scratch, settings, meanwhile), strict=True
                ):
                    progress.settle(position, result)
                rmtree(folder)
        waiting = [position for position in waiting if progress.reasons.get(position) in PASSING]


def pause(number: int, waiting: Sequence[int], links: pa.Table, backoff: float) -> float:
    """Longer every round, and different for every shard, so that workers do not come back all at once."""
    seed = zlib.crc32(str(links["url"][waiting[0]]).encode()) + number
    return web_links(number, backoff).delay(number, random.Random(seed))


def by_hash(links: pa.Table, positions: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Rows by the hash that they are checked against; a call checks one kind, and for all of its rows."""
    left = list(positions)
    for kind in ("sha256", "md5"):
        if kind in links.column_names:
            is_known = pc.is_valid(links[kind]).to_pylist()
            if positions_here := [position for position in left if is_known[position]]:
                yield kind, positions_here
            left = [position for position in left if not is_known[position]]
    if left:
        yield "none", left


def _links_to_fetch(links: pa.Table, positions: Sequence[int], kind: str) -> pa.Table:
    rows = links.take(pa.array(positions))
    columns = {"url": rows["url"].cast(pa.string())}
    if kind != "none":
        columns[kind] = pc.ascii_lower(rows[kind].cast(pa.string()))
    return pa.table(columns)


def _shrunk(
    results: list[Sent | str], scratch: Path, settings: DownloadSettings, meanwhile: Callable[[], None]
) -> Iterator[Fetched | str]:
    """What is kept of the pictures that were sent, behind each other in one file."""
    limits = ShrinkSettings(settings.image_size, settings.quality, settings.max_bytes, settings.max_pixels)
    tick = monotonic()
    with Shrinker(limits) as shrink, (scratch / KEPT).open("ab") as kept:
        for result in results:
            if isinstance(result, str):
                yield result
                continue
            small = shrink(read_places(result.tar, {"": result.place})[""])
            if isinstance(small, str):
                yield small
            else:
                place = Place(kept.tell(), len(small.image))
                kept.write(small.image)
                yield Fetched(scratch / KEPT, place, small[1:])
            if monotonic() - tick > TICK_SECONDS:
                meanwhile()
                tick = monotonic()


def read_results(out: Path, rows: int) -> list[Sent | str]:
    """What became of each row of a call, in order, however img2dataset came by them."""
    tar = out / "00000.tar"
    if not is_complete(out):
        sent = {int(key): Sent(tar, place) for key, place in pictures_in(tar).items()}
        return [sent.get(row, TIMED_OUT) for row in range(rows)]
    results: list[Sent | str] = [NO_RESULT] * rows
    try:
        table = _table(out / "00000.parquet")
        keys = {row["key"] for row in table if row["status"] == "success"}
        places = locate(tar, keys)
        for row in table:
            results[int(row["key"])] = _result(row, tar, places)
    except (pa.ArrowException, ValueError, IndexError, KeyError) as error:
        what = f"img2dataset's result cannot be read: {error!r}"
        fix = "use img2dataset 1.47 (`make setup` installs it)"
        raise OrchestrationError(what=what, where=str(out), fix=fix) from error
    return results


def _table(path: Path) -> list[dict[str, Any]]:
    columns = ["key", "status", "error_message"]
    rows: list[dict[str, Any]] = []
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(_ROWS_AT_A_TIME, columns=columns):
            rows += batch.to_pylist()
    return rows


def _result(row: dict[str, Any], tar: Path, places: dict[str, Place]) -> Sent | str:
    if row["status"] != "success":
        return stable_reason(row["error_message"] or "")
    place = places.get(row["key"])
    return NO_RESULT if place is None else Sent(tar, place)
