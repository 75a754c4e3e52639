"""Images of corpus rows, read back from the shards they lie in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mudg_core.corpus.opened import TAR, CorpusShard

Link = Mapping[str, Any]  # a row's metadata: at least shard (number), file, key and url


@dataclass(frozen=True)
class ShardImages:
    """`links` says where each row lies. A shard is visited once for all rows that are asked for together."""

    open_shard: Callable[[int], CorpusShard]
    links: Mapping[int, Link]
    _opened: dict[int, CorpusShard] = field(default_factory=dict, repr=False)

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
            images = self._opened[number].images(places.keys())
            found |= {places[place]: data for place, data in images.items()}
        return found


def is_dead(link: Link) -> bool:
    """Whether a link has died since it was crawled. The demo world marks such links in their URL."""
    return str(link["url"]).startswith("https://images.demo.example/gone/")
