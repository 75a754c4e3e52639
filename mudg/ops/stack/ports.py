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


def twins(names: tuple[str, ...], ports: Mapping[str, int]) -> list[int]:
    """Every port that a part with these ports opens."""
    own = [ports[name] for name in names]
    return own + [port + GRPC_OFFSET for port in own] if names == S3 else own


def choose_all(before: Mapping[str, int], wanted: Mapping[str, int]) -> dict[str, int]:
    """Ports for all parts, no two the same. Those that the user has named (`prefect`, `s3` and `dask`, each
    the first of its part) come before all others."""
    chosen: dict[str, int] = {}
    for names in sorted(OPTIONS, key=lambda names: names[0] not in wanted):
        used = others(names, chosen)
        port = wanted.get(names[0])
        chosen |= _named(names, port, used) if port else choose(names, before, used)
    return chosen


def others(names: tuple[str, ...], ports: Mapping[str, int]) -> set[int]:
    """Every port of parts but this one, as far as they have any."""
    rest = (part for part in OPTIONS if part != names and part[0] in ports)
    return {port for part in rest for port in twins(part, ports)}


def choose(
    names: tuple[str, ...], before: Mapping[str, int], used: Collection[int] = frozenset()
) -> dict[str, int]:
    """The ports that a part had the last time, as links to them may have been kept; others if taken."""
    if names == PREFECT:
        return {"prefect": _ui_port(used)}
    if all(name in before for name in names) and _are_free(names, before, used):
        return {name: before[name] for name in names}
    for _ in range(TRIES):
        ports = _from(names, random.SystemRandom().randrange(LOWEST, HIGHEST - len(names)))
        if _are_free(names, ports, used):
            return ports
    raise OrchestrationError(what="no free ports were found on this machine", where="127.0.0.1")


def _ui_port(used: Collection[int]) -> int:
    """The one that everybody knows, or the next."""
    for port in range(UI_PORT, UI_PORT + UI_PORTS):
        if port not in used and is_free(port):
            return port
    raise OrchestrationError(
        what=f"no port from {UI_PORT} to {UI_PORT + UI_PORTS - 1} is free", fix="give one with --ui-port"
    )


def _named(names: tuple[str, ...], first: int, used: Collection[int]) -> dict[str, int]:
    """Whoever names a port wants that one, and those after it where a part has several."""
    ports = _from(names, first)
    if max(twins(names, ports)) > LAST or not _are_free(names, ports, used):
        found = [port for port in twins(names, ports) if port > LAST or port in used or not is_free(port)]
        raise InputError(
            what=f"port {found[0]} is taken, or beyond {LAST}",
            where=OPTIONS[names],
            fix="give another, or leave the option out for free ones",
        )
    return ports


def _from(names: tuple[str, ...], first: int) -> dict[str, int]:
    return {name: first + i for i, name in enumerate(names)}


def _are_free(names: tuple[str, ...], ports: Mapping[str, int], used: Collection[int]) -> bool:
    return all(port not in used and is_free(port) for port in twins(names, ports))
