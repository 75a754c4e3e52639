"""A folder of image files. The caption of `boat.jpg` is in `boat.txt`, or else in the words of its path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from mudg_core.corpus.shards import MAX_MEMBER_BYTES, ShardSample
from mudg_core.corpus.sources.files import Entry, SourceFiles
from mudg_core.corpus.sources.shard import SourceFile, SourceShard
from mudg_core.errors import MissingArtifactError

SUFFIXES = frozenset({"jpg", "jpeg", "png", "webp", "gif", "bmp"})
CAPTION_BYTES = 64 << 10
WORDS = re.compile(r"[^\W\d_]{2,}")


def recognises(entries: Sequence[Entry]) -> bool:
    return any(entry.suffix in SUFFIXES for entry in entries)


def parts(files: SourceFiles, entries: Sequence[Entry], rows_per_shard: int) -> Iterator[list[SourceFile]]:
    """A file is known by its name and size: what is in it is hashed when it is embedded."""
    captions = {entry.stem: entry.size for entry in entries if entry.suffix == "txt"}
    for entry in entries:
        if entry.suffix in SUFFIXES:
            facts = f"{entry.size} {captions.get(entry.stem)}"
            known = hashlib.sha256(facts.encode()).hexdigest()
            yield [SourceFile(name=entry.name, size=entry.size, rows=1, fingerprint=known)]


def samples(files: SourceFiles, shard: SourceShard, scratch: Path) -> Iterator[tuple[str, ShardSample]]:
    for file in shard.files:
        caption, why = _caption(files, file.name)
        image = files.read(file.name, MAX_MEMBER_BYTES + 1) if caption is not None else None
        url = f"{files.url}/{file.name}"
        yield file.name, ShardSample(file.name, url, caption or "", image, error_message=why)


def images(files: SourceFiles, file: str, keys: Collection[str], scratch: Path) -> dict[str, bytes]:
    return {file: files.read(file, MAX_MEMBER_BYTES + 1)}


def _caption(files: SourceFiles, name: str) -> tuple[str | None, str | None]:
    """(caption, or why there is none that can be used)."""
    stem = name.rpartition(".")[0]
    try:
        written = files.read(f"{stem}.txt", CAPTION_BYTES + 1)
    except MissingArtifactError:
        return " ".join(WORDS.findall(stem)), None
    if len(written) > CAPTION_BYTES:
        return None, "text: too long"
    try:
        return written.decode("utf-8-sig").replace("\0", " ").strip(), None
    except UnicodeDecodeError:
        return None, "text: not UTF-8"
