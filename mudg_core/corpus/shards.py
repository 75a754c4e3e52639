"""Shards in the layout of img2dataset: a WebDataset tar and, beside it, a parquet with one line a row.

The tar holds `000000012.jpg`, `.txt` and `.json` for every picture that could be fetched; rows that failed
are only in the parquet, so that ids keep counting. Tars may come from strangers: nothing is ever unpacked to
disk, and a member that is not a plain file of reasonable size with a harmless name stops the read.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from mudg_core.errors import DataError

AnyPath = str | os.PathLike[str]

JPEG_QUALITY = 90
MAX_MEMBER_BYTES = 64 * 2**20
IMAGE_SUFFIXES = frozenset({"jpg", "jpeg", "png", "webp"})
_ROWS_PER_GROUP = 10_000
_TEXT, _NUMBER = pa.string(), pa.int32()
PARQUET_SCHEMA = pa.schema(
    [
        ("key", _TEXT),
        ("url", _TEXT),
        ("caption", _TEXT),
        ("status", _TEXT),
        ("error_message", _TEXT),
        ("width", _NUMBER),
        ("height", _NUMBER),
        ("original_width", _NUMBER),
        ("original_height", _NUMBER),
        ("exif", _TEXT),
        ("sha256", _TEXT),
    ]
)


class Place(NamedTuple):
    """Where a member's bytes lie in a tar."""

    offset: int
    size: int


@dataclass(frozen=True)
class ShardSample:
    """One row. `image` holds encoded bytes, or None when the link was dead and `error_message` says why."""

    key: str
    url: str
    caption: str
    image: bytes | None = field(default=None, repr=False)
    error_message: str | None = None
    width: int | None = None
    height: int | None = None
    original_width: int | None = None
    original_height: int | None = None
    exif: str | None = None

    @property
    def status(self) -> str:
        return "failed_to_download" if self.image is None else "success"

    @property
    def sha256(self) -> str | None:
        return None if self.image is None else hashlib.sha256(self.image).hexdigest()

    def columns(self) -> dict[str, str | int | None]:
        """The row as it stands in the parquet and in the json beside the picture."""
        return {name: getattr(self, name) for name in PARQUET_SCHEMA.names}


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
    facts = json.dumps(sample.columns(), ensure_ascii=False)
    parts = (("jpg", sample.image), ("txt", sample.caption.encode()), ("json", facts.encode()))
    for suffix, content in parts:
        member = tarfile.TarInfo(f"{sample.key}.{suffix}")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))


def read_shard(tar_path: AnyPath, max_member_bytes: int = MAX_MEMBER_BYTES) -> Iterator[ShardSample]:
    """The samples of a tar, in order, one in memory at a time."""
    parts: dict[str, bytes] = {}
    current = None
    with _open(tar_path) as tar:
        for member in _members(tar, tar_path, max_member_bytes):
            key, suffix = _split(member.name)
            if key != current and parts:
                yield _sample(str(current), parts, tar_path)
                parts = {}
            current = key
            if suffix in parts:
                raise _hostile(tar_path, member, "occurs twice in one sample")
            parts[suffix] = _content(tar, member)
        if parts:
            yield _sample(str(current), parts, tar_path)


def locate(
    tar_path: AnyPath, keys: Collection[str], max_member_bytes: int = MAX_MEMBER_BYTES
) -> dict[str, Place]:
    """Where the pictures of `keys` lie; only headers are read. A key without a picture is left out."""
    wanted = set(keys)
    found: dict[str, Place] = {}
    with _open(tar_path) as tar:
        for member in _members(tar, tar_path, max_member_bytes):
            key, suffix = _split(member.name)
            if key in wanted and suffix in IMAGE_SUFFIXES:
                found[key] = Place(member.offset_data, member.size)
            if len(found) == len(wanted):
                break
    return found


def read_places(tar_path: AnyPath, places: Mapping[str, Place]) -> dict[str, bytes]:
    """The bytes at known places of a tar."""
    with Path(tar_path).open("rb") as stream:
        found = {}
        for key, place in places.items():
            stream.seek(place.offset)
            found[key] = stream.read(place.size)
    return found


def read_members(tar_path: AnyPath, keys: Collection[str]) -> dict[str, bytes]:
    """The encoded pictures of `keys`, for a single visit; see `locate` for more."""
    return read_places(tar_path, locate(tar_path, keys))


@contextmanager
def _open(tar_path: AnyPath) -> Iterator[tarfile.TarFile]:
    """Plain tars only: a compressed one could unfold without end."""
    try:
        with tarfile.open(tar_path, "r:") as tar:
            yield tar
    except tarfile.TarError as error:
        raise DataError(
            what=f"the shard cannot be read: {error}",
            where=os.fspath(tar_path),
            fix="fetch or write the shard again",
        ) from error


def _members(tar: tarfile.TarFile, tar_path: AnyPath, limit: int) -> Iterator[tarfile.TarInfo]:
    """The plain files of a tar. Names and kinds are judged before any content is touched."""
    while (member := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # as above: bounded memory
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\0" in member.name:
            raise _hostile(tar_path, member, "has a name that leads out of the shard")
        if member.isdir():
            continue
        if not member.isreg() or member.issparse():
            raise _hostile(tar_path, member, "is a link, a device or another special file")
        if member.size > limit:
            raise _hostile(tar_path, member, f"has {member.size} bytes, more than the {limit} allowed")
        yield member
    _check_end(tar)


def _check_end(tar: tarfile.TarFile) -> None:
    """tarfile takes a torn or damaged header for the end of the archive; a whole one ends in zeros."""
    assert tar.fileobj is not None
    tar.fileobj.seek(tar.offset)
    if tar.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError("it stops before its end")


def _hostile(tar_path: AnyPath, member: tarfile.TarInfo, why: str) -> DataError:
    return DataError(
        what=f"member {member.name!r} {why}",
        where=os.fspath(tar_path),
        fix="do not use this shard unless you trust and repair its source",
    )


def _split(name: str) -> tuple[str, str]:
    """Key and suffix of a member, by WebDataset's rule: the key ends at the first dot of the file name."""
    folder, slash, file = name.rpartition("/")
    stem, _, suffix = file.partition(".")
    return folder + slash + stem, suffix.lower()


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    with tar.extractfile(member) as stream:  # type: ignore[union-attr]  # only None for special files
        return stream.read()


def _sample(key: str, parts: dict[str, bytes], tar_path: AnyPath) -> ShardSample:
    """Put the files of one key together; foreign shards may lack the text or the json."""
    try:
        facts: Any = json.loads(parts.get("json", b"{}"))
        caption = parts["txt"].decode() if "txt" in parts else str(facts.get("caption") or "")
        url = str(facts.get("url") or "")
    except (ValueError, AttributeError) as error:
        raise DataError(
            what=f"the text of sample {key!r} cannot be read: {error}",
            where=os.fspath(tar_path),
            fix="fetch or write the shard again",
        ) from error
    image = next((parts[suffix] for suffix in parts if suffix in IMAGE_SUFFIXES), None)
    return ShardSample(
        key,
        url,
        caption,
        image,
        error_message=_text(facts.get("error_message")),
        width=_whole(facts.get("width")),
        height=_whole(facts.get("height")),
        original_width=_whole(facts.get("original_width")),
        original_height=_whole(facts.get("original_height")),
        exif=_text(facts.get("exif")),
    )


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
