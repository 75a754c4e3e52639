"""Checks that there is a wheel of every locked package for every supported machine. Installs nothing.

Asks the registry alone: a folder of wheels on this machine says nothing of others. No package may need a
compiler, and none may be installed that the lock does not pin, but what torch needs for GPUs on Linux.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLATFORMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux aarch64": "aarch64-manylinux_2_28",
    "macOS arm64": "aarch64-apple-darwin",
}
PYTHONS = ("3.11", "3.12", "3.13")
MACOS = "14.0"  # the oldest that faiss is built for
# As `make setup` installs them.
LOCKS: dict[str, tuple[str, ...]] = {"requirements.lock": (), "img2dataset.lock": ("--no-deps",)}
FOR_GPUS = ("cuda-", "nvidia-", "triton")


def names(lines: str) -> set[str]:
    return {line.partition("==")[0] for line in lines.splitlines() if "==" in line}


def unpinned(lock: str, resolution: str) -> list[str]:
    """Packages that are installed although the lock does not name them, in any version."""
    return sorted(name for name in names(resolution) - names(lock) if not name.startswith(FOR_GPUS))


def problem_with(lock: str, options: tuple[str, ...], platform: str, python: str) -> str:
    """What is wrong with a lock on such a machine; empty if nothing is."""
    command = ["uv", "pip", "compile", "--quiet", "--only-binary", ":all:", "--no-header", "--no-annotate"]
    command += ["--python-platform", platform, "--python-version", python, *options, str(ROOT / lock)]
    environment = os.environ | {"UV_FIND_LINKS": "", "MACOSX_DEPLOYMENT_TARGET": MACOS}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip()
    packages = unpinned((ROOT / lock).read_text(), done.stdout)
    return f"the lock does not pin {', '.join(packages)}" if packages else ""


def main() -> int:
    failed = False
    for machine, platform in PLATFORMS.items():
        for python in PYTHONS:
            for lock, options in LOCKS.items():
                problem = problem_with(lock, options, platform, python)
                failed |= bool(problem)
                sys.stdout.write(f"{machine:15}Python {python}  {lock:19}{problem or 'ok'}\n")
                sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
