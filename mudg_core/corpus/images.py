"""Images of corpus rows, read back from the shards they lie in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mudg_core.corpus.shards import Place, locate, read_places

Link = Mapping[str, Any]  # a row's metadata: at least shard (number), key and url


@dataclass(frozen=True)
class ShardImages:
    """`links` says where each row lies. A shard is walked through once, however often rows are asked for."""

    tar_of: Callable[[int], Path]
    links: Mapping[int, Link]
    _places: dict[int, dict[str, Place]] = field(default_factory=dict, repr=False)

    def read(self, rows: Iterable[int]) -> dict[int, bytes]:
        """Encoded images by row; a row without an image is left out."""
        wanted: dict[int, dict[str, int]] = {}
        for row in rows:
            link = self.links[row]
            wanted.setdefault(link["shard"], {})[link["key"]] = row
        found: dict[int, bytes] = {}
        for shard, keys in sorted(wanted.items()):
            places = self._located(shard)
            here = {key: places[key] for key in keys if key in places}
            found |= {keys[key]: data for key, data in read_places(self.tar_of(shard), here).items()}
        return found

    def _located(self, shard: int) -> dict[str, Place]:
        if shard not in self._places:
            keys = {link["key"] for link in self.links.values() if link["shard"] == shard}
            self._places[shard] = locate(self.tar_of(shard), keys)
        return self._places[shard]


def is_dead(link: Link) -> bool:
    """Whether a link has died since it was crawled. The demo world marks such links in their URL."""
    return "/gone/" in link["url"]
