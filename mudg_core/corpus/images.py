"""Images of corpus rows: read back from the shards they lie in, or asked for by their links."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mudg_core.corpus.shard_reader import TAR, CorpusShard

Link = Mapping[str, Any]  # a row's metadata: at least shard (number), file, key and url

GONE = "gone since it was crawled"
NOT_THERE = "not in its shard"


class Answer(NamedTuple):
    """Encoded images by row, and why there is none for each other row that was asked for."""

    images: dict[int, bytes]
    reasons: dict[int, str]


Ask = Callable[[Sequence[int]], Answer]


@dataclass(frozen=True)
class ShardImages:
    """`links` says where each row lies. A shard is visited once for all rows that are asked for together."""

    open_shard: Callable[[int], CorpusShard | None]  # None: no images lie there
    links: Mapping[int, Link]
    _opened: dict[int, CorpusShard | None] = field(default_factory=dict, repr=False)

    def read(self, rows: Iterable[int]) -> dict[int, bytes]:
        """Encoded images by row; a row without an image is left out."""
        wanted: dict[int, dict[tuple[str, str], int]] = {}
        for row in rows:
            link = self.links[row]
            wanted.setdefault(link["shard"], {})[link.get("file") or TAR, link["key"]] = row
        found: dict[int, bytes] = {}
        for number, places in sorted(wanted.items()):
            if number not in self._opened:
                self._opened[number] = self.open_shard(number)
            if (shard := self._opened[number]) is not None:
                found |= {places[place]: data for place, data in shard.images(places.keys()).items()}
        return found


@dataclass(frozen=True)
class CorpusImages:
    """A corpus may have both: rows whose images lie in shards, and `linked` rows, asked for `by_link`."""

    shards: ShardImages
    linked: Collection[int]
    by_link: Ask

    def __call__(self, rows: Sequence[int]) -> Answer:
        stored = [row for row in rows if row not in self.linked]
        gone = {row for row in stored if is_dead(self.shards.links[row])}
        images = self.shards.read(row for row in stored if row not in gone)
        reasons = {row: GONE if row in gone else NOT_THERE for row in stored if row not in images}
        linked = [row for row in rows if row in self.linked]
        answer = self.by_link(linked) if linked else Answer({}, {})
        return Answer(images | answer.images, reasons | answer.reasons)


def is_dead(link: Link) -> bool:
    """Whether a link has died since it was crawled. The demo world marks such links in their URL."""
    return str(link["url"]).startswith("https://images.demo.example/gone/")
