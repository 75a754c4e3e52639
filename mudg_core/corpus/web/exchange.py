"""One plain HTTP exchange as the guard sees it: the request, and what a server may answer.

An answer is kept whole (in memory if small) before any of it is passed on. So a client never takes the
beginning of a body that broke a rule for all of it, and always learns which rule it was.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from typing import IO
from urllib.parse import SplitResult

from mudg_core.corpus.web.rules import Rules, StoppedError, cut_off, split_url

PIECE = 64 * 2**10
SPOOL_BYTES = 256 * 2**10
INTERIM_ANSWERS = 5
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "host"}
)
_REQUEST = re.compile(rb"([A-Z]{1,10}) ([!-~]+) HTTP/1\.[01]\r\n")
_TARGET = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([\w.:-]+)):([0-9]{1,5})", re.ASCII)
_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d)(?: [^\r\n]*)?\r?\n")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True)
class Request:
    method: str
    host: str
    port: int
    path: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def origin_form(self) -> bytes:
        """The request as the server gets it: nothing of the proxy, and no compression, whose size would
        only show once it is undone."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        head = [("Host", name if self.port == 80 else f"{name}:{self.port}"), *self.headers]
        head += [("Accept-Encoding", "identity"), ("Connection", "close")]
        return format_head(f"{self.method} {self.path} HTTP/1.1", head)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: IO[bytes]

    def head(self) -> bytes:
        length = self.body.seek(0, io.SEEK_END)
        self.body.seek(0)
        phrase = http.client.responses.get(self.status, "")
        lines = [*self.headers, ("Content-Length", str(length)), ("Connection", "close")]
        return format_head(f"HTTP/1.1 {self.status} {phrase}", lines)


def format_head(first: str, headers: list[tuple[str, str]]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def read_request(reader: asyncio.StreamReader) -> Request:
    head = await _until(reader, _END_OF_HEAD)
    line = _REQUEST.match(head)
    if line is None:
        raise StoppedError("malformed request")
    method, target = line[1].decode(), line[2].decode()
    if method == "CONNECT":
        return _tunnel(target)
    if method not in ("GET", "HEAD"):
        raise StoppedError("method")
    parts = _split(target)
    if parts.scheme != "http":
        raise StoppedError("scheme")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = _passed_on(_parse_headers(head[line.end() :]), "accept-encoding")
    return Request(method, str(parts.hostname), parts.port or 80, path, headers)


def _tunnel(target: str) -> Request:
    """HOST:PORT. Python 3.11 sends IPv6 addresses without their brackets."""
    if "@" in target:
        raise StoppedError("credentials")
    match = _TARGET.fullmatch(target)
    if match is None:
        raise StoppedError("malformed request")
    return Request("CONNECT", match[1] or match[2], int(match[3]))


def _split(target: str) -> SplitResult:
    parts = split_url(target)
    if parts is None:
        raise StoppedError("scheme" if re.match(r"(?!https?:)[a-z]+:", target, re.I) else "malformed request")
    if "@" in parts.netloc:
        raise StoppedError("credentials")
    return parts


async def read_answer(
    reader: asyncio.StreamReader, request: Request, rules: Rules, count: Callable[[int], None]
) -> Answer:
    """The server's whole answer. Bodies of anything but a success are of no use and are left unread."""
    status, headers = await _read_status(reader, rules)
    body = tempfile.SpooledTemporaryFile(SPOOL_BYTES)  # noqa: SIM115 - the answer owns it
    try:
        if request.method == "GET" and 200 <= status < 300 and status != HTTPStatus.NO_CONTENT:
            await _read_body(reader, headers, rules, count, body)
    except BaseException:
        body.close()
        raise
    return Answer(status, _passed_on(headers), body)


async def _read_status(reader: asyncio.StreamReader, rules: Rules) -> tuple[int, Message]:
    for _ in range(INTERIM_ANSWERS):
        async with asyncio.timeout(rules.idle_seconds):
            head = await _until(reader, _END_OF_HEAD)
        line = _STATUS.match(head)
        if line is None:
            break
        if int(line[1]) >= 200:
            return int(line[1]), _parse_headers(head[line.end() :])
    raise StoppedError("malformed answer")


async def _read_body(
    reader: asyncio.StreamReader,
    headers: Message,
    rules: Rules,
    count: Callable[[int], None],
    body: IO[bytes],
) -> None:
    if headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise StoppedError("content encoding")
    size = 0
    async for piece in _pieces(reader, headers, rules):
        size += len(piece)
        count(len(piece))
        if size > rules.max_bytes:
            raise StoppedError("too large")
        body.write(piece)


def _pieces(reader: asyncio.StreamReader, headers: Message, rules: Rules) -> AsyncIterator[bytes]:
    coding = headers.get("Transfer-Encoding")
    if coding is not None:
        if coding.strip().lower() != "chunked":
            raise StoppedError("transfer encoding")
        return _chunked(reader, rules)
    lengths = {value.strip() for value in headers.get_all("Content-Length", [])}
    if not lengths:
        return _take(reader, None, rules)
    length = lengths.pop()
    if lengths or not re.fullmatch(r"[0-9]{1,18}", length):
        raise StoppedError("malformed answer")
    if int(length) > rules.max_bytes:
        raise StoppedError("too large")
    return _take(reader, int(length), rules)


async def _chunked(reader: asyncio.StreamReader, rules: Rules) -> AsyncIterator[bytes]:
    while True:
        async with asyncio.timeout(rules.idle_seconds):
            line = _CHUNK.fullmatch(await _until(reader, b"\n"))
        if line is None:
            raise StoppedError("malformed answer")
        if (size := int(line[1], 16)) == 0:
            return
        async for piece in _take(reader, size, rules):
            yield piece
        async with asyncio.timeout(rules.idle_seconds):
            await _until(reader, b"\n")


async def _take(reader: asyncio.StreamReader, size: int | None, rules: Rules) -> AsyncIterator[bytes]:
    """So many bytes, or all until the server closes."""
    while size is None or size > 0:
        async with asyncio.timeout(rules.idle_seconds):
            piece = await reader.read(PIECE if size is None else min(PIECE, size))
        if not piece:
            if size is None:
                return
            raise cut_off()
        size = None if size is None else size - len(piece)
        yield piece


async def _until(reader: asyncio.StreamReader, mark: bytes) -> bytes:
    """Up to and with `mark`; the reader's own limit caps it."""
    try:
        return await reader.readuntil(mark)
    except asyncio.LimitOverrunError:
        raise StoppedError("headers too large") from None
    except asyncio.IncompleteReadError:
        raise cut_off() from None


def _parse_headers(lines: bytes) -> Message:
    try:
        return http.client.parse_headers(io.BytesIO(lines))
    except http.client.HTTPException:
        raise StoppedError("headers too large") from None


def _passed_on(headers: Message, *without: str) -> tuple[tuple[str, str], ...]:
    """Headers that concern both ends; those of one connection, and those that it names, stay here."""
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    return tuple(
        (name, " ".join(str(value).split()))
        for name, value in headers.items()
        if name.lower() not in HOP_BY_HOP | named | {*without} and not name.lower().startswith("proxy-")
    )
