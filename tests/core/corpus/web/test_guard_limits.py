"""The guard's limits of bytes and time, with and without TLS. A body that broke one is never a success."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.support.guarded import (
    GENEROUS,
    PATIENCE,
    ask,
    canary,
    guarded,
    plain_request,
    say,
    through_tunnel,
    web,
)
from tests.support.hostile_web import HostileWeb, hostile_web, picture, self_signed

__all__ = ["canary", "web"]  # fixtures


@pytest.mark.parametrize("path", ["endless/", "endless-chunks/", "claims-much/"])
def test_f64_bodies_over_the_cap_are_refused(web: HostileWeb, path: str) -> None:
    with guarded(web) as guard:
        assert ask(guard, f"{web.url}/{path}") == (403, "HTTP Error 403: refused by mudg: too large", b"")
    assert guard.tally.bytes < 2 * GENEROUS.max_bytes
    assert path != "claims-much/" or guard.tally.bytes == 0


def test_f64_the_cap_is_exact(web: HostileWeb) -> None:
    size = len(picture())
    with guarded(web, max_bytes=size) as guard:
        assert [ask(guard, f"{web.url}/{path}/")[2] for path in ("good", "chunks")] == [picture()] * 2
    with guarded(web, max_bytes=size - 1) as guard:
        assert [ask(guard, f"{web.url}/{path}/")[0] for path in ("good", "chunks")] == [403] * 2


@pytest.mark.parametrize("path", ["claims-too-much/", "torn-chunks/"])
def test_f64_a_body_shorter_than_promised_is_no_success(web: HostileWeb, path: str) -> None:
    with guarded(web) as guard:
        assert ask(guard, f"{web.url}/{path}")[1] == "HTTP Error 502: mudg could not: connection cut"


def test_f64_a_body_longer_than_promised_ends_where_it_should(web: HostileWeb) -> None:
    with guarded(web) as guard:
        assert ask(guard, f"{web.url}/claims-too-little/") == (200, "", picture())


def test_f64_endless_tls_is_cut_and_never_taken_for_a_whole(web: HostileWeb, tmp_path: Path) -> None:
    """Without a declared length, Python takes the cut of a TLS connection for the end of a body."""
    context, certificate = self_signed(tmp_path)
    with hostile_web(tls=context) as server, guarded(server) as guard:
        assert ask(guard, f"{server.url}/good/", certificate) == (200, "", picture())
        status, reason, _ = ask(guard, f"{server.url}/endless/", certificate)
    assert status == 0 and reason.startswith("[SSL: ")
    assert guard.tally.stopped == {"too large": 1}
    assert guard.tally.bytes < 2 * GENEROUS.max_bytes


def test_a_tunnel_carries_no_upload(web: HostileWeb) -> None:
    upload = "GET /silent/ HTTP/1.1\r\nX: " + "x" * 100_000
    with guarded(web, header_bytes=4096) as guard, pytest.raises(ConnectionError):
        through_tunnel(guard, f"127.0.0.2:{web.port}", upload)
    assert guard.tally.stopped == {"too large": 1}


def test_f65_slow_drip_ends_at_the_total_deadline(web: HostileWeb) -> None:
    with guarded(web, max_seconds=0.5) as guard:
        assert ask(guard, f"{web.url}/drip/") == (504, "HTTP Error 504: mudg could not: timed out", b"")


def test_f65_slow_drip_through_tls_ends_too(tmp_path: Path) -> None:
    context, certificate = self_signed(tmp_path)
    with hostile_web(tls=context) as server, guarded(server, max_seconds=1.0) as guard:
        assert ask(guard, f"{server.url}/drip/", certificate)[0] == 0
    assert guard.tally.stopped == {"timed out": 1}


def test_f65_a_silent_server_is_not_waited_for(web: HostileWeb) -> None:
    with guarded(web, idle_seconds=0.5) as guard:
        assert "timed out" in ask(guard, f"{web.url}/silent/")[1]


def test_f65_a_name_server_that_never_answers_is_not_waited_for(web: HostileWeb) -> None:
    stuck = threading.Event()

    def silent(host: str, port: int) -> list[str]:
        stuck.wait(PATIENCE)
        return ["127.0.0.2"]

    with guarded(web, silent, idle_seconds=0.3) as guard:
        assert "504 mudg could not: timed out" in say(guard, plain_request(web)).decode()
        stuck.set()
    assert guard.tally.connections == 0


def test_f66_compressed_bodies_are_refused(web: HostileWeb) -> None:
    with guarded(web) as guard:
        assert "refused by mudg: content encoding" in ask(guard, f"{web.url}/gzip-bomb/")[1]
    assert guard.tally.bytes == 0
