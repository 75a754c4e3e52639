"""Which addresses a download may reach: public ones, and those that the operator has named.

Links come from strangers. One that leads to this machine, to its network or to a cloud's metadata service
would be asked with our rights, so every kind of address that is not plainly public is refused, also when it
is wrapped in an IPv6 address that some gateway would unwrap.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Resolver: TypeAlias = Callable[[str, int], Sequence[str]]


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(part) for part in text.split())


# The first kind that fits is the one reported. Python's own tables differ between its patch releases.
KINDS: tuple[tuple[str, tuple[Network, ...]], ...] = (
    (
        "metadata address",
        _networks(
            "169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 "
            "fd00:ec2::/32 fd20:ce::254"
        ),
    ),
    ("loopback address", _networks("127.0.0.0/8 ::1")),
    ("unspecified address", _networks("0.0.0.0/8 ::")),
    ("private address", _networks("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10")),
    ("link-local address", _networks("169.254.0.0/16 fe80::/10")),
    ("shared address", _networks("100.64.0.0/10")),
    ("multicast address", _networks("224.0.0.0/4 ff00::/8")),
    (
        "reserved address",
        _networks(
            "192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 "
            "240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20"
        ),
    ),
)
_NAT64, _LOCAL_NAT64 = IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48")
_PUBLIC_IPV6 = IPv6Network("2000::/3")


def system_resolver(host: str, port: int) -> list[str]:
    """The addresses of a name, as this machine knows them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


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
