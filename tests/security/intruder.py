"""Another user of this machine, who has no key of the stack. It is a program of its own: it reads from its
input what to try, becomes that user, tries, and writes the answers.

Everything is imported before it becomes that user, who may not be able to read this Python.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from distributed import Client
from distributed.comm.core import connect
from distributed.security import Security
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect as connect_websocket
from websockets.typing import Subprotocol

SECONDS = 4.0
Answer = dict[str, Any]


def request(method: str, url: str, headers: dict[str, str], body: str) -> Answer:
    """The status of an answer, and how it begins."""
    parts = urlsplit(url)
    line = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=SECONDS)
    try:
        line.request(method, f"{parts.path or '/'}?{parts.query}".rstrip("?"), body.encode(), headers)
        answer = line.getresponse()
        return {"status": answer.status, "text": answer.read(2000).decode(errors="replace")}
    finally:
        line.close()


def read(path: str) -> Answer:
    with open(path, "rb") as stream:  # noqa: PTH123  the same for files of /proc
        return {"text": stream.read(100_000).decode(errors="replace")}


def write(path: str) -> Answer:
    with open(path, "ab"):  # noqa: PTH123
        return {"text": "opened to write"}


def names(path: str) -> Answer:
    return {"text": " ".join(os.listdir(path))}  # noqa: PTH208


def kill(pid: int) -> Answer:
    os.kill(pid, 0)
    return {"text": "could have been killed"}


def unix_socket(path: str) -> Answer:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(SECONDS)
        line.connect(path)
    return {"text": "connected"}


def websocket(url: str, first: list[str]) -> Answer:
    """All that the server says until it closes the line."""
    heard: list[str] = []
    protocol = [Subprotocol("prefect")]
    try:
        with connect_websocket(url, subprotocols=protocol, open_timeout=SECONDS, proxy=None) as line:
            for text in first:
                line.send(text)
            while True:
                heard.append(str(line.recv(timeout=SECONDS)))
    except TimeoutError:
        return {"text": f"left open, heard {heard}"}
    except WebSocketException as error:
        return {"text": f"heard {heard}"} if heard else {"refused": str(error)}


def submit(address: str, tls: Answer | None) -> Answer:
    """Runs code on the workers."""
    with Client(address, timeout=SECONDS, security=_security(tls), set_as_default=False) as client:  # type: ignore[no-untyped-call]
        return {"text": f"ran as user {client.submit(os.getuid).result(timeout=20)}"}


def talk(address: str, tls: Answer | None) -> Answer:
    """To a worker or a nanny, past the scheduler."""

    async def ask() -> Any:
        security = _security(tls)
        how = security.get_connection_args("client") if security else {}  # type: ignore[no-untyped-call]
        comm = await connect(address, timeout=SECONDS, **how)  # type: ignore[no-untyped-call]
        try:
            await comm.write({"op": "identity", "reply": True})
            return await comm.read()
        finally:
            comm.abort()

    async def within() -> Any:
        return await asyncio.wait_for(ask(), SECONDS)

    return {"text": f"answered {asyncio.run(within())}"[:300]}


def _security(tls: Answer | None) -> Security | None:
    """By a certificate that is not the stack's. The server's is trusted: it has to do the refusing."""
    return Security(require_encryption=True, **tls) if tls else None  # type: ignore[no-untyped-call]


VERBS: dict[str, Callable[..., Answer]] = {
    one.__name__: one for one in (request, read, write, names, kill, unix_socket, websocket, submit, talk)
}


def carry_out(verb: str, arguments: list[Any]) -> Answer:
    try:
        return VERBS[verb](*arguments)
    except (OSError, http.client.HTTPException) as error:
        return {"refused": f"{type(error).__name__}: {error}"[:300], "kind": type(error).__name__}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def become(user: int | None) -> None:
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


def warm_up(tls: Answer) -> None:
    """Loads what is loaded late, by asking a port that nobody listens at."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        for verb in ("talk", "submit"):
            carry_out(verb, [f"tcp://{place}", None])
            carry_out(verb, [f"tls://{place}", tls])
        carry_out("websocket", [f"ws://{place}/", []])
        carry_out("request", ["GET", f"http://{place}/", {}, ""])


if __name__ == "__main__":
    job = json.load(sys.stdin)
    warm_up(job["tls"])
    become(job["user"])
    json.dump([carry_out(verb, arguments) for verb, arguments in job["tries"]], sys.stdout)
