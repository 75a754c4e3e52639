"""Why a link gave no picture, in few words that are the same in every run.

A downloader's own messages hold byte counts, host names and whole sentences of strangers' servers. They can
neither be counted nor be the same twice, and a shard holds the reason.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from mudg_core.corpus.web.rules import FAILED, REFUSED

MAX_URL = 2000
OPTED_OUT = "opted out"
NO_RESULT = "no result"
TIMED_OUT = "timed out"
OVER_A_LIMIT = "over a limit"  # of bytes or time: with TLS, the guard cannot tell a client which

# Another try can give another result.
PASSING = frozenset({TIMED_OUT, "HTTP 429", "HTTP 5xx", "dead host", "connection cut", OVER_A_LIMIT})

_WORDS = r"([a-z][a-z -]{1,30})"
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), reason)
    for pattern, reason in (
        (rf"^HTTP Error 403: {REFUSED}{_WORDS}$", r"refused: \1"),
        (rf"^<urlopen error Tunnel connection failed: 403 {REFUSED}{_WORDS}>$", r"refused: \1"),
        (rf"^HTTP Error 50[24]: {FAILED}{_WORDS}$", r"\1"),
        (rf"^<urlopen error Tunnel connection failed: 50[24] {FAILED}{_WORDS}>$", r"\1"),
        (r"^HTTP Error 3\d\d: .*redirection to url .* is not allowed", "refused: scheme"),
        (r"^HTTP Error 3\d\d: .*infinite loop", "too many redirects"),
        (r"^HTTP Error 5\d\d", "HTTP 5xx"),
        (r"^HTTP Error (\d{3})", r"HTTP \1"),
        (r"X-Robots-Tag", OPTED_OUT),
        (r"^hash mismatch$", "hash mismatch"),
        (r"^\[SSL: ", OVER_A_LIMIT),  # within a body; what fails before is a <urlopen error>
        (r"timed out|timeout", TIMED_OUT),
        (r"certificate|WRONG_VERSION_NUMBER|TLSV1|SSLV3|handshake", "bad TLS"),
        (r"IncompleteRead|reset by peer|EOF occurred|without response|broken pipe", "connection cut"),
        (r"name or service|name resolution|getaddrinfo|no route|unreachable|connection refused", "dead host"),
    )
)


def stable_reason(message: str) -> str:
    """The reason in an error message of img2dataset."""
    for pattern, reason in _PATTERNS:
        if found := pattern.search(message.strip()):
            return found.expand(reason)
    return "other"


def why_never_fetched(url: str | None) -> str | None:
    """What is wrong with a link that must not reach a downloader, which would read `file://` as gladly."""
    if not url or len(url) > MAX_URL:
        return "refused: malformed url" if not url else "refused: url too long"
    if not re.match(r"https?:", url, re.IGNORECASE):
        return "refused: scheme"
    if not re.fullmatch(r"https?://[!-~]+", url, re.IGNORECASE):
        return "refused: malformed url"
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        return "refused: malformed url"
    return "refused: credentials" if "@" in parts.netloc else None
