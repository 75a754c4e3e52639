"""A registered shard: which part of which source, and the row numbers it owns.

It is an artifact of a few kilobytes, made when a source is added; everything made from it names it as its
parent. Row numbers are given out once and never again, so an index that grows keeps the numbers it has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from mudg_core.errors import DataError
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from mudg_core.storage.manifest import Record, hash_of

STAGE = "source-shard"
SHARD = "shard.json"

KindName = Literal["webdataset", "links", "embeddings", "folder"]


class SourceFile(Record):
    """A file, or some rows of one. `rows` is how many it has at most: ids are set aside for so many."""

    name: str
    size: int = Field(ge=0)
    rows: int = Field(ge=1)
    start: int = Field(default=0, ge=0)
    fingerprint: str

    @property
    def identity(self) -> tuple[str, int]:
        return self.name, self.start


class SourceShard(Record):
    kind: KindName
    url: str
    first_row: int = Field(ge=0)
    files: tuple[SourceFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


def save(store: ArtifactStore, shard: SourceShard) -> ArtifactRef:
    """Its files may be many, so the recipe has their hash and the artifact their names."""
    body = shard.model_dump(mode="json")
    facts = {name: body[name] for name in ("kind", "url", "first_row")}
    facts |= {"rows": shard.rows, "bytes": shard.bytes, "files": len(shard.files)}

    def make(scratch: Path) -> Facts:
        (scratch / SHARD).write_text(shard.model_dump_json())
        return Facts(facts)

    recipe = Recipe(stage=STAGE, algorithm=1, settings={"inputs": {"shard": hash_of(body)}})
    return store.build(recipe, make)


def load(store: ArtifactStore, ref: ArtifactRef) -> SourceShard:
    file = store.file(ref, SHARD)
    try:
        return SourceShard.model_validate_json(file.read_bytes())
    except ValidationError as error:
        what = f"registered shard {ref} cannot be read"
        raise DataError(what=what, where=str(file), fix="upgrade mudg, or add the source again") from error
