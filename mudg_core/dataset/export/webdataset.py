"""WebDataset: tars of `.jpg`, `.txt`, `.json` and `.cls`, as the artifact itself is one, of bounded size.

Pictures are called `.jpg` whatever they are, as img2dataset does it: readers ask for one name and look at the
content.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mudg_core.corpus.shards import ShardSample, write_shard
from mudg_core.dataset.export.imagefolder import PROVENANCE, write_classes
from mudg_core.dataset.export.source import Item, Source, in_parts
from mudg_core.dataset.export.tables import ProvenanceCsv

MAX_SHARD_BYTES = 500_000_000


def write_webdataset(source: Source, out: Path, max_bytes: int = MAX_SHARD_BYTES) -> None:
    write_classes(source, out)
    with ProvenanceCsv(out / PROVENANCE, source.classes) as table:
        for number, part in enumerate(in_parts(source.items(), max_bytes)):
            tar = out / f"train-{number:05d}.tar"
            write_shard(_samples(part, tar.name, table), tar, tar.with_suffix(".parquet"))


def _samples(items: Iterator[Item], file: str, table: ProvenanceCsv) -> Iterator[ShardSample]:
    for item in items:
        table.add(file, item)
        yield ShardSample(
            key=f"{item.row:09d}",
            url=item.facts["url"],
            caption=item.facts["caption"],
            image=item.image,
            label=item.label,
        )
