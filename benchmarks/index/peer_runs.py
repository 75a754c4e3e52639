"""Runs a peer in an environment of its own, and reads what it measured.

Peers want other versions of numpy and pyarrow than we do, so each has a folder below the cache, made by uv
from exact versions, and made anew when these change.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from benchmarks.index.curves import Curve, Point

PEERS = ("hnsw", "scann", "autofaiss")
CACHE = Path(".mudg/peers")
ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).with_name("peers")
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)


class PeerError(RuntimeError):
    """A peer could not be installed or measured; the message has its last words."""


def run_peer(name: str, folder: Path, cache: Path = CACHE, timeout: float = 3600) -> Curve:
    """Measures one of PEERS on the problem in `folder` (see problem.py) with one thread.

    The time-out is for the measurement alone, not for making the environment.
    """
    python = environment(name, cache)
    script = f"benchmarks.index.peers.run_{name}"
    out = _run(name, [python, "-m", script, folder.absolute(), "--threads", "1"], timeout)
    return Curve(name, parse(name, out))


def environment(name: str, cache: Path = CACHE) -> Path:
    """The peer's own Python. A copy of the requirements is written last, so half an environment is none."""
    wanted = REQUIREMENTS / f"{name}.txt"
    home = (cache / name).absolute()
    made, python = home / "requirements.txt", home / "bin" / "python"
    if not made.is_file() or made.read_bytes() != wanted.read_bytes():
        uv = Path(sys.executable).with_name("uv")
        _run(name, [uv, "venv", "--quiet", "--clear", "--python", sys.executable, home], 600)
        _run(name, [uv, "pip", "install", "--quiet", "--python", python, "-r", wanted], 1800)
        shutil.copyfile(wanted, made)
    return python


def parse(name: str, out: str) -> list[Point]:
    """The points in the last line that the peer printed."""
    try:
        return TypeAdapter(list[Point]).validate_python(json.loads(out.strip().splitlines()[-1])["points"])
    except (IndexError, KeyError, TypeError, ValueError, ValidationError) as error:
        raise PeerError(f"{name} printed no measurement: {out[-300:]!r}") from error


def _run(name: str, command: list[str | Path], timeout: float) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | ONE_THREAD,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"{name} was not done after {timeout:.0f} s") from error
    except subprocess.CalledProcessError as error:
        why = f"exit code {error.returncode}"  # a negative one is the signal that ended it
        raise PeerError(f"{name} failed with {why}: {error.stderr[-2000:]}") from error
    return done.stdout
