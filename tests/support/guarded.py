"""A guard around the hostile web, and ways to ask it: as img2dataset does, or with raw bytes.

Limits are generous unless a test is about them, so that a slow machine changes nothing.
"""

from __future__ import annotations

import os
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPException
from ipaddress import ip_network
from pathlib import Path
from unittest import mock
from urllib.error import HTTPError, URLError

import pytest

from mudg_core.corpus.web.guard import Guard
from mudg_core.corpus.web.rules import Resolver, Rules, system_resolver
from tests.support.hostile_web import HostileWeb, hostile_web

PATIENCE = 120.0
GENEROUS = Rules(max_bytes=10**6, max_seconds=PATIENCE, idle_seconds=PATIENCE)


@pytest.fixture
def canary() -> Iterator[HostileWeb]:
    with hostile_web("127.0.0.1") as server:
        yield server
        assert not server.hits


@pytest.fixture
def web(canary: HostileWeb) -> Iterator[HostileWeb]:
    """At the canary's port, so that nothing but its address protects it."""
    with hostile_web(port=canary.port, canary=f"127.0.0.1:{canary.port}") as server:
        yield server


def guarded(web: HostileWeb, resolver: Resolver = system_resolver, **limits: float) -> Guard:
    ports, allowed = frozenset({web.port}), (ip_network("127.0.0.2/32"),)
    return Guard(replace(GENEROUS, ports=ports, allowed=allowed, **limits), resolver)  # type: ignore[arg-type]


def ask(guard: Guard, url: str, trust: Path | None = None) -> tuple[int, str, bytes]:
    """Status, reason and body as img2dataset would see them; status 0 for an error of another kind. It has no
    NO_PROXY in its environment, which this process may have."""
    proxies = urllib.request.ProxyHandler(dict.fromkeys(("http", "https", "ftp"), guard.url))
    tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=trust))
    try:
        with (
            mock.patch.dict(os.environ, NO_PROXY="", no_proxy=""),
            urllib.request.build_opener(proxies, tls).open(url, timeout=PATIENCE) as answer,
        ):
            return answer.status, "", answer.read()
    except HTTPError as error:
        with error:
            return error.code, str(error), b""
    except (URLError, OSError, HTTPException) as error:
        return 0, str(error), b""


def connect(guard: Guard) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(guard.url.rpartition(":")[2])), PATIENCE)


def say(guard: Guard, request: bytes) -> bytes:
    """What the guard answers to raw bytes."""
    with connect(guard) as line:
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: line.recv(65_536), b""))


def through_tunnel(guard: Guard, target: str, request: str) -> bytes:
    with connect(guard) as line:
        line.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert line.recv(65_536).startswith(b"HTTP/1.1 200 ")
        line.sendall(request.encode())
        return b"".join(iter(lambda: line.recv(65_536), b""))


def plain_request(web: HostileWeb) -> bytes:
    return f"GET http://slow.example:{web.port}/good/ HTTP/1.1\r\n\r\n".encode()
