"""Ports are free when they are chosen, and stay what they were if they can."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mudg.ops.stack import ports
from mudg_core.errors import InputError, OrchestrationError


@contextmanager
def taken(port: int) -> Iterator[None]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        yield


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    port = ports.choose(ports.DASK, {})["dask"]
    assert ports.is_free(port)
    with taken(port):
        assert not ports.is_free(port)


def test_a_part_keeps_its_ports_until_one_is_taken() -> None:
    before = ports.choose(ports.S3, {})
    assert list(before) == list(ports.S3) and ports.choose(ports.S3, before) == before
    with taken(before["s3-volume"] + ports.GRPC_OFFSET):
        other = ports.choose(ports.S3, before)
    assert other != before and all(ports.is_free(port) for port in ports.opened(ports.S3, other))


def test_the_ui_takes_the_next_free_port_unless_one_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: port not in (4200, 4201))
    assert ports.choose(ports.PREFECT, {"prefect": 5000}) == {"prefect": 4202}
    assert ports.choose_all({}, {"prefect": 4202})["prefect"] == 4202
    with pytest.raises(InputError, match="port 4201 is taken") as raised:
        ports.choose_all({}, {"prefect": 4201})
    assert raised.value.where == "--ui-port"


def test_ports_that_were_named_come_first_and_no_two_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: True)
    named = ports.choose_all({"dask": 7000, "dask-http": 7001}, {"s3": 7001})
    assert [named[name] for name in ports.S3] == [7001, 7002, 7003, 7004]
    assert 7001 not in (named["dask"], named["dask-http"])
    for _ in range(200):
        found = ports.choose_all({}, {})
        every = [port for names in ports.OPTIONS for port in ports.opened(names, found)]
        assert len(set(every)) == len(every)
    for wanted in ({"s3": 4195, "prefect": 4197}, {"s3": 60_000}, {"dask": 65_535}):
        with pytest.raises(InputError, match="is taken, or beyond"):
            ports.choose_all({}, wanted)


def test_a_machine_without_free_ports_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    for names in (ports.PREFECT, ports.S3):
        with pytest.raises(OrchestrationError, match="free"):
            ports.choose(names, {})
