"""Real runs of img2dataset through the guard, on a web of strangers, with everything in few of them.

The first has all cases and two rounds. In the second every link is dead, so its limits can be tiny.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.corpus.decode import decode
from mudg_core.corpus.shards import PARQUET_SCHEMA, read_shard
from mudg_core.corpus.web.download import Downloaded, download
from mudg_core.errors import DataError
from mudg_core.settings import DownloadSettings
from tests.support.hostile_web import HTML, MANY_PIXELS, HostileWeb, hostile_web, picture, self_signed

ROOT = Path(__file__).parents[4]
WRONG = "0" * 64
PICTURES = {
    "good/red": picture("red"),
    "png/x.jpg": picture("blue", "PNG"),
    "big/": picture("green", size=(600, 400)),
    "turned/": picture("yellow", turn=6),
    "chunks/": picture(),
    "claims-too-little/": picture(),
    "good-chain/3": picture(),
    "flaky/500": picture("lime"),
    "flaky/429": picture("lime"),
    "robots/otherbot=noai": picture(),
}
FAILURES = {
    "missing/": "HTTP 404",
    "busy/": "HTTP 429",
    "endless/": "refused: too large",
    "endless-chunks/": "refused: too large",
    "claims-much/": "refused: too large",
    "claims-too-much/": "connection cut",
    "torn-chunks/": "connection cut",
    "gzip-bomb/": "refused: content encoding",
    "to/canary": "refused: loopback address",
    "to/canary-tls": "refused: loopback address",
    "chain/3": "refused: loopback address",
    "to/file": "refused: scheme",
    "to/ftp": "refused: scheme",
    "to/credentials": "refused: credentials",
    "loop/": "too many redirects",
    "robots/noai": "opted out",
    "robots/mudg=noimageai": "opted out",
    "html/x.jpg": "image: not an image (html)",
    "many-pixels/": "image: too many pixels",
    "liar/": "HTTP 403",
    "good/pink": "hash mismatch",
}
TLS_FAILURES = {"endless/": "over a limit", "missing/": "HTTP 404", "to/file": "refused: scheme"}


@dataclass(frozen=True)
class Run:
    done: Downloaded
    out: Path
    rows: dict[str, dict[str, Any]]  # by address
    expected: dict[str, str | None]
    web: HostileWeb
    canary: HostileWeb

    def of(self, path: str) -> dict[str, Any]:
        return self.rows[f"{self.web.url}/{path}"]


@pytest.fixture(scope="module")
def canary() -> Iterator[HostileWeb]:
    with hostile_web("127.0.0.1") as server:
        yield server


@pytest.fixture(scope="module")
def web(canary: HostileWeb) -> Iterator[HostileWeb]:
    with hostile_web(port=canary.port, canary=f"127.0.0.1:{canary.port}") as server:
        yield server


@pytest.fixture(scope="module")
def run(web: HostileWeb, canary: HostileWeb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("download")
    context, certificate = self_signed(folder)
    with hostile_web(tls=context) as tls, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(certificate))
        expected: dict[str, str | None] = {f"{web.url}/{path}": None for path in PICTURES}
        expected |= {f"{web.url}/{path}": reason for path, reason in FAILURES.items()}
        expected |= {f"{tls.url}/good/red": None}
        expected |= {f"{tls.url}/{path}": reason for path, reason in TLS_FAILURES.items()}
        expected |= {
            canary.url: "refused: loopback address",
            canary.url.replace("http", "https"): "refused: loopback address",
            "http://127.0.0.2:1/": "refused: port",
            "file:///etc/passwd": "refused: scheme",
            f"{web.url}/good/opted-out": "opted out",
        }
        settings = DownloadSettings(
            allow_networks=("127.0.0.2/32",),
            ports=(web.port, tls.port),
            timeout_seconds=60,
            max_bytes=300_000,
            max_pixels=1_000_000,
            threads=16,
            retries=1,
            backoff_seconds=0,
        )
        done = download(_links(expected), folder / "out", settings)
        rows = {row["url"]: row for row in pq.read_table(folder / "out/shard.parquet").to_pylist()}
        yield Run(done, folder / "out", rows, expected, web, canary)


def _links(expected: dict[str, str | None]) -> pa.Table:
    """Every row has a hash, so that one call can check them all."""
    served = PICTURES | {"html/x.jpg": HTML, "many-pixels/": MANY_PIXELS}
    known = {f"/{path}": hashlib.sha256(image).hexdigest() for path, image in served.items()}
    ends = [re.sub(r"^https?://[^/]*", "", url) for url in expected]
    hashes = [known.get(end, WRONG).upper() for end in ends]
    opted_out = [url.endswith("opted-out") for url in expected]
    columns = {"url": list(expected), "caption": [f"at {end}" for end in ends], "sha256": hashes}
    return pa.table(columns | {"opt_out": opted_out})


def test_every_case_ends_as_it_should(run: Run) -> None:
    assert {url: row["error_message"] for url, row in run.rows.items()} == run.expected


def test_f61_f62_f63_nobody_got_inside(run: Run) -> None:
    assert not run.canary.hits


def test_the_shard_has_our_layout(run: Run) -> None:
    assert sorted(path.name for path in run.out.iterdir()) == ["shard.parquet", "shard.tar"]
    assert pq.read_schema(run.out / "shard.parquet").equals(PARQUET_SCHEMA)
    assert [row["key"] for row in run.rows.values()] == [f"{n:09d}" for n in range(len(run.expected))]
    assert list(run.rows) == list(run.expected)
    good = [row["key"] for row in run.rows.values() if row["status"] == "success"]
    with tarfile.open(run.out / "shard.tar") as tar:
        assert tar.getnames() == [f"{key}.{suffix}" for key in good for suffix in ("jpg", "txt", "json")]
    samples = {sample.url: sample for sample in read_shard(run.out / "shard.tar")}
    assert samples[f"{run.web.url}/good/red"].caption == "at /good/red"
    assert all(sample.sha256 == run.rows[url]["sha256"] for url, sample in samples.items())


def test_pictures_are_shrunk_and_remember_their_size(run: Run) -> None:
    big, small = run.of("big/"), run.of("good/red")
    assert (big["width"], big["height"], big["original_width"], big["original_height"]) == (
        384,
        256,
        600,
        400,
    )
    assert (small["width"], small["height"], small["original_width"]) == (64, 48, 64)


def test_f68_a_turned_picture_comes_out_upright(run: Run) -> None:
    samples = {sample.url: sample for sample in read_shard(run.out / "shard.tar")}
    turned, straight = (samples[f"{run.web.url}/{path}"].image for path in ("turned/", "good/red"))
    assert turned is not None and straight is not None
    upright = decode(turned)
    assert upright.size == (48, 64) and decode(straight).size == (64, 48)
    assert sum(upright.getpixel((24, 8))) < 60 < sum(upright.getpixel((24, 56)))  # type: ignore[arg-type]


def test_only_failures_that_may_pass_were_asked_again(run: Run) -> None:
    hits = run.web.hits
    assert [hits[f"/{path}"] for path in ("flaky/500", "flaky/429", "busy/", "claims-too-much/")] == [2] * 4
    once = ("good/red", "missing/", "endless/", "gzip-bomb/", "robots/noai", "html/x.jpg", "good/pink")
    assert [hits[f"/{path}"] for path in once] == [1] * len(once)
    assert run.done.rounds == 2


def test_f64_f66_caps_hold_over_all_connections(run: Run) -> None:
    assert run.done.stopped["too large"] >= 4 and run.done.stopped["content encoding"] == 1
    assert run.done.bytes < 40 * 300_000


def test_f69_yield_is_reported_by_reason(run: Run) -> None:
    reasons = [reason for reason in run.expected.values() if reason is not None]
    assert run.done.reasons == {reason: reasons.count(reason) for reason in sorted(set(reasons))}
    assert run.done.rows == run.done.images + len(reasons)
    assert run.done.image_share == run.done.images / run.done.rows > 0.2


def test_f70_opt_outs_are_honoured_and_counted(run: Run) -> None:
    assert run.of("robots/noai")["status"] == "failed_to_download"
    assert run.of("robots/otherbot=noai")["status"] == "success"
    assert run.done.reasons["opted out"] == 3
    assert "/good/opted-out" not in run.web.hits


def test_the_user_agent_says_who_asks(run: Run) -> None:
    assert "mudg" in run.web.seen["/good/red"]["User-Agent"]


def test_f65_f69_all_links_dead_fails(web: HostileWeb, canary: HostileWeb, tmp_path: Path) -> None:
    urls = [f"{web.url}/drip/", f"{web.url}/silent/", canary.url, f"{web.url}/to/canary"]
    links = pa.table({"url": urls, "caption": urls})
    settings = DownloadSettings(
        allow_networks=("127.0.0.2/32",), ports=(web.port,), timeout_seconds=1, max_seconds=2, retries=0
    )
    with pytest.raises(DataError, match=r"0 of 4 links gave an image.* timed out [2-4]"):
        download(links, tmp_path, settings)
    assert not canary.hits and not list(tmp_path.iterdir())


def test_its_lock_names_versions_and_no_place() -> None:
    lines = (ROOT / "img2dataset.lock").read_text().splitlines()
    assert all(re.fullmatch(r"[\w.\-]+==[\w.]+( ;.+)?", line) for line in lines)
    names = {line.split("==")[0] for line in lines}
    assert "img2dataset==1.47.0" in lines and not names & {"dataclasses", "wandb", "torch"}
