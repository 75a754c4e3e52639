"""Runs a peer in an environment of its own, and reads what it measured."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from benchmarks.index.curves import Curve, Point
from benchmarks.peer_environment import CACHE, PeerError, environment, run

PEERS = ("hnsw", "scann", "autofaiss")
REQUIREMENTS = Path(__file__).with_name("peers")


def run_peer(name: str, folder: Path, cache: Path = CACHE, timeout: float = 3600) -> Curve:
    """Measures one of PEERS on the problem in `folder` (see `peers.measure`) with one thread.

    The time-out is for the measurement alone, not for making the environment.
    """
    python = environment(REQUIREMENTS / f"{name}.txt", cache)
    script = f"benchmarks.index.peers.run_{name}"
    out = run(name, [python, "-m", script, folder.absolute(), "--threads", "1"], timeout)
    return Curve(name, parse(name, out))


def parse(name: str, out: str) -> list[Point]:
    """The points in the last line that the peer printed."""
    try:
        return TypeAdapter(list[Point]).validate_python(json.loads(out.strip().splitlines()[-1])["points"])
    except (IndexError, KeyError, TypeError, ValueError, ValidationError) as error:
        raise PeerError(f"{name} printed no measurement: {out[-300:]!r}") from error
