"""Environments of their own for peers, which want other versions of numpy, pyarrow and open_clip than we do.

Each is a folder below the cache, made by uv from a file of exact versions, and made anew when that changes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

CACHE = Path(".mudg/peers")
ROOT = Path(__file__).parents[1]
VENV_SECONDS, INSTALL_SECONDS = 600.0, 1800.0
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")


class PeerError(RuntimeError):
    """A peer could not be installed or run; the message has its last words."""


def environment(requirements: Path, cache: Path = CACHE) -> Path:
    """The Python of the environment that a file of exact versions describes.

    A copy of that file is written last, so half an environment is none. Compiled, because some peers import
    all they have in several processes at every start.
    """
    name = requirements.stem
    home = (cache / name).absolute()
    made, python = home / "requirements.txt", home / "bin" / "python"
    with _alone(home.with_suffix(".lock")):
        if not made.is_file() or made.read_bytes() != requirements.read_bytes():
            uv = Path(sys.executable).with_name("uv")
            run(name, [uv, "venv", "--quiet", "--clear", "--python", sys.executable, home], VENV_SECONDS)
            _install(name, uv, python, requirements.absolute())
            shutil.copyfile(requirements, made)
    return python


def run(
    name: str, command: Sequence[str | Path], timeout: float, extra: Mapping[str, str] = ONE_THREAD
) -> str:
    """What a command printed. Whatever it has started ends with it: a peer that fails may leave helpers that
    wait for good, and hold its output open."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | extra,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise PeerError(f"{name} was not done after {timeout:.0f} s") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:  # a negative one is the signal that ended it
        raise PeerError(f"{name} failed with exit code {process.returncode}: {errors[-2000:]}")
    return out


def find_links(environ: Mapping[str, str]) -> dict[str, str]:
    """uv does not read pip's settings; a folder of wheels that pip knows of may hold a CPU build of torch."""
    links = environ.get("UV_FIND_LINKS") or ",".join(environ.get("PIP_FIND_LINKS", "").split())
    return {"UV_FIND_LINKS": links} if links else {}


def backends(requirements: str, links: str) -> list[list[str]]:
    """Flags to try one after the other. Where torch comes from, best first: a local CPU wheel, PyTorch's own
    CPU index, the registry."""
    wants_torch = any(line.startswith("torch==") for line in requirements.splitlines())
    local = any(list(Path(folder).glob("torch-*+cpu*.whl")) for folder in links.split(",") if folder)
    return [["--torch-backend=cpu"], []] if wants_torch and not local else [[]]


def _install(name: str, uv: Path, python: Path, requirements: Path) -> None:
    extra = find_links(os.environ)
    *better, last = backends(requirements.read_text(), extra.get("UV_FIND_LINKS", ""))
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--compile-bytecode"]
    install += ["--python", python, "-r", requirements]
    for flags in better:
        with suppress(PeerError):
            run(name, [*install, *flags], INSTALL_SECONDS, extra)
            return
    run(name, [*install, *last], INSTALL_SECONDS, extra)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Tests and benchmarks share environments, and may want one at the same time."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # released by close, and by the kernel if we die
        yield
