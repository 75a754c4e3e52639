"""One call of img2dataset: a process of its own, in an environment of its own, with one way out.

It cannot run inside a Dask worker (it installs signal handlers), wants other versions than we do, follows
redirects to anywhere and reads without limit. So it gets a proxy (`guard`), a clean environment without any
of our secrets, an empty home, and an end. It decodes nothing: OpenCV, which it would use, knows
no limit of scans or of time, so that one picture could hold up all others. Pictures are stored as they were
sent, and `shrink` decodes them.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus.shards import pictures_in
from mudg_core.errors import OrchestrationError, SettingsError
from mudg_core.processes import process_group
from mudg_core.settings import DownloadSettings

START_SECONDS = 300.0
TICK_SECONDS = 1.0
SECONDS_PER_ROW = 1.0
LOG_LINES = 15
_INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
_NO_TELEMETRY = {"NO_ALBUMENTATIONS_UPDATE": "1", "WANDB_MODE": "disabled", "DO_NOT_TRACK": "1"}
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # its own threads wait, mostly
# img2dataset imports this module at its start and uses it only when told to. The real one takes a second to
# import, in each of three processes, and looks for somebody to report to.
_STAND_IN = '"""Nothing is reported to anybody."""\n'


def find_command(settings: DownloadSettings) -> str:
    own = Path(sys.prefix, "img2dataset", "bin", "img2dataset")
    for candidate in [settings.command] if settings.command else [str(own), "img2dataset"]:
        if path := shutil.which(candidate):
            return path
    what = "img2dataset, which downloads images, is not installed"
    fix = "run `make setup`, or set download.command to an img2dataset 1.47 in an environment of its own"
    raise SettingsError(what=what, where=settings.command or str(own), fix=fix)


def fetch(
    links: pa.Table,
    folder: Path,
    proxy: str,
    settings: DownloadSettings,
    meanwhile: Callable[[], None] = lambda: None,
) -> Path:
    """Fetches every link (`url`, and `md5` or `sha256` to check), and returns the folder with the result:
    `00000.tar` in any order, and `00000.parquet`, where the key of a row is its number. `meanwhile` is called
    every second: an error of it ends the call. One that is ended by its time limit leaves the tar alone, with
    the pictures that were there by then (`is_complete`)."""
    command = find_command(settings)
    folder.mkdir()
    (folder / "wandb.py").write_text(_STAND_IN)
    pq.write_table(links, folder / "links.parquet")
    log, out = folder / "log", folder / "out"
    limit = time_limit(links.num_rows, settings)
    try:
        arguments = _arguments(links, folder, out, settings)
        with process_group([command, *arguments], _environment(folder, proxy), folder, log) as group:
            code = _wait(group, limit, meanwhile)
    except subprocess.TimeoutExpired as error:
        tar = out / "00000.tar"
        if tar.is_file() and pictures_in(tar):
            return out
        raise _failure(f"img2dataset was not done after {limit:.0f} s", log) from error
    if code != 0 or not is_complete(out):
        raise _failure(f"img2dataset failed with exit code {code}", log)
    return out


def is_complete(out: Path) -> bool:
    """Whether a call has come to its end: its statistics are the last that it writes."""
    return (out / "00000_stats.json").is_file()


def _wait(group: subprocess.Popen[bytes], limit: float, meanwhile: Callable[[], None]) -> int:
    end = time.monotonic() + limit
    while (left := end - time.monotonic()) > TICK_SECONDS:
        meanwhile()
        with suppress(subprocess.TimeoutExpired):
            return group.wait(TICK_SECONDS)
    return group.wait(max(0.0, left))


def time_limit(rows: int, settings: DownloadSettings) -> float:
    """What a call takes if every link takes as long as it may."""
    waves = math.ceil(rows / settings.threads)
    return START_SECONDS + waves * settings.max_seconds + rows * SECONDS_PER_ROW


def _arguments(links: pa.Table, folder: Path, out: Path, settings: DownloadSettings) -> list[str]:
    """Values are written as Python literals, as which its command line reads them. Its own time-out comes
    after the guard's, which knows the reason."""
    kinds = [name for name in ("sha256", "md5") if name in links.column_names]
    options: dict[str, object] = {
        "url_list": str(folder / "links.parquet"),
        "input_format": "parquet",
        "url_col": "url",
        "output_folder": str(out),
        "output_format": "webdataset",
        "number_sample_per_shard": links.num_rows,
        "processes_count": 1,
        "thread_count": min(settings.threads, links.num_rows),
        "timeout": math.ceil(settings.max_seconds) + 10,
        "retries": 0,
        "max_shard_retry": 0,
        "resize_mode": "no",
        "disable_all_reencoding": True,
        "extract_exif": False,
        "compute_hash": kinds[0] if kinds else "sha256",
        "verify_hash": [kinds[0]] * 2 if kinds else None,
        "enable_wandb": False,
        "user_agent_token": settings.user_agent,
        "disallowed_header_directives": list(settings.opt_out_directives),
    }
    return [f"--{name}={value!r}" for name, value in options.items()]


def _environment(folder: Path, proxy: str) -> dict[str, str]:
    schemes = [f"{scheme}_proxy" for scheme in ("http", "https", "ftp", "all")]
    proxies = dict.fromkeys([*schemes, *(name.upper() for name in schemes)], proxy)
    home = {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": str(folder)}
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return inherited | home | proxies | _NO_TELEMETRY | _ONE_THREAD


def _failure(what: str, log: Path) -> OrchestrationError:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 4096))
        lines = stream.read().decode(errors="replace").replace("\r", "\n").splitlines()
    last = "\n    ".join(line for line in lines[-LOG_LINES:] if line.strip())
    fix = "free disk space and memory if they are short; lower download.threads; then run again"
    return OrchestrationError(what=f"{what}; the end of its log:\n    {last or '(none)'}", fix=fix)
