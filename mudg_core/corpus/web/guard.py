"""The only way out for a downloader that follows links from strangers: a forward proxy with rules.

The guard resolves a name once, judges every address that it gets, and connects to the one that it judged, so
that neither a redirect nor a second answer of the name server leads inside (DNS rebinding). It caps bytes and
time, and does so for TLS without looking into it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from mudg_core.corpus.web.exchange import PIECE, Request, format_head, read_answer, read_request
from mudg_core.corpus.web.rules import (
    Resolver,
    Rules,
    StoppedError,
    cut_off,
    dead_host,
    system_resolver,
    timed_out,
    why_refused,
)

ADDRESSES_TRIED = 3
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_RESET = struct.pack("ii", 1, 0)
_UNSEALED = b"\xff" * 2**15  # more than is left of any record of TLS


@dataclass
class Tally:
    """What went through, to be read once the guard has stopped; `ended`, of the client's, at any time."""

    connections: int = 0
    ended: int = 0
    bytes: int = 0
    stopped: Counter[str] = field(default_factory=Counter)

    def count_bytes(self, count: int) -> None:
        self.bytes += count


@dataclass
class Pair:
    """The two streams of one connection, and what was written: an answer, or bytes that TLS has sealed."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    answered: bool = False
    sealed: bool = False

    def break_off(self) -> None:
        """Ends so that no client takes what it has for everything. Python's TLS does after a reset, if the
        length of a body was not declared, but not after bytes that its server never sealed."""
        if self.sealed:
            self.writer.write(_UNSEALED)
            return
        with suppress(OSError):
            self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.writer.transport.abort()


class Guard:
    """`with Guard(rules) as guard:` a proxy at `guard.url`, in a thread of this process, on 127.0.0.1."""

    def __init__(self, rules: Rules, resolver: Resolver = system_resolver) -> None:
        self.rules, self.tally = rules, Tally()
        self._resolver = resolver
        self._names = ThreadPoolExecutor(rules.connections, thread_name_prefix="mudg-names")
        self._thread = threading.Thread(target=self._run, name="mudg-guard", daemon=True)
        self._port: Future[int] = Future()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port.result()}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._port.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._names.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._port.done():
                raise
            self._port.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._slots = asyncio.Semaphore(self.rules.connections)
        limit = self.rules.header_bytes
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=limit, backlog=1024)
        self._port.set_result(server.sockets[0].getsockname()[1])
        await self._stop.wait()
        server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Pair(reader, writer)
        try:
            async with self._slots:
                await self._handle(client)
        except (asyncio.CancelledError, Exception):
            client.break_off()  # the guard stops, or the client is gone
        finally:
            self.tally.ended += 1
            writer.close()

    async def _handle(self, client: Pair) -> None:
        try:
            async with asyncio.timeout(self.rules.max_seconds):
                await self._serve_one(client)
        except StoppedError as stopped:
            await self._refuse(client, stopped)
        except TimeoutError:
            await self._refuse(client, timed_out())
        except OSError:
            await self._refuse(client, cut_off())

    async def _serve_one(self, client: Pair) -> None:
        request = await read_request(client.reader)
        server = await self._dial(request)
        try:
            if request.method == "CONNECT":
                await self._tunnel(client, server)
            else:
                await self._pass_on(request, client, server)
        finally:
            server.writer.transport.abort()

    async def _refuse(self, client: Pair, stopped: StoppedError) -> None:
        self.tally.stopped[stopped.reason] += 1
        if client.answered:
            client.break_off()
            return
        head = [("Content-Length", "0"), ("Connection", "close")]
        client.writer.write(format_head(f"HTTP/1.1 {stopped.status} {stopped.phrase}", head))
        await client.writer.drain()

    async def _dial(self, request: Request) -> Pair:
        """A connection to the very address that was judged."""
        if request.port not in self.rules.ports:
            raise StoppedError("port")
        async with asyncio.timeout(self.rules.idle_seconds):
            for address in (await self._allowed_addresses(request))[:ADDRESSES_TRIED]:
                with suppress(OSError):
                    limit = self.rules.header_bytes
                    pair = Pair(*await asyncio.open_connection(address, request.port, limit=limit))
                    self.tally.connections += 1
                    return pair
        raise dead_host()

    async def _allowed_addresses(self, request: Request) -> Sequence[str]:
        """All addresses of a name, unless any is one that may not be reached: then it is up to no good."""
        look_up = self._loop.run_in_executor(self._names, self._resolver, request.host, request.port)
        try:
            addresses = await look_up
        except (OSError, UnicodeError):
            raise dead_host() from None
        for address in addresses:
            if reason := why_refused(address, self.rules.allowed):
                raise StoppedError(reason)
        return addresses

    async def _pass_on(self, request: Request, client: Pair, server: Pair) -> None:
        server.writer.write(request.origin_form())
        await server.writer.drain()
        answer = await read_answer(server.reader, request, self.rules, self.tally.count_bytes)
        with answer.body:
            client.answered = True
            client.writer.write(answer.head())
            while piece := answer.body.read(PIECE):
                client.writer.write(piece)
                await client.writer.drain()

    async def _tunnel(self, client: Pair, server: Pair) -> None:
        """Bytes both ways until either side has had enough."""
        client.answered = True
        client.writer.write(ESTABLISHED)
        up = self._pump(client, server, self.rules.header_bytes, None)
        down = self._pump(server, client, self.rules.tunnel_bytes, self.rules.idle_seconds)
        pumps = {asyncio.create_task(up), asyncio.create_task(down)}
        try:
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
        for pump in done:
            pump.result()

    async def _pump(self, source: Pair, sink: Pair, budget: int, idle: float | None) -> None:
        while True:
            async with asyncio.timeout(idle):
                piece = await source.reader.read(PIECE)
            if not piece:
                return
            budget -= len(piece)
            self.tally.count_bytes(len(piece))
            if budget < 0:
                raise StoppedError("too large")
            sink.sealed = True
            sink.writer.write(piece)
            await sink.writer.drain()
