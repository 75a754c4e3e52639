"""The guard lets honest servers through and nobody inside, and says why."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from dataclasses import replace

import pytest

from mudg_core.corpus.web.guard import Guard, Pair
from tests.support.guarded import ask, canary, connect, guarded, plain_request, say, through_tunnel, web
from tests.support.hostile_web import HostileWeb, picture

__all__ = ["canary", "web"]  # fixtures


def test_an_honest_answer_passes_unchanged(web: HostileWeb) -> None:
    with guarded(web) as guard:
        assert ask(guard, f"{web.url}/good/red.jpg?size=1&x=%20#part") == (200, "", picture("red"))
    assert web.hits["/good/red.jpg?size=1&x=%20"] == 1
    assert (guard.tally.connections, guard.tally.bytes) == (1, len(picture("red")))
    assert guard.tally.ended == 1
    assert not guard.tally.stopped


def test_the_server_sees_a_plain_request_and_nothing_of_the_proxy(web: HostileWeb) -> None:
    head = (
        f"GET {web.url}/good/ HTTP/1.1\r\nHost: 10.0.0.1\r\nUser-Agent: mudg\r\n"
        "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic c2VjcmV0\r\n"
        "Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\n"
        "Accept-Encoding: gzip, br\r\nX-Kept: yes\r\nTE: trailers\r\n\r\n"
    )
    with guarded(web) as guard:
        answer = say(guard, head.encode())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nConnection: close\r\n" in answer
    assert dict(web.seen["/good/"].items()) == {
        "Host": f"127.0.0.2:{web.port}",
        "User-Agent": "mudg",
        "X-Kept": "yes",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }


def test_headers_of_the_answer_reach_the_client(web: HostileWeb) -> None:
    with guarded(web) as guard:
        request = f"GET {web.url}/robots/noai HTTP/1.1\r\n\r\n".encode()
        assert b"\r\nX-Robots-Tag: noai\r\n" in say(guard, request)
        assert ask(guard, f"{web.url}/chunks/")[2] == picture()
        assert say(guard, request.replace(b"GET", b"HEAD")).startswith(b"HTTP/1.1 501 ")


@pytest.mark.parametrize(
    ("request_line", "reason"),
    [
        ("GET file:///etc/passwd HTTP/1.1", "scheme"),
        ("GET ftp://127.0.0.2:{port}/x HTTP/1.1", "scheme"),
        ("GET https://127.0.0.2:{port}/x HTTP/1.1", "scheme"),
        ("GET gopher://127.0.0.2:{port}/x HTTP/1.1", "scheme"),
        ("GET data:text/plain,x HTTP/1.1", "scheme"),
        ("GET /etc/passwd HTTP/1.1", "malformed request"),
        ("GET http:///x HTTP/1.1", "malformed request"),
        ("GET http://127.0.0.2:99999/ HTTP/1.1", "malformed request"),
        ("GET http://127.0.0.2:x/ HTTP/1.1", "malformed request"),
        ("GET http://[::1/ HTTP/1.1", "malformed request"),
        ("GET http://a:b@127.0.0.2:{port}/ HTTP/1.1", "credentials"),
        ("CONNECT a@127.0.0.2:{port} HTTP/1.1", "credentials"),
        ("CONNECT :443 HTTP/1.1", "malformed request"),
        ("POST http://127.0.0.2:{port}/ HTTP/1.1", "method"),
        ("GET http://127.0.0.2:{port}/ HTTP/2.0", "malformed request"),
        ("GET  http://127.0.0.2:{port}/ HTTP/1.1", "malformed request"),
        ("GET http://127.0.0.2:1/ HTTP/1.1", "port"),
        ("GET http://127.0.0.2/ HTTP/1.1", "port"),
        ("CONNECT 127.0.0.2:22 HTTP/1.1", "port"),
        ("CONNECT 127.0.0.2 HTTP/1.1", "malformed request"),
        ("CONNECT [::1]443 HTTP/1.1", "malformed request"),
        ("\x16\x03\x01\x02", "malformed request"),
        ("", "malformed request"),
    ],
)
def test_f60_requests_that_are_not_for_the_web_are_refused(
    web: HostileWeb, request_line: str, reason: str
) -> None:
    with guarded(web) as guard:
        answer = say(guard, request_line.format(port=web.port).encode("latin-1") + b"\r\n\r\n")
        assert answer.startswith(f"HTTP/1.1 403 refused by mudg: {reason}\r\n".encode())
        assert ask(guard, f"{web.url}/good/")[0] == 200  # and it goes on
    assert guard.tally.stopped == {reason: 1} and guard.tally.connections == 1


@pytest.mark.parametrize("request_bytes", [b"", b"GET", b"GET http://127.0.0.2/ HTTP/1.1\r\nHost: x"])
def test_a_request_that_is_not_finished_ends_with_an_answer(web: HostileWeb, request_bytes: bytes) -> None:
    with guarded(web) as guard:
        assert b"502 mudg could not: connection cut" in say(guard, request_bytes)
        assert ask(guard, f"{web.url}/good/")[0] == 200


def test_too_many_headers_are_refused(web: HostileWeb) -> None:
    long = b"GET http://127.0.0.2/ HTTP/1.1\r\nX: " + b"x" * 5000 + b"\r\n\r\n"
    many = b"GET http://127.0.0.2/ HTTP/1.1\r\n" + b"X: 1\r\n" * 200 + b"\r\n"
    with guarded(web, header_bytes=4096) as guard:
        for request in (long, many):
            assert b"403 refused by mudg: headers too large" in say(guard, request)
        assert "headers too large" in ask(guard, f"{web.url}/endless-headers/")[1]
        assert ask(guard, f"{web.url}/good/")[0] == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
def test_f61_this_machine_is_not_reached(web: HostileWeb, canary: HostileWeb, scheme: str, host: str) -> None:
    with guarded(web) as guard:
        status, reason, _ = ask(guard, f"{scheme}://{host}:{canary.port}/")
    assert status == (403 if scheme == "http" else 0)
    assert "refused by mudg: " in reason and " address" in reason
    assert guard.tally.connections == 0


@pytest.mark.parametrize("method", ["GET http://{host}:{port}/", "CONNECT {host}:{port}"])
@pytest.mark.parametrize(
    ("addresses", "reason"),
    [
        (["10.0.0.1"], "private address"),
        (["169.254.169.254"], "metadata address"),
        (["::ffff:192.168.0.1"], "private address"),
        (["64:ff9b::a00:1"], "private address"),
        (["127.0.0.2", "127.0.0.1"], "loopback address"),
        (["fe80::1%lo"], "link-local address"),
    ],
)
def test_f61_every_address_of_a_name_is_judged_before_any_is_reached(
    web: HostileWeb, monkeypatch: pytest.MonkeyPatch, addresses: list[str], reason: str, method: str
) -> None:
    monkeypatch.setattr(asyncio, "open_connection", lambda *_, **__: pytest.fail("connected"))
    with guarded(web, lambda *_: addresses) as guard:
        line = method.format(host="innocent.example", port=web.port)
        assert f"403 refused by mudg: {reason}\r\n".encode() in say(
            guard, f"{line} HTTP/1.1\r\n\r\n".encode()
        )


@pytest.mark.parametrize("path", ["to/canary", "to/canary-tls", "chain/3"])
def test_f62_a_redirect_that_leads_inside_is_refused(web: HostileWeb, path: str) -> None:
    with guarded(web) as guard:
        assert "refused by mudg: loopback address" in ask(guard, f"{web.url}/{path}")[1]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("to/ftp", "refused by mudg: scheme"),
        ("to/file", "is not allowed"),
        ("to/credentials", "refused by mudg: credentials"),
        ("loop/", "infinite loop"),
    ],
)
def test_f62_redirects_lead_nowhere_else_either(web: HostileWeb, path: str, reason: str) -> None:
    with guarded(web) as guard:
        assert reason in ask(guard, f"{web.url}/{path}")[1]


def test_an_honest_redirect_is_followed(web: HostileWeb) -> None:
    with guarded(web) as guard:
        assert ask(guard, f"{web.url}/good-chain/3") == (200, "", picture())
    assert guard.tally.connections == 5


@pytest.mark.parametrize("tunnel", [False, True])
def test_f63_a_name_is_resolved_once_and_what_was_judged_is_reached(web: HostileWeb, tunnel: bool) -> None:
    answers = [["127.0.0.2"], ["127.0.0.1"]]
    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    host = f"rebind.example:{web.port}"
    inner = f"GET /good/ HTTP/1.1\r\nHost: {host}\r\n\r\n"
    with guarded(web, rebinding) as guard:
        if tunnel:
            status = through_tunnel(guard, host, inner)
        else:
            status = say(guard, f"GET http://{host}/good/ HTTP/1.1\r\n\r\n".encode())
    assert b" 200 OK\r\n" in status
    assert asked == ["rebind.example"]
    assert web.seen["/good/"]["Host"] == host


@pytest.mark.parametrize("problem", [OSError("no such name"), UnicodeError("label too long"), []])
def test_dead_hosts_are_told_apart_from_refusals(web: HostileWeb, problem: Exception | list[str]) -> None:
    def broken(host: str, port: int) -> list[str]:
        if isinstance(problem, Exception):
            raise problem
        return problem

    with guarded(web, broken) as guard:
        assert "502 mudg could not: dead host" in say(guard, plain_request(web)).decode()


def test_a_closed_port_is_a_dead_host(web: HostileWeb) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.2", 0))
        port = closed.getsockname()[1]
        with Guard(replace(guarded(web).rules, ports=frozenset({port}))) as guard:
            assert "dead host" in ask(guard, f"http://127.0.0.2:{port}/")[1]


def test_nonsense_is_no_answer(web: HostileWeb) -> None:
    with guarded(web) as guard:
        assert "refused by mudg: malformed answer" in ask(guard, f"{web.url}/nonsense/")[1]


def test_a_server_cannot_put_words_in_our_mouth(web: HostileWeb) -> None:
    with guarded(web) as guard:
        assert ask(guard, f"{web.url}/liar/")[1] == "HTTP Error 403: Forbidden"


class CountingGuard(Guard):
    """Knows how many connections it served at a time, at most."""

    now = most = 0

    async def _serve_one(self, client: Pair) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await super()._serve_one(client)
        finally:
            self.now -= 1


def test_at_most_so_many_connections_at_a_time(web: HostileWeb) -> None:
    def slow(host: str, port: int) -> list[str]:
        threading.Event().wait(0.05)
        return ["127.0.0.2"]

    with CountingGuard(guarded(web, connections=2).rules, slow) as guard:
        clients = [threading.Thread(target=say, args=(guard, plain_request(web))) for _ in range(8)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    assert guard.most <= 2 and guard.tally.connections == 8


def test_leaving_ends_connections_that_are_open(web: HostileWeb) -> None:
    with guarded(web) as guard:
        line = connect(guard)
        line.sendall(f"GET {web.url}/silent/ HTTP/1.1\r\n\r\n".encode())
        while not web.hits:
            threading.Event().wait(0.01)
    with line, suppress(ConnectionResetError):
        assert line.recv(100) == b""
    with pytest.raises(OSError):
        connect(guard)
