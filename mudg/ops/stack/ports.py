"""Ports on 127.0.0.1 that nobody listens on. All are below the range that outgoing connections take theirs
from, so that one which was free stays free."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Mapping

from mudg_core.errors import InputError, OrchestrationError

UI_PORT, UI_PORTS = 4200, 100
GRPC_OFFSET = 10_000  # SeaweedFS opens gRPC on each of its ports plus this
LOWEST, HIGHEST = 11_000, 21_000  # so that no port is that of another's gRPC
TRIES = 200
LAST = 65_535

PREFECT = ("prefect",)
S3 = ("s3", "s3-master", "s3-volume", "s3-filer")
DASK = ("dask", "dask-http")
OPTIONS = {PREFECT: "--ui-port", S3: "--s3-port", DASK: "--dask-port"}


def is_free(port: int) -> bool:
    """As a server would try it: a port whose last connections are still fading away counts as free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def opened(names: tuple[str, ...], ports: Mapping[str, int]) -> list[int]:
    """Every port that a part with these ports opens."""
    own = [ports[name] for name in names]
    return own + [port + GRPC_OFFSET for port in own] if names == S3 else own


def choose_all(before: Mapping[str, int], wanted: Mapping[str, int]) -> dict[str, int]:
    """Ports for all parts, no two the same. Those that the user has named (`prefect`, `s3` and `dask`, each
    the first of its part) come before all others."""
    chosen: dict[str, int] = {}
    for names in sorted(OPTIONS, key=lambda names: names[0] not in wanted):
        used = of_other_parts(names, chosen)
        port = wanted.get(names[0])
        chosen |= _named(names, port, used) if port else choose(names, before, used)
    return chosen


def of_other_parts(names: tuple[str, ...], ports: Mapping[str, int]) -> set[int]:
    others = (part for part in OPTIONS if part != names and part[0] in ports)
    return {port for part in others for port in opened(part, ports)}


def choose(
    names: tuple[str, ...], before: Mapping[str, int], used: Collection[int] = frozenset()
) -> dict[str, int]:
    """The ports that a part had the last time, as links to them may have been kept; others if taken. The UI
    is on the port that everybody knows, or the next."""
    if names == PREFECT:
        for port in range(UI_PORT, UI_PORT + UI_PORTS):
            if port not in used and is_free(port):
                return {"prefect": port}
        last = UI_PORT + UI_PORTS - 1
        raise OrchestrationError(
            what=f"no port from {UI_PORT} to {last} is free", fix="give one with --ui-port"
        )
    if all(name in before for name in names) and not _taken(names, before, used):
        return {name: before[name] for name in names}
    for _ in range(TRIES):
        ports = _consecutive(names, random.SystemRandom().randrange(LOWEST, HIGHEST - len(names)))
        if not _taken(names, ports, used):
            return ports
    raise OrchestrationError(what="this machine has no free ports", where="127.0.0.1")


def _named(names: tuple[str, ...], first: int, used: Collection[int]) -> dict[str, int]:
    """Whoever names a port wants that one, and those after it where a part has several."""
    ports = _consecutive(names, first)
    if taken := _taken(names, ports, used):
        raise InputError(
            what=f"port {taken[0]} is taken, or beyond {LAST}",
            where=OPTIONS[names],
            fix="give another, or leave the option out for free ones",
        )
    return ports


def _consecutive(names: tuple[str, ...], first: int) -> dict[str, int]:
    return {name: first + i for i, name in enumerate(names)}


def _taken(names: tuple[str, ...], ports: Mapping[str, int], used: Collection[int]) -> list[int]:
    return [port for port in opened(names, ports) if port > LAST or port in used or not is_free(port)]
