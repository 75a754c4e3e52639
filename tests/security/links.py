"""Links of strangers, through the real img2dataset and its guard, on a web that is on this machine.

The canary stands for all that must not be reached: it has the port that may be asked, at an address that may
not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus.web.download import download
from mudg_core.errors import DataError
from mudg_core.settings import DownloadSettings
from tests.core.corpus.web.test_addresses import REFUSED
from tests.core.corpus.web.test_download import FAILURES
from tests.security.results import NotTried, Result, attempt
from tests.support.hostile import many_scans
from tests.support.hostile_web import HostileWeb, hostile_web

NOT_HOSTILE = ("missing/", "busy/", "liar/", "good/pink")  # failures, and no attacks
OTHERS = {
    "file:///etc/passwd": "refused: scheme",
    "ftp://127.0.0.1/x": "refused: scheme",
    "data:image/png;base64,AAAA": "refused: scheme",
    "http://user:word@127.0.0.2:{port}/good/": "refused: credentials",
    "http://127.0.0.2:1/": "refused: port",
}
SPELT = ("localhost", "127.1", "2130706433", "0x7f.1", "0177.0.0.1")
SLOW = ("drip/", "silent/")
SECONDS = 120


def attacks(folder: Path) -> Iterator[Result]:
    with hostile_web("127.0.0.1") as canary, hostile_web(port=canary.port, canary=canary.netloc) as web:
        web.stored |= {"poison": many_scans((1000, 990), 2000)}
        expected = _expected(web, canary)
        started = time.monotonic()
        errors = _download(web, [*expected, f"{web.url}/good/red"], folder / "links")
        took = time.monotonic() - started
        if errors.pop(f"{web.url}/good/red") is not None:
            raise NotTried("not even a good link gave an image")
        for url, reason in expected.items():
            attack = partial(_refused, errors.get(url), reason)
            yield attempt(_kind(reason), _fault(reason), attack, url[:100])
        yield attempt(
            "a link that drips, and one that never answers", 65, partial(_slow, web, folder / "slow")
        )
        yield attempt("all of that within a time limit", 65, partial(_check_time, took))
        yield attempt("anybody reached what is inside", 63, partial(_check_canary, canary))


def _expected(web: HostileWeb, canary: HostileWeb) -> dict[str, str]:
    """The reason that each link must be refused for."""
    reasons = {f"{web.url}/{path}": why for path, why in FAILURES.items() if path not in NOT_HOSTILE}
    reasons[f"{web.url}/stored/poison"] = "image: too many scans"
    reasons |= {url.format(port=web.port): why for url, why in OTHERS.items()}
    reasons |= {f"http://{host}:{canary.port}/": "refused: loopback address" for host in SPELT}
    for kind, text in REFUSED.items():
        for address in (one for one in text.split() if one != "127.0.0.2" and "%" not in one):
            host = f"[{address}]" if ":" in address else address
            reasons[f"http://{host}:{canary.port}/"] = f"refused: {kind}"
    return {url: why for url, why in reasons.items() if "::127.0.0.2" not in url}


def _download(web: HostileWeb, urls: list[str], out: Path) -> dict[str, Any]:
    settings = DownloadSettings(
        allow_networks=("127.0.0.2/32",),
        ports=(web.port,),
        timeout_seconds=60,
        max_bytes=300_000 + (1 << 20),
        max_pixels=1_000_000,
        threads=16,
        retries=0,
        min_yield=0.0,
    )
    download(pa.table({"url": urls, "caption": urls}), out, settings)
    rows = pq.read_table(out / "shard.parquet").to_pylist()
    return {row["url"]: row["error_message"] for row in rows}


def _kind(reason: str) -> str:
    """Links are told apart by what they are refused for: so is what they try."""
    return f"links, each {reason}" if reason.startswith("refused") else f"links, each ended: {reason}"


def _fault(reason: str) -> int:
    by = {"scheme": 60, "address": 61, "credentials": 60, "port": 61, "redirects": 62, "encoding": 66}
    by |= {"large": 64, "cut": 64, "scans": 82, "pixels": 67, "opted": 70, "image": 68}
    return next((fault for word, fault in by.items() if word in reason), 61)


def _refused(error: str | None, reason: str) -> str:
    assert error is not None, "it gave an image"
    assert error == reason, f"{error}, and not {reason}"
    return error


def _slow(web: HostileWeb, out: Path) -> str:
    urls = [f"{web.url}/{path}" for path in SLOW]
    settings = DownloadSettings(
        allow_networks=("127.0.0.2/32",), ports=(web.port,), timeout_seconds=1, max_seconds=2, retries=0
    )
    started = time.monotonic()
    try:
        download(pa.table({"url": urls, "caption": urls}), out, settings)
    except DataError as error:
        assert "timed out" in error.what, error.what
        return f"{error.what[:80]}, after {time.monotonic() - started:.0f} s"
    raise AssertionError("they gave images")


def _check_time(took: float) -> str:
    assert took < SECONDS, f"{took:.0f} s"
    return f"{took:.0f} s for all, the JPEG of 2,000 scans among them"


def _check_canary(canary: HostileWeb) -> str:
    assert not canary.hits, f"asked for {dict(canary.hits)}"
    return "the canary heard nothing"
