"""WebDataset tars, as img2dataset writes them or as anybody else does."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus.shards import ShardSample, read_members, read_shard
from mudg_core.corpus.sources.files import Entry, SourceFiles
from mudg_core.corpus.sources.shard import SourceFile, SourceShard

SAMPLE_BYTES = 1024  # a tar has no sample in less: a header and a block of content
STATS_BYTES = 1 << 20
BLOCK = 512


def recognises(entries: Sequence[Entry]) -> bool:
    return any(entry.suffix == "tar" for entry in entries)


def parts(files: SourceFiles, entries: Sequence[Entry], rows_per_shard: int) -> Iterator[list[SourceFile]]:
    """Tars one by one; small ones are put together later."""
    names = {entry.name: entry for entry in entries}
    for entry in entries:
        if entry.suffix == "tar" and entry.size and _is_tar(files.read(entry.name, BLOCK)):
            rows = min(_counted(files, names, entry), max(1, entry.size // SAMPLE_BYTES))
            fingerprint = files.fingerprint(entry)
            yield [SourceFile(name=entry.name, size=entry.size, rows=max(1, rows), fingerprint=fingerprint)]


def samples(files: SourceFiles, shard: SourceShard, scratch: Path) -> Iterator[tuple[str, ShardSample]]:
    fingerprints = {file.name: file.fingerprint for file in shard.files}
    for name, path in files.fetched(list(fingerprints), scratch):
        files.expect(name, fingerprints[name], path)
        for sample in read_shard(path):
            yield name, sample


def images(files: SourceFiles, file: str, keys: Collection[str], scratch: Path) -> dict[str, bytes]:
    with files.local(file, scratch) as path:
        return read_members(path, keys)


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar" or head == bytes(BLOCK) or head[:1].isalnum()


def _counted(files: SourceFiles, names: dict[str, Entry], tar: Entry) -> int:
    """How many samples img2dataset says that a tar has, or at most could have."""
    if stats := names.get(f"{tar.stem}_stats.json"):
        try:
            successes = json.loads(files.read(stats.name, STATS_BYTES))["successes"]
            if isinstance(successes, int) and successes > 0:
                return successes
        except (ValueError, KeyError, TypeError):
            pass
    if table := names.get(f"{tar.stem}.parquet"):
        try:
            with files.open(table) as stream:
                return int(pq.read_metadata(stream).num_rows)
        except (pa.ArrowException, OSError):
            pass
    return tar.size // SAMPLE_BYTES
