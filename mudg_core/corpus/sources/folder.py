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
GONE, CHANGED = "file: gone since it was added", "file: changed since it was added"
WORDS = re.compile(r"[^\W\d_]{2,}")


def recognises(entries: Sequence[Entry]) -> bool:
    return any(entry.suffix in SUFFIXES for entry in entries)


def parts(files: SourceFiles, entries: Sequence[Entry], rows_per_shard: int) -> Iterator[list[SourceFile]]:
    """A file is known by its name and size: what is in it is hashed when it is embedded."""
    captions = {entry.stem: entry.size for entry in entries if entry.suffix == "txt"}
    for entry in entries:
        if entry.suffix in SUFFIXES:
            fingerprint = _fingerprint(entry.size, captions.get(entry.stem))
            yield [SourceFile(name=entry.name, size=entry.size, rows=1, fingerprint=fingerprint)]


def samples(files: SourceFiles, shard: SourceShard, scratch: Path) -> Iterator[tuple[str, ShardSample]]:
    """A file that is gone or has changed costs itself: each has its own row, so the others keep theirs."""
    for file in shard.files:
        written = _read(files, f"{_stem(file.name)}.txt", CAPTION_BYTES)
        caption, why = _caption(file.name, written)
        image = _read(files, file.name, MAX_MEMBER_BYTES) if caption is not None else None
        if caption is not None and (image is None or not _unchanged(file, image, written)):
            image, why = None, GONE if image is None else CHANGED
        url = f"{files.url}/{file.name}"
        yield file.name, ShardSample(file.name, url, caption or "", image, error_message=why)


def images(files: SourceFiles, file: str, keys: Collection[str], scratch: Path) -> dict[str, bytes]:
    image = _read(files, file, MAX_MEMBER_BYTES)
    return {} if image is None else {file: image}


def _caption(name: str, written: bytes | None) -> tuple[str | None, str | None]:
    """(caption, or why there is none that can be used)."""
    if written is None:
        return " ".join(WORDS.findall(_stem(name))), None
    if len(written) > CAPTION_BYTES:
        return None, "text: too long"
    try:
        return written.decode("utf-8-sig").replace("\0", " ").strip(), None
    except UnicodeDecodeError:
        return None, "text: not UTF-8"


def _read(files: SourceFiles, name: str, most: int) -> bytes | None:
    """A file, of one that is too large the beginning; None if there is none."""
    try:
        return files.read(name, most + 1)
    except MissingArtifactError:
        return None


def _unchanged(file: SourceFile, image: bytes, written: bytes | None) -> bool:
    """By what was just read. An image that is too large was not read whole, and is refused for that."""
    if len(image) > MAX_MEMBER_BYTES:
        return True
    beside = Entry(file.name, file.size).stem == _stem(file.name)  # else its caption was not looked at
    size = len(written) if beside and written is not None else None
    return file.fingerprint == _fingerprint(len(image), size)


def _fingerprint(image: int, caption: int | None) -> str:
    return hashlib.sha256(f"{image} {caption}".encode()).hexdigest()


def _stem(name: str) -> str:
    return name.rpartition(".")[0]
