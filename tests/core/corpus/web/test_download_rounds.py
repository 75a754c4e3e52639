"""What download makes of img2dataset's results, whatever they are. A stand-in gives these at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mudg_core.corpus.shards import PARQUET_SCHEMA, read_shard
from mudg_core.corpus.web import img2dataset, rounds
from mudg_core.corpus.web.download import download
from mudg_core.errors import DataError, InputError, OrchestrationError, SettingsError
from mudg_core.retries import web_links
from mudg_core.settings import DownloadSettings
from tests.support import fake_img2dataset

FAKE = "http://fake.example"


def links_to(*paths: str, **columns: list[Any]) -> pa.Table:
    urls = [f"{FAKE}/{path}" for path in paths]
    return pa.table({"url": urls, "caption": [f"caption of {path}" for path in paths], **columns})


@pytest.fixture
def settings(tmp_path: Path) -> DownloadSettings:
    (tmp_path / "fake").mkdir()
    command = fake_img2dataset.install(tmp_path / "fake")
    return DownloadSettings(command=command, backoff_seconds=0, min_yield=0)


def calls(tmp_path: Path) -> list[dict[str, Any]]:
    return fake_img2dataset.calls(tmp_path / "fake")


def script(folder: Path, text: str) -> str:
    command = folder / "command"
    command.write_text(f"#!/bin/sh\n{text}\n")
    command.chmod(0o755)
    return str(command)


def test_same_answers_same_bytes(tmp_path: Path, settings: DownloadSettings) -> None:
    colors = ["red", "green", "blue", "white", "black", "lime"] * 4
    links = links_to(*(f"ok/{color}" for color in colors), "fail/HTTP%20Error%20404:%20Gone", "lost")
    for name in ("a", "b"):
        download(links, tmp_path / name, settings)
    assert [path.name for path in sorted((tmp_path / "a").iterdir())] == ["shard.parquet", "shard.tar"]
    for name in ("shard.tar", "shard.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert [sample.url for sample in read_shard(tmp_path / "a/shard.tar")] == links["url"].to_pylist()[:-2]


def test_whoever_waits_is_told_and_can_end_it(
    tmp_path: Path, settings: DownloadSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an error, as this call does not end of itself."""
    monkeypatch.setattr(img2dataset, "TICK_SECONDS", 0.01)
    shares = list[float]()

    def told(share: float) -> None:
        shares.append(share)
        if len(shares) == 3:
            raise DataError(what="nobody wants it")

    command = script(tmp_path, "exec sleep 600")
    with pytest.raises(DataError, match="nobody wants it"):
        download(links_to("ok/red"), tmp_path / "out", settings.model_copy(update={"command": command}), told)
    assert shares == [0, 0, 0]


def test_the_share_that_is_done_is_of_all_links_that_were_requested_so_far() -> None:
    progress = rounds.Progress(requested=10)
    assert [progress.share(ended) for ended in (0, 5, 10, 13)] == [0, 0.5, 1, 1]
    progress.requested += 5  # a second round
    assert progress.share(10) == 10 / 15 and rounds.Progress().share(0) == 0


def test_rows_keep_their_places(tmp_path: Path, settings: DownloadSettings) -> None:
    links = links_to("ok/red", "fail/HTTP%20Error%20410:%20x", "ok/blue", "lost", opt_out=[None, 0, 0, 0])
    done = download(links, tmp_path / "out", settings)
    table = pq.read_table(tmp_path / "out/shard.parquet")
    assert table.schema.equals(PARQUET_SCHEMA)
    assert table["key"].to_pylist() == ["000000000", "000000001", "000000002", "000000003"]
    assert table["error_message"].to_pylist() == [None, "HTTP 410", None, "no result"]
    assert table["status"].to_pylist() == ["success", "failed_to_download"] * 2
    assert (table["width"].to_pylist(), table["caption"][2].as_py()) == ([8, None] * 2, "caption of ok/blue")
    assert (done.rows, done.images, done.image_share, done.rounds) == (4, 2, 0.5, 1)
    assert done.reasons == {"HTTP 410": 1, "no result": 1}


