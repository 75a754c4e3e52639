"""Every message becomes one of few reasons; what changes from run to run, and what strangers say, is gone."""

from __future__ import annotations

import pytest

from mudg_core.corpus.web.rules import (
    PASSING,
    StoppedError,
    cut_off,
    dead_host,
    stable_reason,
    timed_out,
    why_never_fetched,
)

MESSAGES = {
    "HTTP Error 404: Not Found": "HTTP 404",
    "HTTP Error 404: timed out": "HTTP 404",
    "HTTP Error 429: Too Many Requests": "HTTP 429",
    "HTTP Error 500: Internal Server Error": "HTTP 5xx",
    "HTTP Error 503: X-Robots-Tag": "HTTP 5xx",
    "HTTP Error 403: Forbidden": "HTTP 403",
    "HTTP Error 403: refused by mudg: loopback address": "refused: loopback address",
    "<urlopen error Tunnel connection failed: 403 refused by mudg: port>": "refused: port",
    "<urlopen error Tunnel connection failed: 502 mudg could not: dead host>": "dead host",
    "HTTP Error 504: mudg could not: timed out": "timed out",
    "HTTP Error 403: refused by mudg: " + "x" * 1000: "HTTP 403",
    "HTTP Error 302: Found - Redirection to url 'file:///etc/passwd' is not allowed": "refused: scheme",
    "HTTP Error 302: The HTTP server returned a redirect error that would lead to an infinite loop.\n"
    "The last 30x error message was:\nFound": "too many redirects",
    "Use of image disallowed by X-Robots-Tag directive": "opted out",
    "hash mismatch": "hash mismatch",
    "<urlopen error timed out>": "timed out",
    "The read operation timed out": "timed out",
    "IncompleteRead(38 bytes read, 962 more expected)": "connection cut",
    "[Errno 104] Connection reset by peer": "connection cut",
    "Remote end closed connection without response": "connection cut",
    "[SSL: DECRYPTION_FAILED_OR_BAD_RECORD_MAC] decryption failed (_ssl.c:2580)": "over a limit",
    "<urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed>": "bad TLS",
    "<urlopen error [SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)>": "bad TLS",
    "": "other",
    "something new": "other",
}


@pytest.mark.parametrize(("message", "reason"), MESSAGES.items())
def test_messages(message: str, reason: str) -> None:
    assert stable_reason(message) == reason


@pytest.mark.parametrize("stopped", [StoppedError("content encoding"), dead_host(), cut_off(), timed_out()])
def test_what_the_guard_says_is_understood(stopped: StoppedError) -> None:
    """In both ways in which urllib quotes it."""
    expected = f"refused: {stopped.reason}" if stopped.status == 403 else stopped.reason
    assert stable_reason(f"HTTP Error {stopped.status}: {stopped.phrase}") == expected
    tunnel = f"<urlopen error Tunnel connection failed: {stopped.status} {stopped.phrase}>"
    assert stable_reason(tunnel) == expected
    assert (expected in PASSING) == (stopped.status != 403)


@pytest.mark.parametrize(
    "url",
    ["http://h", "https://h:8443/a?b=c#d", "HTTP://H/", "http://[2606:4700::1]/x", "http://1.2.3.4/a@b"],
)
def test_links_to_the_web_are_fetched(url: str) -> None:
    assert why_never_fetched(url) is None


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "scheme"),
        ("FILE:///etc/passwd", "scheme"),
        ("url:http://h/", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("//h/x", "scheme"),
        ("http:h/x", "malformed url"),
        ("http://h/\tx", "malformed url"),
        ("http://h/\x7f", "malformed url"),
        ("http://h/x\n", "malformed url"),
        ("https://user@h/", "credentials"),
        ("http://h/" + "x" * 1991, None),
        ("http://h/" + "x" * 1992, "url too long"),
    ],
)
def test_f60_other_links_are_not(url: str, reason: str | None) -> None:
    assert why_never_fetched(url) == (reason and f"refused: {reason}")
