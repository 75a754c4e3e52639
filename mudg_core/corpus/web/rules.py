"""What a download may reach and take, and the reasons why a link gave no picture.

Links come from strangers. One that leads to this machine, to its network or to a cloud's metadata service
would be requested with our rights, so every kind of address that is not plainly public is refused, also when
it is wrapped in an IPv6 address that some gateway would unwrap; the operator may allow some.

A downloader's own messages hold byte counts, host names and whole sentences of strangers' servers: they can
neither be counted nor be the same twice. A shard holds one of a few reasons instead.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Resolver: TypeAlias = Callable[[str, int], Sequence[str]]

# Words of these two alone are read back from an error message; see `stable_reason`.
REFUSED = "refused by mudg: "
FAILED = "mudg could not: "

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


@dataclass(frozen=True)
class Rules:
    """Limits of every connection. `idle_seconds` is the longest wait for a connection or for the next bytes,
    `max_seconds` for everything together: a server that drips keeps the first and not the second."""

    max_bytes: int
    max_seconds: float
    idle_seconds: float
    ports: frozenset[int] = frozenset({80, 443})
    allowed: tuple[Network, ...] = ()
    connections: int = 64
    header_bytes: int = 64 * 2**10

    @property
    def tunnel_bytes(self) -> int:
        """As many bytes as a body of `max_bytes` takes with its headers once TLS has wrapped it."""
        return self.max_bytes + self.max_bytes // 64 + 2 * self.header_bytes


class StoppedError(Exception):
    """The guard ends an exchange; `reason` is short and never changes, for it is counted."""

    def __init__(self, reason: str, *, status: int = 403) -> None:
        super().__init__(reason)
        self.reason, self.status = reason, status

    @property
    def phrase(self) -> str:
        """For the status line: a client shows it in its own error message."""
        return (REFUSED if self.status == 403 else FAILED) + self.reason


def dead_host() -> StoppedError:
    return StoppedError("dead host", status=502)


def cut_off() -> StoppedError:
    return StoppedError("connection cut", status=502)


def timed_out() -> StoppedError:
    return StoppedError("timed out", status=504)


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(part) for part in text.split())


METADATA = """169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192
    fd00:ec2::/32 fd20:ce::254"""
RESERVED = """192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24
    240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20"""
# The first kind that fits is the one reported. Python's own tables differ between its patch releases.
KINDS: tuple[tuple[str, tuple[Network, ...]], ...] = (
    ("metadata address", _networks(METADATA)),
    ("loopback address", _networks("127.0.0.0/8 ::1")),
    ("unspecified address", _networks("0.0.0.0/8 ::")),
    ("private address", _networks("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10")),
    ("link-local address", _networks("169.254.0.0/16 fe80::/10")),
    ("shared address", _networks("100.64.0.0/10")),
    ("multicast address", _networks("224.0.0.0/4 ff00::/8")),
    ("reserved address", _networks(RESERVED)),
)
_NAT64, _LOCAL_NAT64 = IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48")
_PUBLIC_IPV6 = IPv6Network("2000::/3")


def system_resolver(host: str, port: int) -> list[str]:
    """The addresses of a name, as this machine knows them."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in infos))


def why_refused(text: str, allowed: Sequence[Network] = ()) -> str | None:
    """The kind of an address that may not be reached; None if it may."""
    address = _unmapped(ip_address(text.partition("%")[0]))
    if any(address in network for network in allowed):
        return None
    inner = list(_embedded(address))
    for candidate in (*inner, address):
        for kind, networks in KINDS:
            if any(candidate in network for network in networks):
                return kind
    if isinstance(address, IPv6Address) and address not in _PUBLIC_IPV6 and address not in _NAT64:
        return "reserved address"
    # Python's tables have the last word; of a wrapped address on what is inside, as on the rest they differ.
    judged: Sequence[Address] = inner or [address]
    return None if all(one.is_global for one in judged) else "reserved address"


def _unmapped(address: Address) -> Address:
    """::ffff:127.0.0.1 is reached as 127.0.0.1, so it is judged as that."""
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def _embedded(address: Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that a 6to4, Teredo, NAT64 or IPv4-compatible address stands for."""
    if not isinstance(address, IPv6Address):
        return
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    if address in _NAT64 or address in _LOCAL_NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        yield IPv4Address(int(address) & 0xFFFFFFFF)


def stable_reason(message: str) -> str:
    """The reason in an error message of img2dataset."""
    for pattern, reason in _PATTERNS:
        if match := pattern.search(message.strip()):
            return match.expand(reason)
    return "other"


def why_never_fetched(url: str | None) -> str | None:
    """What is wrong with a link that must not reach a downloader, which would read `file://` as gladly."""
    if not url or len(url) > MAX_URL:
        return "refused: malformed url" if not url else "refused: url too long"
    if not re.match(r"https?:", url, re.IGNORECASE):
        return "refused: scheme"
    if not re.fullmatch(r"https?://[!-~]+", url, re.IGNORECASE):
        return "refused: malformed url"
    if (parts := split_url(url)) is None:
        return "refused: malformed url"
    return "refused: credentials" if "@" in parts.netloc else None


def split_url(text: str) -> SplitResult | None:
    """None for one that names no host, or an impossible port."""
    try:
        parts = urlsplit(text)
        return parts if parts.hostname and parts.port != 0 else None
    except ValueError:
        return None