def test_only_failures_that_may_pass_are_asked_again(
    tmp_path: Path, settings: DownloadSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("mudg_core.corpus.web.rounds.sleep", slept.append)
    links = links_to(
        "ok/red", "passing/a", "fail/hash%20mismatch", "passing/b", "fail/HTTP%20Error%20500:%20x"
    )
    done = download(
        links, tmp_path / "out", settings.model_copy(update={"retries": 3, "backoff_seconds": 10})
    )
    asked = [[url.removeprefix(f"{FAKE}/") for url in call["urls"]] for call in calls(tmp_path)]
    server_error = "fail/HTTP%20Error%20500:%20x"
    assert asked[1:] == [["passing/a", "passing/b", server_error], [server_error], [server_error]]
    assert (done.images, done.rounds) == (3, 4)
    assert done.reasons == {"HTTP 5xx": 1, "hash mismatch": 1}
    assert all(5 * 2**n <= pause <= 15 * 2**n for n, pause in enumerate(slept)) and len(slept) == 3


def test_pauses_differ_between_shards_and_not_between_runs() -> None:
    one, other = (rounds.pause(1, [0], links_to(name), 30.0) for name in ("a", "b"))
    assert one != other and one == rounds.pause(1, [0], links_to("a"), 30.0)
    assert rounds.pause(10, [0], links_to("a"), 600.0) == web_links(10, 600.0).max_seconds == 600


def test_hashes_are_verified_where_there_are_any(tmp_path: Path, settings: DownloadSettings) -> None:
    sha256, md5 = ["A" * 64, None, None, "b" * 64], [None, "c" * 32, None, "d" * 32]
    links = links_to(*["ok/red"] * 4, sha256=sha256, md5=md5)
    assert download(links, tmp_path / "out", settings).images == 4
    options = [call["options"] for call in calls(tmp_path)]
    assert [option["verify_hash"] for option in options] == [["sha256", "sha256"], ["md5", "md5"], None]
    assert [option["compute_hash"] for option in options] == ["sha256", "md5", "sha256"]
    assert [len(call["urls"]) for call in calls(tmp_path)] == [2, 1, 1]


def test_what_img2dataset_is_told(
    tmp_path: Path, settings: DownloadSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "no_proxy", "NO_PROXY", "PYTHONHOME", "REQUEST_METHOD"):
        monkeypatch.setenv(name, "*")
    changed = {
        "user_agent": "None",
        "opt_out_directives": ("noai", "noindex"),
    }
    download(links_to("ok/red"), tmp_path / "out", settings.model_copy(update=changed))
    (call,) = calls(tmp_path)
    environment, options = call["environment"], call["options"]
    assert not {"AWS_SECRET_ACCESS_KEY", "no_proxy", "NO_PROXY", "PYTHONHOME", "REQUEST_METHOD"} & set(
        environment
    )
    proxies = {environment[f"{scheme}_proxy"] for scheme in ("http", "https", "ftp", "all")}
    proxies |= {environment[f"{scheme}_PROXY"] for scheme in ("HTTP", "HTTPS", "FTP", "ALL")}
    assert len(proxies) == 1 and proxies.pop().startswith("http://127.0.0.1:")
    assert environment["NO_ALBUMENTATIONS_UPDATE"] == environment["DO_NOT_TRACK"] == "1"
    assert environment["WANDB_MODE"] == "disabled" and options["enable_wandb"] is False
    assert environment["HOME"].startswith(str(tmp_path / "out"))
    assert options["user_agent_token"] == "None"
    assert options["disallowed_header_directives"] == ["noai", "noindex"]
    assert options["retries"] == 0


def test_f82_img2dataset_decodes_nothing(tmp_path: Path, settings: DownloadSettings) -> None:
    download(links_to("ok/red"), tmp_path / "out", settings)
    (call,) = calls(tmp_path)
    options = call["options"]
    assert (options["disable_all_reencoding"], options["resize_mode"]) == (True, "no")
    assert options["extract_exif"] is False


def test_f82_the_deadline_blames_rows_that_were_late_and_keeps_the_others(
    tmp_path: Path, settings: DownloadSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only those are asked again, and what was there in time is not fetched a second time."""
    monkeypatch.setattr(img2dataset, "time_limit", lambda *_: 6.0)
    links = links_to("ok/red", "hang", *["ok/blue"] * 18)
    done = download(links, tmp_path / "out", settings.model_copy(update={"retries": 1}))
    assert done.images == 19 and done.reasons.keys() <= {"timed out", "no result"}
    assert [len(call["urls"]) for call in calls(tmp_path)] == [20, 1]


def test_f82_a_large_list_is_fetched_in_several_calls(
    tmp_path: Path, settings: DownloadSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "ROWS_PER_CALL", 2)
    done = download(links_to(*["ok/red"] * 5), tmp_path / "out", settings)
    assert done.images == 5 and [len(call["urls"]) for call in calls(tmp_path)] == [2, 2, 1]


def test_f60_links_that_are_not_for_the_web_never_reach_img2dataset(
    tmp_path: Path, settings: DownloadSettings
) -> None:
    urls = ["file:///etc/passwd", "ftp://h/x", "data:image/png;base64,AA", f"{FAKE}/ok/red", None, ""]
    urls += [
        " http://h/x",
        "http://h/\nx",
        "http://u:p@h/x",
        "http://h/" + "x" * 2000,
        "http:///x",
        "<URL:http://h/>",
    ]
    urls += ["http://h:0/", "http://h:99999/", "http://[::1/", "http://h/ü", f"{FAKE}/ok/blue"]
    links = pa.table(
        {"url": urls, "caption": ["x"] * len(urls), "opt_out": [False] * (len(urls) - 1) + [True]}
    )
    done = download(links, tmp_path / "out", settings)
    assert [call["urls"] for call in calls(tmp_path)] == [[f"{FAKE}/ok/red"]]
    assert done.reasons == {
        "opted out": 1,
        "refused: credentials": 1,
        "refused: malformed url": 8,
        "refused: scheme": 5,
        "refused: url too long": 1,
    }
    assert pq.read_table(tmp_path / "out/shard.parquet").num_rows == len(urls)


def test_f69_all_links_dead_fails_and_says_why(tmp_path: Path, settings: DownloadSettings) -> None:
    dead = ["fail/HTTP%20Error%20404:%20x"] * 8 + [
        "fail/HTTP%20Error%20502:%20mudg%20could%20not:%20dead%20host"
    ] * 2
    with pytest.raises(DataError, match=r"0 of 10 links .* fewer than 20%: HTTP 404 8, dead host 2"):
        download(
            links_to(*dead), tmp_path / "out", settings.model_copy(update={"min_yield": 0.2, "retries": 0})
        )
    assert not list((tmp_path / "out").iterdir())


def test_f69_a_third_of_the_links_dead_succeeds_and_reports(
    tmp_path: Path, settings: DownloadSettings
) -> None:
    links = links_to(*["ok/red"] * 7, *["fail/HTTP%20Error%20404:%20x"] * 3)
    done = download(links, tmp_path / "out", settings.model_copy(update={"min_yield": 0.7}))
    assert (done.image_share, done.reasons) == (0.7, {"HTTP 404": 3})


def test_nothing_to_fetch_starts_nothing(tmp_path: Path, settings: DownloadSettings) -> None:
    links = pa.table({"url": ["file:///etc/passwd"], "caption": [None]})
    done = download(links, tmp_path / "out", settings.model_copy(update={"command": "/nowhere/img2dataset"}))
    assert (done.images, done.rounds, done.reasons) == (0, 0, {"refused: scheme": 1})


@pytest.mark.parametrize("links", [pa.table({"url": ["http://h/"]}), pa.table({"url": [], "caption": []})])
def test_unusable_tables_are_refused(links: pa.Table, tmp_path: Path, settings: DownloadSettings) -> None:
    with pytest.raises(InputError):
        download(links, tmp_path / "out", settings)


def test_a_missing_img2dataset_says_how_to_get_it(tmp_path: Path, settings: DownloadSettings) -> None:
    with pytest.raises(SettingsError, match="make setup"):
        download(links_to("ok/red"), tmp_path / "out", settings.model_copy(update={"command": "/nowhere/x"}))


@pytest.mark.parametrize("code", [3, 0])
def test_a_failing_img2dataset_is_quoted(tmp_path: Path, settings: DownloadSettings, code: int) -> None:
    """It ends with 0 even when its disk was full; then its statistics are missing."""
    command = script(tmp_path, f"echo No space left on device >&2; exit {code}")
    with pytest.raises(OrchestrationError, match=rf"exit code {code}.*\n.*No space left on device"):
        download(links_to("ok/red"), tmp_path / "out", settings.model_copy(update={"command": command}))
    assert not list((tmp_path / "out").iterdir())


def test_f34_a_full_disk_leaves_nothing_behind(
    tmp_path: Path, settings: DownloadSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mudg_core.corpus.web.download.read_places", full)
    with pytest.raises(OrchestrationError, match="No space left"):
        download(links_to("ok/red"), tmp_path / "out", settings)
    assert not list((tmp_path / "out").iterdir())


def test_an_endless_img2dataset_is_ended(
    tmp_path: Path, settings: DownloadSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(img2dataset, "time_limit", lambda *_: 0.5)
    command = script(tmp_path, "echo busy; sleep 1000 & sleep 1000")
    with pytest.raises(OrchestrationError, match="was not done after 0 s"):
        download(links_to("ok/red"), tmp_path / "out", settings.model_copy(update={"command": command}))


def test_the_time_limit_covers_the_slowest_case() -> None:
    settings = DownloadSettings(threads=10, max_seconds=60)
    assert img2dataset.time_limit(101, settings) >= 11 * 60 + img2dataset.START_SECONDS
