"""Tars byte by byte, to write what no honest program would."""

from __future__ import annotations

import json

BLOCK = 512
END = bytes(2 * BLOCK)
MAGIC = b"ustar\x0000"


def member(
    name: bytes | str,
    content: bytes = b"",
    kind: bytes = b"0",
    *,
    size: int | bytes | None = None,
    link: bytes = b"",
    magic: bytes = MAGIC,
) -> bytes:
    """A header and its content. `size` may lie; as bytes it is put into the field as it is."""
    raw = name.encode() if isinstance(name, str) else name
    size = len(content) if size is None else size
    field = size if isinstance(size, bytes) else b"%011o" % size
    numbers = b"0000644\0" + b"0000000\0" * 2 + field.ljust(12, b"\0") + b"00000000000\0"
    head = raw[:100].ljust(100, b"\0") + numbers + b" " * 8 + kind + link.ljust(100, b"\0") + magic
    return sealed(head.ljust(BLOCK, b"\0")) + padded(content)


def sealed(header: bytes) -> bytes:
    """The header with a checksum that fits."""
    blank = header[:148] + b" " * 8 + header[156:]
    return header[:148] + b"%06o\0 " % sum(blank) + header[156:]


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % BLOCK)


def long_name(name: bytes) -> bytes:
    """GNU's header for the name of the next member."""
    return member("././@LongLink", name + b"\0", b"L", magic=b"ustar  \0")


def pax(**records: bytes) -> bytes:
    """POSIX's header for facts of the next member; `__` stands for a dot."""
    lines = [_record(key.replace("__", ".").encode(), value) for key, value in records.items()]
    return member("./PaxHeaders/x", b"".join(lines), b"x")


def _record(key: bytes, value: bytes) -> bytes:
    body = b" " + key + b"=" + value + b"\n"
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length += 1
    return str(length).encode() + body


def sample(key: str, image: bytes, caption: str = "a caption", **facts: object) -> bytes:
    """Three honest members."""
    text = json.dumps({"url": f"https://example.org/{key}", **facts})
    return (
        member(f"{key}.jpg", image)
        + member(f"{key}.txt", caption.encode())
        + member(f"{key}.json", text.encode())
    )
