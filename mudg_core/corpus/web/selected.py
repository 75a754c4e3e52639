"""Images of a few rows of a pool that has links and no images: fetched when a target has chosen them.

Every call asks for all its rows at once, because img2dataset takes seconds to start. A link whose failure may
pass is not asked again here: whoever chose it has others, and asks once more when there are none left.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

import pyarrow as pa

from mudg_core.corpus.images import Answer, Link
from mudg_core.corpus.web.download import follow, kept_in, picture
from mudg_core.corpus.web.rounds import pause
from mudg_core.settings import DownloadSettings

_DIGITS = {"sha256": 64, "md5": 32}


@dataclass(frozen=True)
class LinkedImages:
    """`links` has the metadata of each row: a url, and perhaps opt_out, sha256 and md5."""

    links: Mapping[int, Link]
    settings: DownloadSettings
    scratch: Path
    keep_opted_out: bool = False
    verify_hashes: bool = True
    told: Callable[[float], None] = lambda share: None  # of the rows of one call
    _asked: set[int] = field(default_factory=set, repr=False)

    def __call__(self, rows: Sequence[int]) -> Answer:
        links = self._table(rows)
        if not self._asked.isdisjoint(rows):  # once more: servers get some time to recover
            sleep(pause(1, [0], links, self.settings.backoff_seconds))
        self._asked.update(rows)
        once = self.settings.model_copy(update={"retries": 0})
        with kept_in(self.scratch), TemporaryDirectory(prefix="links-", dir=self.scratch) as folder:
            progress, _ = follow(links, Path(folder), once, self.told)
            images = {rows[place]: picture(found) for place, found in progress.fetched.items()}
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
