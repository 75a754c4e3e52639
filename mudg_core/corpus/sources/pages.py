"""What the pages of a parquet column unpack to and how they are encoded, by their own headers.

The footer has a sum of these sizes, but a reader takes memory by the headers, and whoever writes a file can
write anything into either. Arrow shows the footer alone, so the headers are walked here: Thrift's compact
protocol, of which a few numbers are wanted and the rest is skipped.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, NamedTuple

MAX_HEADER_BYTES = 1 << 20
MAX_PAGES = 100_000  # of one column chunk; writers make one a megabyte
MAX_DEPTH = 8
MAX_SIZE = 1 << 31  # a reader takes the lower half of a longer number, and is then at another place than we
UNPACKED, PACKED = (2,), (3,)  # fields of a page's header
ENCODINGS = (5, 2), (8, 4)  # and of the two kinds of pages with values
STOP, TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
INTEGERS = (4, 5, 6)

Place = tuple[int, ...]


class Page(NamedTuple):
    """`encodings`: the numbers that parquet's format gives them; none for a dictionary."""

    unpacked: int
    encodings: frozenset[int]


def pages(stream: IO[bytes], start: int, length: int) -> Iterator[Page]:
    """Each page between two places of a file. ValueError for headers that make no sense."""
    end = start + length
    for _ in range(MAX_PAGES):
        if start >= end:
            return
        stream.seek(start)
        header = io.BytesIO(stream.read(min(MAX_HEADER_BYTES, end - start)))
        fields = _struct(header)
        packed, unpacked = fields.get(PACKED, -1), fields.get(UNPACKED, -1)
        if not (0 <= packed < MAX_SIZE and 0 <= unpacked < MAX_SIZE):
            raise ValueError("a page without its sizes")
        yield Page(unpacked, frozenset(fields[place] for place in ENCODINGS if place in fields))
        start += header.tell() + packed
    raise ValueError(f"more than {MAX_PAGES:,} pages in one column")


def _struct(stream: IO[bytes], depth: int = 0, at: Place = ()) -> dict[Place, int]:
    """The integers of a struct, and of those inside it, by the numbers of their fields."""
    if depth > MAX_DEPTH:
        raise ValueError("a header that is nested too deep")
    fields: dict[Place, int] = {}
    number = 0
    while (head := _byte(stream)) & 15 != STOP:
        number = number + (head >> 4) if head >> 4 else _zigzag(stream)
        kind = head & 15
        if kind in INTEGERS:
            fields[*at, number] = _zigzag(stream)
        elif kind == STRUCT:
            fields |= _struct(stream, depth + 1, (*at, number))
        elif kind not in (TRUE, FALSE):  # which the head has said already
            _skip(stream, kind, depth)
    return fields


def _skip(stream: IO[bytes], kind: int, depth: int) -> None:
    if kind in INTEGERS:
        _zigzag(stream)
    elif kind in (TRUE, FALSE, BYTE):
        _byte(stream)
    elif kind in (DOUBLE, BINARY):
        stream.seek(8 if kind == DOUBLE else _varint(stream), io.SEEK_CUR)
    elif kind == STRUCT:
        _struct(stream, depth + 1)
    elif kind in (LIST, SET):
        head = _byte(stream)
        for _ in range(_counted(_varint(stream) if head >> 4 == 15 else head >> 4)):
            _skip(stream, head & 15, depth + 1)
    else:
        raise ValueError(f"a header with a field of type {kind}")


def _counted(items: int) -> int:
    if items > MAX_HEADER_BYTES:
        raise ValueError("a header with too long a list")
    return items


def _zigzag(stream: IO[bytes]) -> int:
    value = _varint(stream)
    return (value >> 1) ^ -(value & 1)


def _varint(stream: IO[bytes]) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(stream)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise ValueError("a number of more than 64 bits")


def _byte(stream: IO[bytes]) -> int:
    data = stream.read(1)
    if not data:
        raise ValueError("a header that is cut short or too long")
    return data[0]
