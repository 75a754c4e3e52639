"""Images behind links, fetched by img2dataset through the guard: all of a shard, put in order, or those of a
few rows, when a target has chosen them.

What a shard holds depends on what servers sent, and not on which of them answered first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

import pyarrow as pa

from mudg_core.corpus.shard_reader import TABLE, TAR, Answer, Link
from mudg_core.corpus.shards import ShardSample, read_places, write_shard
from mudg_core.corpus.web.guard import Guard, Tally
from mudg_core.corpus.web.rounds import Fetched, Progress, fetch_in_rounds, pause
from mudg_core.corpus.web.rules import OPTED_OUT, Rules, why_never_fetched
from mudg_core.errors import DataError, InputError, OrchestrationError
from mudg_core.settings import DownloadSettings

_BATCH = 1000
_DIGITS = {"sha256": 64, "md5": 32}
_YES = (True, 1, "1", "true", "True")


@dataclass(frozen=True)
class Downloaded:
    """What became of the links of one shard. `stopped` counts connections that the guard ended, each once a
    round; `reasons` counts rows."""

    rows: int
    images: int
    reasons: dict[str, int]
    rounds: int
    connections: int
    bytes: int
    stopped: dict[str, int]

    @property
    def image_share(self) -> float:
        """The yield, as a share of all rows."""
        return self.images / self.rows


def download(
    links: pa.Table,
    out: Path,
    settings: DownloadSettings,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Downloaded:
    """Writes `shard.tar` and `shard.parquet` into `out`. `links` has url and caption, and may have opt_out
    and the images' md5 or sha256; row i gets the key i. `on_progress` gets the share that
    is done, once a second, and ends it by an error."""
    _check(links)
    with disk_failures(out):
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".download-", dir=out) as scratch:
            progress, tally = fetch_links(links, Path(scratch), settings, on_progress)
            done = _summary(links.num_rows, progress, tally)
            _check_yield(done, settings.min_yield)
            _write(_samples(links, progress), out)
    return done


def fetch_links(
    links: pa.Table,
    scratch: Path,
    settings: DownloadSettings,
    on_progress: Callable[[float], None] = lambda share: None,
) -> tuple[Progress, Tally]:
    """What became of each link; images lie below `scratch`. `links` has url, and may have opt_out and
    hashes."""
    progress = Progress(reasons=_never_fetched(links))
    with Guard(_rules(settings)) as guard:
        tally = guard.tally
        fetch_in_rounds(
            links,
            scratch.absolute(),
            guard.url,
            settings,
            progress,
            lambda: on_progress(progress.share(tally.ended)),
        )
    return progress, guard.tally


@contextmanager
def disk_failures(folder: Path) -> Iterator[None]:
    """A disk that is full is nobody's link's fault."""
    try:
        yield
    except OSError as error:
        what = f"a download could not be kept: {error}"
        fix = "free disk space there, and run again"
        raise OrchestrationError(what=what, where=str(folder), fix=fix) from error


def _check(links: pa.Table) -> None:
    missing = sorted({"url", "caption"} - set(links.column_names))
    if missing or not links.num_rows:
        what = f"links have no {' and no '.join(missing)}" if missing else "there are no links to download"
        raise InputError(what=what, fix="give a table with columns url and caption and at least one row")


def _rules(settings: DownloadSettings) -> Rules:
    return Rules(
        max_bytes=settings.max_bytes,
        max_seconds=settings.max_seconds,
        idle_seconds=settings.timeout_seconds,
        ports=frozenset(settings.ports),
        allowed=tuple(ip_network(text) for text in settings.allow_networks),
        connections=settings.threads,
    )


def _never_fetched(links: pa.Table) -> dict[int, str]:
    """Rows that nobody is asked for, and why."""
    reasons: dict[int, str] = {}
    for position, row in enumerate(_rows(links, "url", "opt_out")):
        reason = OPTED_OUT if row.get("opt_out") in _YES else why_never_fetched(row["url"])
        if reason is not None:
            reasons[position] = reason
    return reasons


def _rows(links: pa.Table, *columns: str) -> Iterator[dict[str, Any]]:
    chosen = links.select([name for name in columns if name in links.column_names])
    for batch in chosen.to_batches(max_chunksize=_BATCH):
        yield from batch.to_pylist()


def _summary(rows: int, progress: Progress, tally: Tally) -> Downloaded:
    return Downloaded(
        rows=rows,
        images=len(progress.fetched),
        reasons=dict(sorted(Counter(progress.reasons.values()).items())),
        rounds=progress.rounds,
        connections=tally.connections,
        bytes=tally.bytes,
        stopped=dict(sorted(tally.stopped.items())),
    )


def _check_yield(done: Downloaded, required: float) -> None:
    if done.image_share >= required:
        return
    counts = ", ".join(f"{reason} {count}" for reason, count in Counter(done.reasons).most_common(8))
    what = f"{done.images} of {done.rows} links gave an image, fewer than {required:.0%}: {counts}"
    fix = "see that this machine reaches the web; if the list is merely old, lower download.min_yield"
    raise DataError(what=what, fix=fix)


def _write(samples: Iterator[ShardSample], out: Path) -> None:
    """Both files, or neither."""
    try:
        write_shard(samples, out / TAR, out / TABLE)
    except BaseException:
        for name in (TAR, TABLE):
            (out / name).unlink(missing_ok=True)
        raise


def _samples(links: pa.Table, progress: Progress) -> Iterator[ShardSample]:
    for position, row in enumerate(_rows(links, "url", "caption")):
        key, url, caption = f"{position:09d}", row["url"] or "", row["caption"] or ""
        if fetched := progress.fetched.get(position):
            yield ShardSample(key, url, caption, _image(fetched), None, *fetched.sizes)
        else:
            yield ShardSample(key, url, caption, error_message=progress.reasons[position])


def _image(fetched: Fetched) -> bytes:
    return read_places(fetched.file, {"": fetched.place})[""]


@dataclass(frozen=True)
class LinkedImages:
    """Images of a few rows. `links` has the metadata of each row: a url, and perhaps opt_out, sha256 and md5.

    Every call is for all its rows at once, because img2dataset takes seconds to start. A link whose failure
    may pass is not retried here: the caller has others, and calls once more when there are none left.
    """

    links: Mapping[int, Link]
    settings: DownloadSettings
    scratch: Path
    keep_opted_out: bool = False
    verify_hashes: bool = True
    on_progress: Callable[[float], None] = lambda share: None  # of the rows of one call
    _asked: set[int] = field(default_factory=set, repr=False)

    def __call__(self, rows: Sequence[int]) -> Answer:
        links = self._table(rows)
        if not self._asked.isdisjoint(rows):  # once more: servers get some time to recover
            sleep(pause(1, [0], links, self.settings.backoff_seconds))
        self._asked.update(rows)
        once = self.settings.model_copy(update={"retries": 0})
        with disk_failures(self.scratch), TemporaryDirectory(prefix="links-", dir=self.scratch) as folder:
            progress, _ = fetch_links(links, Path(folder), once, self.on_progress)
            images = {rows[place]: _image(fetched) for place, fetched in progress.fetched.items()}
        return Answer(images, {rows[place]: reason for place, reason in progress.reasons.items()})

    def _table(self, rows: Sequence[int]) -> pa.Table:
        lines = [self.links[row] for row in rows]
        columns = {"url": pa.array([line["url"] for line in lines], pa.string())}
        if not self.keep_opted_out:
            columns["opt_out"] = pa.array([bool(line.get("opt_out")) for line in lines])
        if self.verify_hashes:
            columns |= {
                kind: pa.array([_hash(line, kind) for line in lines], pa.string()) for kind in _DIGITS
            }
        return pa.table(columns)


def _hash(link: Link, kind: str) -> str | None:
    """What is no hash cannot be compared with."""
    text = str(link.get(kind) or "").strip()
    return text if re.fullmatch(rf"[0-9a-fA-F]{{{_DIGITS[kind]}}}", text) else None
