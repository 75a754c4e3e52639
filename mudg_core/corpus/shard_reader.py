"""A corpus shard, opened: one that we have drawn or downloaded, or one that lies where its owner keeps it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from mudg_core.corpus.shards import Place, ShardSample, locate, read_places, read_shard
from mudg_core.corpus.sources import KINDS
from mudg_core.corpus.sources import shard as registered
from mudg_core.corpus.sources.files import SourceFiles
from mudg_core.corpus.sources.shard import SourceShard
from mudg_core.errors import DataError
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore

TAR, TABLE = "shard.tar", "shard.parquet"


class CorpusShard(Protocol):
    """Samples once, in order, each with the file it lies in; images again, whenever they are asked for."""

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
        places: dict[str, Place] = locate(self.tar, {key for _, key in wanted})
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
        found: Iterator[tuple[str, ShardSample]] = self._module("samples")(self.files, self.shard, scratch)
        return found

    def images(self, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
        read, files = self._module("images"), self.files
        found: dict[tuple[str, str], bytes] = {}
        with TemporaryDirectory(prefix="mudg-") as scratch:
            for file in sorted({file for file, _ in wanted}):
                keys = {key for where, key in wanted if where == file}
                here = read(files, file, keys, Path(scratch))
                found |= {(file, key): data for key, data in here.items()}
        return found

    def _module(self, function: str) -> Any:
        """A function of the shard's kind, as `sources` lists them."""
        found = getattr(KINDS[self.shard.kind], function, None)
        if found is None:
            raise DataError(
                what=f"a source of kind {self.shard.kind!r} has no images of its own",
                where=self.shard.url,
                fix="a target that chooses images of published embeddings fetches them by their links",
            )
        return found


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
