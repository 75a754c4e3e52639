"""A forged certificate, and SeaweedFS' gRPC with it: `weed shell` deleted and moved objects."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mudg.ops.stack.credentials import make_certificate
from mudg.ops.stack.parts import PARTS, weed
from mudg.ops.stack.running import Stack
from tests.security.results import NotTried, Result, attempt

COMMANDS = (
    "fs.ls /buckets/mudg\nlock\nfs.rm -rf /buckets/mudg/store/precious\nvolume.list\ns3.configure\nexit\n"
)
SHELL_SECONDS = 10


@dataclass(frozen=True)
class Forged:
    """A certificate with the same names as the stack's, and another key. The stack's own, which its servers
    show to all, is trusted by the attacker."""

    folder: Path
    tls: dict[str, str]


def forge(stack: Stack, folder: Path) -> Forged:
    place = folder / "forged"
    place.mkdir()
    files, shown = make_certificate(place), place / "shown.pem"
    shown.write_text(ssl.get_server_certificate(("127.0.0.1", stack.state.ports["dask"]), timeout=10))
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    names = {"tls_ca_file": shown, "tls_client_cert": files.cert, "tls_client_key": files.key}
    return Forged(place, {name: str(path) for name, path in names.items()})


def shells(stack: Stack, folder: Path, forgery: Forged, user: int | None) -> Iterator[Result]:
    """`weed shell` deleted and moved objects. With the stack's certificate it still does all that."""
    program = Path(shutil.copy(weed(), folder / "weed"))
    program.chmod(0o755)
    names = dict(zip(("CA", "CLIENT_CERT", "CLIENT_KEY"), forgery.tls.values(), strict=True))
    cases = {"in plain": {}, "with a forged certificate": {f"WEED_GRPC_{k}": v for k, v in names.items()}}
    shell = partial(_shell, stack, program)
    with ThreadPoolExecutor(len(cases)) as pool:
        outputs = dict(zip(cases, pool.map(lambda theirs: shell(theirs, user), cases.values()), strict=True))
    right = shell(PARTS["s3"].environment(stack), None, "fs.ls /buckets/mudg\nexit\n")
    for how, text in outputs.items():
        yield attempt("SeaweedFS by gRPC (weed shell)", 80, partial(_check_silent, text, right), how)


def _check_silent(text: str, right: str) -> str:
    if "ready" not in right:
        raise NotTried(f"with the right certificate it does not work either: {right[-300:]}")
    assert "ready" not in text and "volume id" not in text.lower(), f"it answered: {text[-300:]}"
    return f"no answer in {SHELL_SECONDS} s, but to the stack's certificate"


def _shell(
    stack: Stack, program: Path, theirs: dict[str, str], user: int | None, commands: str = COMMANDS
) -> str:
    port = stack.state.ports
    servers = (f"-master=127.0.0.1:{port['s3-master']}", f"-filer=127.0.0.1:{port['s3-filer']}")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(program.parent)} | theirs
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [str(program), "shell", *servers],
        env=environment,
        user=user,
        group=user,
        cwd="/",
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(commands, timeout=SHELL_SECONDS)[0]
        process.kill()
        return process.communicate()[0]
