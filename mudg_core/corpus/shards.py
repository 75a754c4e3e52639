"""Shards in the layout of img2dataset: a WebDataset tar and, beside it, a parquet with one line a row.

The tar holds `000000012.jpg`, `.txt` and `.json` for every picture that could be fetched, and `.cls` for one
that has a label; rows that failed are only in the parquet, so that ids keep counting. Tars may come from
strangers: nothing is ever unpacked to disk, and a sample with a member that is not a plain file of reasonable
size and harmless name is refused: it comes without a picture and with a reason, and reading goes on.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from mudg_core.corpus.sample import IMAGE_SUFFIXES, PARQUET_SCHEMA, Parts, ShardSample, refused
from mudg_core.corpus.tar import BLOCK, CUT_SHORT, Member, walk

__all__ = [
    "IMAGE_SUFFIXES",
    "PARQUET_SCHEMA",
    "Place",
    "ShardSample",
    "encode_jpeg",
    "locate",
    "read_members",
    "read_places",
    "read_shard",
    "write_shard",
]

AnyPath = str | os.PathLike[str]

JPEG_QUALITY = 90
MAX_MEMBER_BYTES = 64 * 2**20
_BUFFER_BYTES = 2**18
_ROWS_PER_GROUP = 10_000


class Place(NamedTuple):
    """Where a member's bytes lie in a tar."""

    offset: int
    size: int


def encode_jpeg(image: Image.Image, quality: int = JPEG_QUALITY) -> bytes:
    stored = io.BytesIO()
    image.convert("RGB").save(stored, "JPEG", quality=quality)
    return stored.getvalue()


def write_shard(samples: Iterable[ShardSample], tar_path: AnyPath, parquet_path: AnyPath) -> int:
    """Write a shard and return its number of rows. The same samples give the same bytes."""
    count = 0
    waiting: list[dict[str, str | int | None]] = []
    with (
        tarfile.open(tar_path, "w", format=tarfile.USTAR_FORMAT) as tar,
        pq.ParquetWriter(parquet_path, PARQUET_SCHEMA) as table,
    ):
        for sample in samples:
            count += 1
            _add_sample(tar, sample)
            waiting.append(sample.columns())
            if len(waiting) == _ROWS_PER_GROUP:
                table.write_table(pa.Table.from_pylist(waiting, PARQUET_SCHEMA))
                waiting.clear()
            tar.members.clear()  # type: ignore[attr-defined]  # tarfile would keep every header in memory
        table.write_table(pa.Table.from_pylist(waiting, PARQUET_SCHEMA))
    return count


def _add_sample(tar: tarfile.TarFile, sample: ShardSample) -> None:
    if sample.image is None:
        return
    facts = json.dumps(sample.columns() | ({"opt_out": True} if sample.opt_out else {}), ensure_ascii=False)
    parts = [("jpg", sample.image), ("txt", sample.caption.encode()), ("json", facts.encode())]
    if sample.label is not None:
        parts.append(("cls", str(sample.label).encode()))
    for suffix, content in parts:
        member = tarfile.TarInfo(f"{sample.key}.{suffix}")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))


def read_shard(tar_path: AnyPath, max_member_bytes: int = MAX_MEMBER_BYTES) -> Iterator[ShardSample]:
    """The samples of a tar, in order, one in memory at a time. A bad one costs itself and no other.

    Of a tar that was cut short, the samples before the cut come first, then one that is refused.
    """
    parts: Parts | None = None
    with Path(tar_path).open("rb", buffering=_BUFFER_BYTES) as stream:
        for member in walk(stream, max_member_bytes):
            if member.refusal == CUT_SHORT:
                yield from _torn(parts, member)
                return
            key, suffix = _split(member.name)
            if parts is None or key != parts.key:
                if parts is not None:
                    yield parts.sample()
                parts = Parts(key)
            parts.add(suffix, member, stream)
    if parts is not None:
        yield parts.sample()


def _torn(parts: Parts | None, cut: Member) -> Iterator[ShardSample]:
    """The last sample stands if the cut is in another one, or if all that matters of it was there."""
    last = parts.key if parts is not None else ""
    key = _split(cut.name)[0] if cut.name else last
    if parts is not None and (key != last or (not cut.name and parts.is_settled())):
        yield parts.sample()
    yield refused(key, CUT_SHORT)


def locate(
    tar_path: AnyPath, keys: Collection[str], max_member_bytes: int = MAX_MEMBER_BYTES
) -> dict[str, Place]:
    """Where the pictures of `keys` lie; only headers are read. A key without a good picture is left out."""
    wanted = set(keys)
    places: dict[str, Place] = {}
    for key, place in _pictures(tar_path, max_member_bytes):
        if key in wanted:
            places.setdefault(key, place)
        if len(places) == len(wanted):
            break
    return places


def pictures_in(tar_path: AnyPath) -> dict[str, Place]:
    """Where the good pictures of a tar lie that may have been cut short anywhere, by key."""
    is_empty = Path(tar_path).stat().st_size < BLOCK
    return {} if is_empty else dict(_pictures(tar_path, MAX_MEMBER_BYTES))


def _pictures(tar_path: AnyPath, max_member_bytes: int) -> Iterator[tuple[str, Place]]:
    with Path(tar_path).open("rb") as stream:
        for member in walk(stream, max_member_bytes):
            key, suffix = _split(member.name)
            if suffix in IMAGE_SUFFIXES and member.refusal is None:
                yield key, Place(member.offset, member.size)


def read_places(tar_path: AnyPath, places: Mapping[str, Place]) -> dict[str, bytes]:
    """The bytes at known places of a tar."""
    with Path(tar_path).open("rb") as stream:
        contents = {}
        for key, place in places.items():
            stream.seek(place.offset)
            contents[key] = stream.read(place.size)
    return contents


def read_members(tar_path: AnyPath, keys: Collection[str]) -> dict[str, bytes]:
    """The encoded pictures of `keys`, for a single visit; see `locate` for more."""
    return read_places(tar_path, locate(tar_path, keys))


def _split(name: str) -> tuple[str, str]:
    """Key and suffix of a member, by WebDataset's rule: the key ends at the first dot of the file name."""
    folder, slash, file = name.rpartition("/")
    stem, _, suffix = file.partition(".")
    return folder + slash + stem, suffix.lower()
