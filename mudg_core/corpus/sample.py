"""One row of a shard, and how it is put together from the members of a tar."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa

from mudg_core.corpus.tar import Member

IMAGE_SUFFIXES = frozenset({"jpg", "jpeg", "png", "webp", "gif", "bmp"})
MAX_CAPTION_BYTES = 64 * 2**10
MAX_FACTS_BYTES = 2**20
MAX_MEMBERS = 64  # of one sample
MISSING = "image: missing"
TWICE = "tar: member twice"
TOO_MANY = "tar: too many members"
TEXT_TOO_LONG = "text: too long"
NOT_UTF8 = "text: not UTF-8"
NOT_JSON = "text: not JSON"
_TEXT_LIMITS = {"txt": MAX_CAPTION_BYTES, "json": MAX_FACTS_BYTES}
SIZES = ("width", "height", "original_width", "original_height")
_COLUMNS = ("key", "url", "caption", "status", "error_message", *SIZES, "exif", "sha256")
PARQUET_SCHEMA = pa.schema([(name, pa.int32() if name in SIZES else pa.string()) for name in _COLUMNS])


@dataclass(frozen=True)
class ShardSample:
    """One row. `image` holds encoded bytes, or None when the link was dead or the sample is refused.

    `error_message` then says why. `opt_out` marks a picture whose owner does not want it used.
    """

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
    opt_out: bool = False
    label: int | None = None  # of a training set; a corpus has none

    @property
    def status(self) -> str:
        return "failed_to_download" if self.image is None else "success"

    @property
    def sha256(self) -> str | None:
        return None if self.image is None else hashlib.sha256(self.image).hexdigest()

    def columns(self) -> dict[str, str | int | None]:
        """The row as it stands in the parquet and in the json beside the picture."""
        return {name: getattr(self, name) for name in PARQUET_SCHEMA.names}


def refused(key: str, reason: str) -> ShardSample:
    return ShardSample(key, "", "", error_message=reason)


@dataclass
class Parts:
    """The members of one sample so far. What no caller needs is not read."""

    key: str
    refusal: str | None = None
    image: bytes | None = None
    texts: dict[str, bytes] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def add(self, suffix: str, member: Member, stream: BinaryIO) -> None:
        self.refusal = self.refusal or member.refusal or self._problem(suffix, member.size)
        if self.refusal is not None:
            return
        self.seen.add(suffix)
        is_image = suffix in IMAGE_SUFFIXES and self.image is None
        if is_image or suffix in _TEXT_LIMITS:
            stream.seek(member.offset)
            content = stream.read(member.size)
            if is_image:
                self.image = content
            else:
                self.texts[suffix] = content

    def _problem(self, suffix: str, size: int) -> str | None:
        if suffix in self.seen:
            return TWICE
        if len(self.seen) == MAX_MEMBERS:
            return TOO_MANY
        return TEXT_TOO_LONG if size > _TEXT_LIMITS.get(suffix, size) else None

    def is_settled(self) -> bool:
        """Whether no further member could change the sample much: not its caption, and not an opt-out."""
        sample = self.sample()
        return self.refusal is not None or bool(sample.image and sample.caption and "json" in self.texts)

    def sample(self) -> ShardSample:
        if self.refusal is not None:
            return refused(self.key, self.refusal)
        try:
            return self._put_together()
        except UnicodeError:
            return refused(self.key, NOT_UTF8)
        except (ValueError, RecursionError):
            return refused(self.key, NOT_JSON)

    def _put_together(self) -> ShardSample:
        facts = self._facts()
        caption, url = self._caption(facts), _text(facts.get("url")) or ""
        exif, error = _text(facts.get("exif")), _text(facts.get("error_message"))
        "".join((url, exif or "", error or "")).encode()  # json may hold halves of characters: UnicodeError
        if len(caption.encode()) > MAX_CAPTION_BYTES:
            return refused(self.key, TEXT_TOO_LONG)
        return ShardSample(
            self.key,
            url,
            caption.replace("\0", " "),
            self.image,
            error_message=MISSING if self.image is None else error,
            width=_whole(facts.get("width")),
            height=_whole(facts.get("height")),
            original_width=_whole(facts.get("original_width")),
            original_height=_whole(facts.get("original_height")),
            exif=exif,
            opt_out=facts.get("opt_out") in (True, "1", "true", "True"),
        )

    def _facts(self) -> dict[str, Any]:
        """What the json says; foreign shards may have none."""
        facts = json.loads(self.texts["json"].decode("utf-8-sig")) if "json" in self.texts else {}
        if not isinstance(facts, dict):
            raise ValueError("facts have names")
        return facts

    def _caption(self, facts: dict[str, Any]) -> str:
        if "txt" in self.texts:
            return self.texts["txt"].decode("utf-8-sig")
        return _text(facts.get("caption")) or ""


def _whole(value: object) -> int | None:
    """A number that fits its column, which bools and what strangers write for a joke do not."""
    return value if type(value) is int and 0 <= value < 2**31 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
