"""Corpus shards, opened: those that we have drawn or downloaded, and those that lie where their owners keep
them; and images of single rows, read back from their shards or fetched by their links."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from mudg_core.corpus.shards import ShardSample, locate, read_places, read_shard
from mudg_core.corpus.sources import KINDS
from mudg_core.corpus.sources import shard as registered
from mudg_core.corpus.sources.files import SourceFiles
from mudg_core.corpus.sources.shard import SourceShard
from mudg_core.errors import DataError
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore

TAR, TABLE = "shard.tar", "shard.parquet"
Link = Mapping[str, Any]  # a row's metadata: at least shard (number), file, key and url

GONE = "gone since it was crawled"
NOT_THERE = "not in its shard"


class CorpusShard(Protocol):
    """Samples in order, once, each with the file it lies in; images any time later."""

    @property
    def first_row(self) -> int: ...

    @property
    def rows(self) -> int:
        """How many rows it owns: at most so many samples are its own."""

    def samples(self, scratch: Path) -> Iterator[tuple[str, ShardSample]]: ...

    def images(self, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
        """Encoded images by (file, key); one that is not there is left out."""


@dataclass(frozen=True)
class StoredShard:
    """A tar in the store."""

    first_row: int
    rows: int
    tar: Path

    def samples(self, scratch: Path) -> Iterator[tuple[str, ShardSample]]:
        return ((TAR, sample) for sample in read_shard(self.tar))

    def images(self, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
        places = locate(self.tar, {key for _, key in wanted})
        return {(TAR, key): data for key, data in read_places(self.tar, places).items()}


@dataclass(frozen=True)
class RegisteredShard:
    """Files of a source."""

    shard: SourceShard
    storage: StorageSettings

    @property
    def first_row(self) -> int:
        return self.shard.first_row

    @property
    def rows(self) -> int:
        return self.shard.rows

    @property
    def files(self) -> SourceFiles:
        return SourceFiles(self.shard.url, self.storage)

    def samples(self, scratch: Path) -> Iterator[tuple[str, ShardSample]]:
        samples: Iterator[tuple[str, ShardSample]] = self._function("samples")(
            self.files, self.shard, scratch
        )
        return samples

    def images(self, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
        read, files = self._function("images"), self.files
        images: dict[tuple[str, str], bytes] = {}
        with TemporaryDirectory(prefix="mudg-") as scratch:
            for file in sorted({file for file, _ in wanted}):
                keys = {key for where, key in wanted if where == file}
                by_key = read(files, file, keys, Path(scratch))
                images |= {(file, key): data for key, data in by_key.items()}
        return images

    def _function(self, name: str) -> Any:
        """A function of the shard's kind, as `sources` lists them."""
        function = getattr(KINDS[self.shard.kind], name, None)
        if function is None:
            what = f"a source of kind {self.shard.kind!r} has no images of its own"
            fix = "a target that chooses images of published embeddings fetches them by their links"
            raise DataError(what=what, where=self.shard.url, fix=fix)
        return function


def has_images(store: ArtifactStore, ref: ArtifactRef) -> bool:
    """Whether images lie in a shard; those of published embeddings are behind links. Opens nothing."""
    if ref.stage != registered.STAGE:
        return True
    return hasattr(KINDS[str(store.manifest(ref).facts["kind"])], "images")


def open_images(store: ArtifactStore, ref: ArtifactRef) -> CorpusShard | None:
    """The shard, if images lie in it."""
    return open_shard(store, ref) if has_images(store, ref) else None


def open_shard(store: ArtifactStore, ref: ArtifactRef) -> CorpusShard:
    if ref.stage == registered.STAGE:
        return RegisteredShard(registered.load(store, ref), store.settings)
    facts = store.manifest(ref).facts
    first_row, rows = (int(str(facts[name])) for name in ("first_row", "rows"))
    return StoredShard(first_row, rows, store.file(ref, TAR))


class Answer(NamedTuple):
    """Encoded images by row, and why there is none for each other row that was requested."""

    images: dict[int, bytes]
    reasons: dict[int, str]


Ask = Callable[[Sequence[int]], Answer]


@dataclass(frozen=True)
class ShardImages:
    """`links` says where each row lies. A shard is read once for all rows of a call."""

    open_shard: Callable[[int], CorpusShard | None]  # None: no images lie there
    links: Mapping[int, Link]
    _opened: dict[int, CorpusShard | None] = field(default_factory=dict, repr=False)

    def read(self, rows: Iterable[int]) -> dict[int, bytes]:
        """Encoded images by row; a row without an image is left out."""
        wanted: dict[int, dict[tuple[str, str], int]] = {}
        for row in rows:
            link = self.links[row]
            wanted.setdefault(link["shard"], {})[link.get("file") or TAR, link["key"]] = row
        images: dict[int, bytes] = {}
        for number, places in sorted(wanted.items()):
            if number not in self._opened:
                self._opened[number] = self.open_shard(number)
            if (shard := self._opened[number]) is not None:
                images |= {places[place]: data for place, data in shard.images(places.keys()).items()}
        return images


@dataclass(frozen=True)
class CorpusImages:
    """A corpus may have both: rows whose images lie in shards, and `linked` rows, fetched `by_link`."""

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
