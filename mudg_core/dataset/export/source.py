"""What is exported: a training set as its artifact holds it, with names, queries and lineage around it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mudg_core import __version__
from mudg_core.corpus.decode import Refused, suffix_of
from mudg_core.corpus.shards import read_shard
from mudg_core.corpus.takedowns import read_takedowns
from mudg_core.dataset.fetch_filter_refill import CHOSEN
from mudg_core.dataset.takedowns import takedowns_in_dataset
from mudg_core.dataset.training_set import PROVENANCE, TAR
from mudg_core.errors import DataError, InputError
from mudg_core.settings import Json
from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest
from mudg_core.target.queries import SPEC

STAGE = "dataset"
COLUMNS = ("row", "label", "query", "rank", "cosine", "fresh_cosine", "group", "url", "caption")


class Item(NamedTuple):
    """One image of a training set. `facts` has a value for each of COLUMNS but the label."""

    row: int
    label: int
    image: bytes
    suffix: str
    facts: Json


@dataclass(frozen=True)
class Source:
    """A training set on disk, and what only its ancestors know."""

    tar: Path
    provenance: Path
    classes: tuple[str, ...]
    prompts: tuple[str, ...]
    lineage: Json
    without: frozenset[int] = frozenset()  # rows that were taken down

    @classmethod
    def open(cls, store: ArtifactStore, ref: ArtifactRef, targets: Sequence[str] = ()) -> Source:
        """Class names and queries come from the artifact's parents, so that they cannot contradict them."""
        if ref.stage != STAGE:
            raise InputError(
                what=f"{ref} is no dataset", where=store.url, fix="`mudg dataset list` shows what there is"
            )
        manifests = list(store.lineage(ref))
        queries = manifests[-1].recipe.parents.get("queries")
        if not isinstance(queries, ArtifactRef):
            raise DataError(what=f"{ref} does not say which queries it came from", where=store.uri(ref))
        spec = json.loads(store.file(queries, SPEC).read_text())
        without = frozenset(takedowns_in_dataset(store, ref, read_takedowns(store)))
        return cls(
            tar=store.file(ref, TAR),
            provenance=store.file(ref, PROVENANCE),
            classes=tuple(spec["classes"]),
            prompts=tuple(spec["prompts"]),
            lineage=_lineage(manifests, spec["template"], targets) | {"forgotten": len(without)},
            without=without,
        )

    @cached_property
    def chosen(self) -> pa.Table:
        """Provenance of the images in the tar; read in parts, for most lines are of images that are not."""
        file = pq.ParquetFile(self.provenance)
        columns = [name for name in (*COLUMNS, "outcome") if name in file.schema_arrow.names]
        parts = [
            batch.filter(pc.equal(batch.column("outcome"), CHOSEN))
            for batch in file.iter_batches(10_000, columns=columns)
        ]
        schema = pa.schema([file.schema_arrow.field(name) for name in columns])
        table = pa.Table.from_batches(parts, schema=schema).drop_columns(["outcome"])
        return table.filter(pa.array(~np.isin(table.column("row").to_numpy(), list(self.without))))

    @property
    def size(self) -> int:
        return int(self.chosen.num_rows)

    def per_class(self) -> list[int]:
        labels = self.chosen.column("label").to_numpy()
        return [int(n) for n in np.bincount(labels, minlength=len(self.classes))]

    def items(self) -> Iterator[Item]:
        """The images in the order of the tar, one in memory at a time, each beside its provenance."""
        rows = self.chosen.column("row").to_numpy()
        order = np.argsort(rows, kind="stable")
        seen = 0
        for sample in read_shard(self.tar):
            row = int(sample.key) if sample.key.isdecimal() else -1
            if row in self.without:
                continue
            place = int(np.searchsorted(rows, row, sorter=order))
            if sample.image is None or place == len(rows) or rows[order[place]] != row:
                raise self._damaged(f"image {sample.key[:40]!r} is damaged or unknown")
            seen += 1
            yield self._item(sample.image, self.chosen.slice(int(order[place]), 1).to_pylist()[0])
        if seen != len(rows):
            raise self._damaged(f"{seen} of {len(rows)} images are there")

    def _item(self, image: bytes, facts: Json) -> Item:
        label = facts.pop("label")
        try:
            return Item(
                facts["row"], label, image, suffix_of(image), facts | {"query": self.prompts[facts["query"]]}
            )
        except (Refused, IndexError) as error:
            raise self._damaged(f"image {facts['row']}: {error}") from error

    def _damaged(self, why: str) -> DataError:
        return DataError(
            what=f"the images of a dataset do not fit its provenance: {why}",
            where=str(self.tar),
            fix="`mudg show --verify` tells whether the artifact is damaged; run the target again",
        )


def in_parts(items: Iterator[Item], max_bytes: int) -> Iterator[Iterator[Item]]:
    """Images file by file: as many as fit, and one at least. Use up a part before asking for the next."""
    for first in items:
        yield _part(chain([first], items), max_bytes)


def _part(items: Iterator[Item], max_bytes: int) -> Iterator[Item]:
    size = 0
    for item in items:
        size += len(item.image)
        yield item
        if size >= max_bytes:
            return


def _lineage(manifests: Sequence[Manifest], template: str, targets: Sequence[str]) -> Json:
    """What it takes to know what this is and to make it again; no address of this store."""
    own = manifests[-1]
    stages: dict[str, list[str]] = {}
    for manifest in manifests:
        stages.setdefault(manifest.recipe.stage, []).append(str(manifest.ref))
    return {
        "mudg": __version__,
        "dataset": f"{own.recipe.stage}/{own.key}",
        "digest": own.digest,
        "created": own.circumstances.created,
        "targets": list(targets),
        "template": template,
        "seed": _input(manifests, "picks", "seed"),
        "index": next(iter(stages.get("index", ())), None),
        "settings": _settings(manifests, ("queries", "candidates", "labels", "picks", STAGE)),
        "weights": dict(own.recipe.weights),
        "made_from": {stage: {"artifacts": len(refs), "first": refs[0]} for stage, refs in stages.items()},
    }


def _input(manifests: Sequence[Manifest], stage: str, name: str) -> Any:
    for manifest in manifests:
        inputs = manifest.recipe.settings.get("inputs")
        if manifest.recipe.stage == stage and isinstance(inputs, dict):
            return inputs.get(name)
    return None


def _settings(manifests: Sequence[Manifest], stages: Sequence[str]) -> Json:
    settings: Json = {}
    for manifest in manifests:
        if manifest.recipe.stage in stages:
            settings |= {name: value for name, value in manifest.recipe.settings.items() if name != "inputs"}
    return dict(sorted(settings.items()))
