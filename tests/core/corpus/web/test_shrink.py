"""One picture that stalls or crashes a decoder costs itself, whatever lies beside it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.corpus.decode import decode
from mudg_core.corpus.web import shrink as module
from mudg_core.corpus.web.download import download
from mudg_core.corpus.web.shrink import (
    CPU_SECONDS,
    CRASHED,
    TOO_SLOW,
    Shrinker,
    ShrinkSettings,
    Small,
    shrink,
)
from mudg_core.errors import OrchestrationError
from mudg_core.settings import DownloadSettings
from tests.support.guarded import canary, web
from tests.support.hostile import encoded, many_scans, noise
from tests.support.hostile_web import HostileWeb, picture

__all__ = ["canary", "web"]
HOW = ShrinkSettings(side=32, quality=90, max_bytes=1 << 24, max_pixels=1_000_000)


def test_f82_a_jpeg_of_2000_scans_costs_itself_and_not_its_batch(web: HostileWeb, tmp_path: Path) -> None:
    """Through the real img2dataset, beside 19 good ones; a decoder would walk through 124,000 Mpx."""
    good = [f"good-{number}" for number in range(19)]
    web.stored |= {name: picture("red") for name in good} | {"poison": many_scans((8000, 7750), 2000)}
    assert len(web.stored["poison"]) < 2**20
    urls = [f"{web.url}/stored/{name}" for name in ("poison", *good)]
    settings = DownloadSettings(allow_networks=("127.0.0.2/32",), ports=(web.port,), timeout_seconds=60)
    start = time.monotonic()
    done = download(pa.table({"url": urls, "caption": urls}), tmp_path, settings)
    assert time.monotonic() - start < 60
    assert (done.images, done.reasons) == (19, {"image: too many scans": 1})
    table = pq.read_table(tmp_path / "shard.parquet")
    assert table["error_message"].to_pylist() == ["image: too many scans"] + [None] * 19


def test_f82_cpu_time_is_limited_for_each_picture() -> None:
    """Of a picture that every other limit lets pass."""
    slow = encoded(noise(900), "PNG")
    with Shrinker(HOW._replace(cpu_seconds=0.004)) as small:
        assert small(slow) == TOO_SLOW
    with Shrinker(HOW) as small:
        assert isinstance(small(slow), Small)


def test_f82_the_time_for_a_picture_is_twenty_seconds_unless_told_otherwise() -> None:
    """Its batch waits for it; the worst that our decoder lets pass takes a few."""
    assert HOW.cpu_seconds == CPU_SECONDS == 20.0


def test_f82_the_process_that_decodes_has_none_of_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture that takes the decoder over finds what its environment says."""
    names = ("AWS_SECRET_ACCESS_KEY", "PREFECT_API_AUTH_STRING", "HF_TOKEN", "MUDG_STORAGE__URL")
    for name in names:
        monkeypatch.setenv(name, "5ec7e7")
    with Shrinker(HOW) as small:
        assert isinstance(small(picture()), Small)
        assert small._process is not None
        environment = psutil.Process(small._process.pid).environ()
    assert not set(names) & environment.keys() and "5ec7e7" not in " ".join(environment.values())
    assert environment.keys() <= {*module._INHERITED, "PYTHONPATH", "LC_CTYPE"}


def test_f82_a_process_that_stands_still_is_not_waited_for() -> None:
    with Shrinker(HOW._replace(cpu_seconds=1.0)) as small:
        assert isinstance(small(picture()), Small)
        assert small._process is not None
        os.kill(small._process.pid, signal.SIGSTOP)
        assert small(picture()) == TOO_SLOW
        assert isinstance(small(picture()), Small)


def test_f82_a_crash_costs_one_picture() -> None:
    with Shrinker(HOW) as small:
        assert isinstance(small(picture()), Small)
        process = small._process
        assert process is not None
        os.kill(process.pid, signal.SIGSEGV)
        process.wait()
        assert small(picture()) == CRASHED
        assert isinstance(small(picture()), Small)


def test_a_process_that_cannot_start_is_nobodys_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "__name__", "mudg_core.there_is_no_such_module")
    with Shrinker(HOW) as small, pytest.raises(OrchestrationError, match="exit code 1"):
        small(picture())


def test_pictures_come_out_upright_small_and_measured() -> None:
    turned = shrink(picture("yellow", size=(128, 96), turn=6), HOW)
    assert turned[1:] == (32, 43, 96, 128) and decode(turned.image).size == (32, 43)
    assert shrink(picture(size=(20, 10)), HOW)[1:] == (20, 10, 20, 10)  # never enlarged
    with Shrinker(HOW) as small:
        assert small(picture("yellow", size=(128, 96), turn=6)) == turned
        assert small(b"404 not found") == "image: not an image"
