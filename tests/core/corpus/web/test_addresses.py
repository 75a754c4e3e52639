"""Public addresses may be reached, and no other, in whatever they are wrapped. Nothing here connects."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from mudg_core.corpus.web.rules import system_resolver, why_refused

REFUSED = {
    "loopback address": "127.0.0.1 127.0.0.2 127.255.255.254 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1",
    "unspecified address": "0.0.0.0 0.1.2.3 :: ::ffff:0.0.0.0",
    "private address": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fdff::1 fec0::1 "
    "::ffff:10.0.0.1",
    "link-local address": "169.254.0.1 169.254.255.255 fe80::1 fe80::1%eth0 ::ffff:169.254.1.1",
    "metadata address": "169.254.169.254 ::ffff:169.254.169.254 100.100.100.200 168.63.129.16 192.0.0.192 "
    "fd00:ec2::254 fd20:ce::254 169.254.170.2",
    "shared address": "100.64.0.1 100.127.255.255",
    "multicast address": "224.0.0.1 239.255.255.255 ff02::1",
    "reserved address": "192.0.0.8 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 "
    "240.0.0.1 255.255.255.255 2001:db8::1 2001:10::1 3fff::1 100::1 64:ff9b:1::808:808 4000::1 "
    "5f00::1 ::8.8.8.8",
}
PUBLIC = (
    "8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 11.0.0.1 168.63.129.17 223.255.255.255 "
    "2606:4700::1 2a00:1450:4001:82a::200e 64:ff9b::8.8.8.8 2002:808:808::1 ::ffff:8.8.8.8"
)
WRAPPED = {
    "6to4": "2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1",
    "NAT64": "64:ff9b::{a}.{b}.{c}.{d}",
    "NAT64, local": "64:ff9b:1::{a}.{b}.{c}.{d}",
    "mapped": "::ffff:{a}.{b}.{c}.{d}",
    "compatible": "::{a}.{b}.{c}.{d}",
}


@pytest.mark.parametrize(
    ("address", "kind"), [(address, kind) for kind, text in REFUSED.items() for address in text.split()]
)
def test_f61_addresses_that_are_not_public_are_refused(address: str, kind: str) -> None:
    assert why_refused(address) == kind


@pytest.mark.parametrize("inner", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1", "100.64.0.1"])
@pytest.mark.parametrize("form", WRAPPED)
def test_f61_a_wrapped_address_is_judged_by_what_is_inside(form: str, inner: str) -> None:
    a, b, c, d = map(int, inner.split("."))
    assert why_refused(WRAPPED[form].format(a=a, b=b, c=c, d=d)) == why_refused(inner) is not None


def test_f61_teredo_is_judged_by_both_addresses_inside() -> None:
    assert why_refused("2001:0:4136:e378:8000:63bf:80ff:fffe") == "loopback address"  # client 127.0.0.1
    assert why_refused("2001:0:a00:1:8000:63bf:3fff:fdd2") == "private address"  # server 10.0.0.1
    assert why_refused("2001:0:4136:e378:8000:63bf:3fff:fdd2") == "reserved address"  # not routed any more


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_addresses_may_be_reached(address: str) -> None:
    assert why_refused(address) is None


def test_the_operator_may_allow_a_network_and_only_that() -> None:
    allowed = (ip_network("127.0.0.2/32"), ip_network("fd12::/16"))
    assert why_refused("127.0.0.2", allowed) is None
    assert why_refused("::ffff:127.0.0.2", allowed) is None
    assert why_refused("fd12::5", allowed) is None
    assert why_refused("127.0.0.1", allowed) == why_refused("127.0.0.3", allowed) == "loopback address"
    assert why_refused("64:ff9b::127.0.0.2", allowed) == "loopback address"  # another machine's own


@pytest.mark.parametrize("spelling", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1"])
def test_f61_spellings_of_an_address_are_judged_by_what_they_mean(spelling: str) -> None:
    """The system reads all of these; no name server is asked."""
    addresses = system_resolver(spelling, 80)
    assert addresses and all(why_refused(address) == "loopback address" for address in addresses)
