"""Ports on 127.0.0.1 that nobody listens on. All are below the range that outgoing connections take theirs
from, so that one which was free stays free."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping

from mudg_core.errors import InputError, OrchestrationError

UI_PORT, UI_PORTS = 4200, 100
GRPC_OFFSET = 10_000  # SeaweedFS opens gRPC on each of its ports plus this
LOWEST, HIGHEST = 11_000, 22_000
TRIES = 200

PREFECT = ("prefect",)
S3 = ("s3", "s3-master", "s3-volume", "s3-filer")
DASK = ("dask", "dask-http")


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


def choose(names: tuple[str, ...], before: Mapping[str, int]) -> dict[str, int]:
    """The ports that a part had the last time, as links to them may have been kept; others if taken."""
    if names == PREFECT:
        return {"prefect": ui_port()}
    if all(name in before for name in names) and all(is_free(port) for port in twins(names, before)):
        return {name: before[name] for name in names}
    for _ in range(TRIES):
        first = random.SystemRandom().randrange(LOWEST, HIGHEST - len(names))
        ports = {name: first + i for i, name in enumerate(names)}
        if all(is_free(port) for port in twins(names, ports)):
            return ports
    raise OrchestrationError(what="no free ports were found on this machine", where="127.0.0.1")


def ui_port() -> int:
    """The one that everybody knows, or the next."""
    for port in range(UI_PORT, UI_PORT + UI_PORTS):
        if is_free(port):
            return port
    raise OrchestrationError(
        what=f"no port from {UI_PORT} to {UI_PORT + UI_PORTS - 1} is free", fix="give one with --ui-port"
    )


def wanted_ui_port(port: int) -> int:
    """Whoever names a port wants that one."""
    if not is_free(port):
        raise InputError(
            what=f"port {port} is taken",
            where="--ui-port",
            fix="give another, or leave the option out for the next free one",
        )
    return port
