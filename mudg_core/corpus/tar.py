"""The members of a tar that a stranger made: where each plain file lies, and why any other is refused.

Python's tarfile is for archives one trusts. In the version we run on, a negative size makes it loop for ever,
a chain of long-name headers exhausts its stack and 60 kB of digits in a pax header cost it six seconds; it
also needs most of the time that a shard of small pictures takes. This reader follows no link, moves only
forward, keeps one header in memory and knows ustar, pax and GNU long names, as shard writers use them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from mudg_core.errors import DataError

OUTSIDE = "tar: leads out of the shard"
NAME_NOT_UTF8 = "tar: name not UTF-8"
NAME_TOO_LONG = "tar: name too long"
LINK = "tar: link"
DEVICE = "tar: device"
SPARSE = "tar: sparse file"
SPECIAL = "tar: special file"
TOO_LARGE = "tar: too large"
CUT_SHORT = "tar: cut short"

MAX_NAME_BYTES = 4096
MAX_PAX_BYTES = 2**20
BLOCK = 512
_ZEROS = bytes(BLOCK)
_PLAIN, _FOLDER, _GNU_SPARSE = b"0\x007", b"5", b"S"
_LONG_NAME, _PAX, _PASSED_OVER = b"L", b"xX", b"Kg"
_WITHOUT_DATA = b"123456"
_REFUSED_KINDS = {b"1": LINK, b"2": LINK, b"3": DEVICE, b"4": DEVICE, b"6": DEVICE, _GNU_SPARSE: SPARSE}


class Member(NamedTuple):
    """A plain file, or with a `refusal` anything that is not to be read."""

    name: str
    offset: int
    size: int
    refusal: str | None = None


class _Damaged(Exception):
    """Nothing behind this place can be trusted."""


class _Header(NamedTuple):
    kind: bytes
    name: bytes
    size: int
    block: bytes


@dataclass
class _Extra:
    """What extra headers say of the member behind them."""

    name: bytes | None = None
    size: int | None = None
    sparse: bool = False

    def take(self, name: bytes | None, size: int | None = None) -> None:
        self.name = name if self.name is None else self.name
        self.size = size if self.size is None else self.size


def walk(stream: BinaryIO, max_bytes: int) -> Iterator[Member]:
    """Members in order, without folders. A torn tar ends in one that is `CUT_SHORT`, nameless if unknown."""
    end = stream.seek(0, os.SEEK_END)
    at, extra = 0, _Extra()
    try:
        while (header := _header(stream, at)) is not None:
            data = at + BLOCK
            if header.kind in _LONG_NAME + _PAX + _PASSED_OVER:
                size = header.size
                _read_extra(stream, header, end - data, extra)
            else:
                data, size, member = _member(stream, header, data, extra, max_bytes)
                if data + size > end:
                    yield member._replace(refusal=CUT_SHORT)
                    return
                if header.kind != _FOLDER:
                    yield member
                extra = _Extra()
            at = data + size + -size % BLOCK
    except _Damaged:
        yield Member("", at, 0, CUT_SHORT)


def _header(stream: BinaryIO, at: int) -> _Header | None:
    """The header at a place, or None where the archive ends."""
    stream.seek(at)
    block = stream.read(BLOCK)
    if block == _ZEROS:
        return None
    if len(block) < BLOCK or not _is_intact(block):
        if at == 0:
            what = "the shard cannot be read: it is not a plain tar"
            fix = "fetch or write the shard again; a compressed one must be uncompressed first"
            raise DataError(what=what, where=str(stream.name), fix=fix)
        raise _Damaged
    kind, name = block[156:157], _until_nul(block[:100])
    if kind == b"\0" and name.endswith(b"/"):
        kind = _FOLDER  # as tars had it before there was a kind for folders
    if block[257:263] == b"ustar\0" and block[345]:
        name = _until_nul(block[345:500]) + b"/" + name
    return _Header(kind, name, _number(block[124:136]), block)


def _is_intact(block: bytes) -> bool:
    field = block[148:156]
    total = sum(block) - sum(field) + 256
    try:
        stated = _number(field)
    except _Damaged:
        return False
    if stated == total:
        return True
    signed = total - 256 * sum(byte > 127 for byte in block[:148] + block[156:])
    return stated == signed  # some old systems added signed bytes


def _number(field: bytes) -> int:
    """Octal digits, or binary behind a mark. Never negative, for then the walk could go back."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = _until_nul(field).strip()
    if not digits:
        return 0
    try:
        if digits.isdigit():  # int() alone takes signs and underscores
            return int(digits, 8)
    except ValueError:
        pass
    raise _Damaged


def _until_nul(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _read_extra(stream: BinaryIO, header: _Header, left: int, extra: _Extra) -> None:
    """Take in an extra header; if two contradict, the first counts, as for tarfile.

    Those for all members, and targets of links, say nothing of use.
    """
    if header.size > left:
        raise _Damaged
    if header.kind in _LONG_NAME:
        extra.take(name=_until_nul(stream.read(min(header.size, MAX_NAME_BYTES + 1))))
    elif header.kind in _PAX:
        if header.size > MAX_PAX_BYTES:
            raise _Damaged
        records = _pax_records(stream.read(header.size))
        size = _decimal(records[b"size"]) if b"size" in records else None
        extra.take(records.get(b"GNU.sparse.name", records.get(b"path")), size)
        extra.sparse |= any(key.startswith(b"GNU.sparse.") for key in records)


def _pax_records(text: bytes) -> dict[bytes, bytes]:
    """Lines of `length key=value`, where the length counts the whole line."""
    records = {}
    at = 0
    while at < len(text) and text[at]:
        space = text.find(b" ", at, at + 20)
        stop = at + _decimal(text[at : max(space, at)])
        if not space < stop <= len(text):
            raise _Damaged
        key, _, value = text[space + 1 : stop].removesuffix(b"\n").partition(b"=")
        records[key] = value
        at = stop
    return records


def _decimal(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 20:
        raise _Damaged
    return int(digits)


def _member(
    stream: BinaryIO, header: _Header, data: int, extra: _Extra, max_bytes: int
) -> tuple[int, int, Member]:
    """Where the data of a member begins, how many bytes it takes in the tar, and what to make of it."""
    if header.kind == _GNU_SPARSE:
        data = _behind_sparse_map(stream, header, data)
    size = header.size if extra.size is None else extra.size
    name, refusal = _check_name(header.name if extra.name is None else extra.name)
    if refusal is None and (extra.sparse or header.kind not in _PLAIN):
        refusal = SPARSE if extra.sparse else _REFUSED_KINDS.get(header.kind, SPECIAL)
    if refusal is None and size > max_bytes:
        refusal = TOO_LARGE
    return data, 0 if header.kind in _WITHOUT_DATA else size, Member(name, data, size, refusal)


def _check_name(raw: bytes) -> tuple[str, str | None]:
    """A name that is safe to show, and why it is refused."""
    if len(raw) > MAX_NAME_BYTES:
        return raw[:100].decode(errors="replace"), NAME_TOO_LONG
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        return raw.decode(errors="replace"), NAME_NOT_UTF8
    if name.startswith("/") or "\\" in name or "\0" in name or (".." in name and ".." in name.split("/")):
        return name.replace("\0", " "), OUTSIDE
    return name, None


def _behind_sparse_map(stream: BinaryIO, header: _Header, at: int) -> int:
    more = header.block[482]
    while more:
        block = stream.read(BLOCK)
        if len(block) < BLOCK:
            raise _Damaged
        at, more = at + BLOCK, block[504]
    return at
