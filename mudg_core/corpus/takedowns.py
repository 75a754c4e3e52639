"""Images that were taken down: one list for a store, which everything that reads images honours.

One artifact holds the list, and the pointer `forgotten` names it; it only grows. An image is known by its
address and by its bytes, so that it stays away when it comes back under another row or address. Addresses are
kept as hashes: a list of what was taken down must not publish it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mudg_core.errors import ConflictError
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from mudg_core.storage.manifest import hash_of

STAGE, POINTER, FILE = "forgotten", "forgotten", "forgotten.json"
COLUMNS = ("row", "url", "sha256")
TRIES, BATCH = 10, 65_536
HOW = {"model": "trained on", "classifier": "trained on", "report": "may show"}


@dataclass(frozen=True)
class Takedowns:
    """`rows` are of images that have neither an address nor known bytes. `marked`: artifacts (`stage/key`)
    that hold or were trained on such an image, and how many of them."""

    urls: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()
    rows: frozenset[int] = frozenset()
    marked: Mapping[str, int] = field(default_factory=dict)
    ref: ArtifactRef | None = None

    def __bool__(self) -> bool:
        return bool(self.urls or self.contents or self.rows)

    def __or__(self, other: Takedowns) -> Takedowns:
        names = {*self.marked, *other.marked}
        marked = {name: max(self.marked.get(name, 0), other.marked.get(name, 0)) for name in names}
        return Takedowns(
            self.urls | other.urls, self.contents | other.contents, self.rows | other.rows, marked
        )

    @classmethod
    def of(cls, images: pa.Table, urls: Iterable[str] = ()) -> Takedowns:
        """These images (columns `row`, `url`, `sha256`), and whatever lies at these addresses."""
        lines = [(line["row"], line.get("url"), line.get("sha256")) for line in images.to_pylist()]
        return cls(
            frozenset(hash_url(url) for url in (*urls, *(url for _, url, _ in lines)) if url),
            frozenset(content for _, _, content in lines if content),
            frozenset(row for row, url, content in lines if not url and not content),
        )

    def matches(self, images: pa.Table | pa.RecordBatch) -> NDArray[np.bool_]:
        """Which lines of a table are of such an image, by whichever of COLUMNS it has."""
        hits = np.isin(images.column("row").to_numpy(zero_copy_only=False), sorted(self.rows))
        names = images.schema.names
        if self.contents and "sha256" in names:
            same = pc.is_in(images.column("sha256"), pa.array(sorted(self.contents), pa.string()))
            hits |= same.to_numpy(zero_copy_only=False).astype(bool)
        if self.urls and "url" in names:
            urls = images.column("url").to_pylist()
            hits |= np.array([bool(url) and hash_url(url) in self.urls for url in urls], dtype=bool)
        return hits

    def rows_in(self, file: Path) -> list[int]:
        """Rows of such images in a parquet file, read in parts."""
        return [row for batch in self._hits_in(file) for row in batch.column("row").to_pylist()]

    def with_bytes(self, files: Iterable[Path]) -> Takedowns:
        """The same, and by the bytes that these parquet files know of it: copies lie at other addresses."""
        batches = (batch for file in files for batch in self._hits_in(file) if "sha256" in batch.schema.names)
        known = frozenset(content for batch in batches for content in batch.column("sha256").to_pylist())
        return self | Takedowns(contents=known - {None, ""})

    def _hits_in(self, file: Path) -> Iterator[pa.RecordBatch]:
        if not self:
            return
        with pq.ParquetFile(file) as table:
            columns = [name for name in COLUMNS if name in table.schema_arrow.names]
            for batch in table.iter_batches(BATCH, columns=columns):
                yield batch.filter(pa.array(self.matches(batch)))

    def note(self, name: str) -> str:
        """What is to be said of an artifact (`stage/key`); empty if nothing is."""
        if not (count := self.marked.get(name, 0)):
            return ""
        images = "an image" if count == 1 else f"{count:,} images"
        how = HOW.get(name.partition("/")[0], "holds")
        return f"{how} {images} since taken down"


def hash_url(url: str) -> str:
    return hashlib.sha256(url.strip().encode("utf-8", "surrogatepass")).hexdigest()


def read_takedowns(store: ArtifactStore) -> Takedowns:
    """All of it; nothing if nobody ever asked."""
    pointer = store.pointer(POINTER)
    return load_takedowns(store, pointer.ref) if pointer else Takedowns()


def remember(store: ArtifactStore, more: Takedowns) -> Takedowns:
    """Adds to the list; what others add at the same time is not lost."""
    for _ in range(TRIES):
        pointer = store.pointer(POINTER)
        before = load_takedowns(store, pointer.ref) if pointer else Takedowns()
        after = replace(before | more, ref=before.ref)
        if after == before:
            return before
        ref = _save(store, after)
        try:
            store.move_pointer(POINTER, ref, pointer)
        except ConflictError:
            continue
        return replace(after, ref=ref)
    raise ConflictError(what="other writers change the list of takedowns all the time", fix="run again")


def load_takedowns(store: ArtifactStore, ref: ArtifactRef) -> Takedowns:
    body = json.loads(store.file(ref, FILE).read_text())
    lists = {name: frozenset(body[name]) for name in ("urls", "contents", "rows")}
    return Takedowns(**lists, marked=body["marked"], ref=ref)


def _save(store: ArtifactStore, takedowns: Takedowns) -> ArtifactRef:
    body = {name: sorted(getattr(takedowns, name)) for name in ("urls", "contents", "rows")}
    body["marked"] = dict(sorted(takedowns.marked.items()))  # type: ignore[assignment]

    def make(scratch: Path) -> Facts:
        (scratch / FILE).write_text(json.dumps(body, indent=0))
        return Facts({name: len(found) for name, found in body.items()})

    return store.build(Recipe(stage=STAGE, algorithm=1, settings={"inputs": {"list": hash_of(body)}}), make)
