"""From `mudg up` to a classifier by `mudg target submit` alone, seen in a browser, and killed at every joint.

One stack serves all tests, which build on each other: a file, so that they run in one process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml

from mudg.ops.stack.running import find_stack
from mudg_core.corpus.demo.targets import TARGETS
from mudg_core.storage.browse import artifacts, resolve
from tasks.report import REPORT
from tests.stack.browser import page
from tests.stack.team import ENDED, WAIT, Team, moment, until
from tests.support.demo_runs import mudg

pytestmark = pytest.mark.timeout(1200)

Made = dict[str, Any]
SHOTS = Path(__file__).parents[2] / "build/screenshots"
TABS = {
    "Task Runs": ["finetune animals", "augment animals"],
    "Artifacts": ["summary-animals", "progress-model-animals"],
    "Logs": ["Completed"],
}
ARTIFACTS = {"summary-animals": "mudg predict", "accuracy-animals": "MUDG", "funnel-animals": "retrieved"}
ANIMALS = {"classes": list(TARGETS[0].classes), "evaluation": "demo:animals"}
MARKET = {"classes": list(TARGETS[2].classes)}  # nothing to evaluate on, so half the tasks
CACHED_SECONDS = 60.0  # the bar; it takes three on an idle machine
STAGE = "model"
LONG = {"settings": {"train": {"iterations": 120}}}  # long enough to be met at work, three times
ENDLESS = {"settings": {"train": {"iterations": 100_000}}}  # ends only if it is stopped


@pytest.fixture(scope="module")
def first(team: Team) -> Made:
    """A target, submitted once there is an index; the schedule has built that, and meanwhile once more."""
    assert scheduled_build(team, 0)["state_type"] == "COMPLETED"
    asked = team.submit("animals", **ANIMALS)
    scheduled_build(team, 1)
    team.end_schedule("build-index")
    assert team.ended(asked["run"])["state_type"] == "COMPLETED"
    return team.command("target", "status", "animals")


def scheduled_build(team: Team, number: int) -> dict[str, Any]:
    """One of the builds that nobody has asked for, once it has ended."""
    run = until(lambda: next(iter(team.runs("build-index")[number:]), None), f"build {number}", 300)
    return team.ended(run["id"])


def test_the_schedule_builds_the_index_and_promotes_it(team: Team, first: Made) -> None:
    """Run by run: the first makes everything, and the next finds nothing to do."""
    assert len(team.command("index", "list")["versions"]) == 1
    again = scheduled_build(team, 1)
    assert {task["state_name"] for task in team.task_runs(again["id"])} == {"Cached"}
    assert "0 computed" in again["state"]["message"]


def test_a_submitted_target_becomes_a_model_and_a_report_on_s3(team: Team, first: Made) -> None:
    assert first["state"] == "Completed" and first["computed"] > 0
    assert set(first["accuracy"]) == {"zero_shot", "nearest_neighbours", "mudg"}
    assert first["report_file"].startswith("s3://mudg/")
    store = team.store
    page = store.link(resolve(store, first["report"]), "report.html")
    answer = httpx.get(page, timeout=30)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    assert "animals" in answer.text
    out = team.folder / "out"
    exported = team.command("model", "export", "animals", str(out))
    assert exported and (out / "open_clip_model.safetensors").is_file()


def test_another_machine_finds_the_index_by_the_address_of_the_store(
    team: Team, first: Made, tmp_path: Path
) -> None:
    done = mudg("search", "a photo of a cat", "--json", cwd=tmp_path, **team.environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(json.loads(done.stdout)["hits"]) == 10


def test_the_same_again_is_cached(team: Team, first: Made) -> None:
    again = team.submit("animals", "--wait", **ANIMALS)
    assert again["run"] != first["run"] and again["classifier"] == first["classifier"]
    assert again["state"] == "Completed" and again["computed"] == 0
    assert Counter(task["state_name"] for task in team.task_runs(again["run"])).keys() == {"Cached"}
    run = team.ended(again["run"])
    took = moment(run["end_time"]) - moment(run["expected_start_time"])
    assert took < CACHED_SECONDS


def test_people_see_progress_tables_and_a_summary(team: Team, first: Made) -> None:
    shown = team.artifacts(first["run"])
    assert {"progress", "table", "markdown"} <= {one["type"] for one in shown}
    by_key = {one["key"]: one["data"] for one in shown}
    assert {"accuracy-animals", "funnel-animals", "warnings-animals", "progress-model-animals"} <= set(by_key)
    summary = by_key["summary-animals"]
    files = ("report.html", "README.md", "dataset.tar", "provenance.parquet")
    assert all(text in summary for text in (first["classifier"], "mudg lineage", *files))


def test_pages_of_the_ui_show_the_run(team: Team, first: Made) -> None:
    """Screenshots stay in build/screenshots, for people to look at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    with page() as seen:
        seen.goto(team.login_url)  # as `mudg up` prints it; from then on every link opens
        seen.wait_for_url("**/dashboard*")
        seen.goto(first["url"])
        seen.get_by_text("build-classifier animals").first.wait_for()
        for tab, expected in TABS.items():
            seen.get_by_text(tab, exact=True).first.click()
            for text in expected:
                seen.get_by_text(text).first.wait_for()
            seen.wait_for_timeout(1000)  # for what is drawn after the text is there
            seen.screenshot(path=SHOTS / f"{tab.lower().replace(' ', '-')}.png")
        shown = {one["key"]: one["id"] for one in team.artifacts(first["run"])}
        for key, expected in ARTIFACTS.items():
            seen.goto(f"{first['url'].partition('/runs/')[0]}/artifacts/artifact/{shown[key]}")
            seen.get_by_text(expected).first.wait_for()
            seen.wait_for_timeout(1000)
            seen.screenshot(path=SHOTS / f"{key}.png")
        seen.goto(team.store.link(resolve(team.store, first["report"]), REPORT))
        seen.get_by_text("animals").first.wait_for()
        seen.screenshot(path=SHOTS / "report.png")


def test_two_targets_at_once_never_share_the_one_gpu_slot(team: Team, first: Made) -> None:
    asked = [team.submit("one", **MARKET, seeds=[0]), team.submit("two", **MARKET, seeds=[1])]
    ended = [team.ended(one["run"]) for one in asked]
    assert [run["state_type"] for run in ended] == ["COMPLETED", "COMPLETED"]
    assert moment(ended[1]["start_time"]) < moment(ended[0]["end_time"]), "they were not at once"
    spans = sorted(
        (moment(task["start_time"]), moment(task["end_time"]))
        for one in asked
        for task in team.task_runs(one["run"])
        if "gpu" in task["tags"] and task["state_name"] != "Cached"
    )
    assert len(spans) > 4
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_a_spec_in_the_inbox_becomes_one_run(team: Team, first: Made) -> None:
    """However often it is uploaded. It asks for what `two` has made, so only what has its name is new: the
    classifier and the report."""
    store, spec = team.store, yaml.safe_dump({"name": "uploaded", **MARKET, "seeds": [1]}).encode()
    for _ in range(2):
        store.objects.put_new("inbox/uploaded.yaml", spec)
        watch_inbox(team)
        assert list(store.objects.list("inbox/")) == []
    run = until(lambda: next(iter(runs_of(team, "uploaded")), None), "its run", 120)
    assert team.ended(run["id"])["state_type"] == "COMPLETED"
    done = team.command("target", "status", "uploaded")
    assert done["computed"] == 2 and done["report_file"].startswith("s3://mudg/")
    asked = Counter(one["name"] for one in team.command("target", "list")["submissions"])
    assert asked["uploaded"] == len(runs_of(team, "uploaded")) == 1


def watch_inbox(team: Team) -> None:
    """One that meets another is cancelled, and that may have looked before the spec was there."""

    def looked() -> bool | None:
        return team.ended(team.start("watch-inbox"))["state_type"] == "COMPLETED" or None

    until(looked, "a look into the inbox", WAIT)


def runs_of(team: Team, target: str) -> list[Made]:
    return [run for run in team.runs("build-classifier") if run["parameters"]["name"] == target]


def started(team: Team, name: str, seed: int, how: Made = LONG) -> str:
    """A run whose student is being trained; its seed makes it another one than all before."""
    run: str = team.submit(name, **MARKET, **how, seeds=[seed])["run"]
    team.await_task(run, STAGE)
    return run


def assert_over(team: Team, run: str) -> None:
    """No task of it is left running, and whatever it committed is whole."""

    def over() -> bool | None:
        return {task["state_type"] for task in team.task_runs(run)} <= ENDED or None

    until(over, f"the end of all tasks of {run}", 180)
    store = team.store
    for manifest in (one for stage in ("model", "dataset", "classifier") for one in artifacts(store, stage)):
        store.verify(manifest.ref)


def test_f01_f13_f16_one_target_outlives_three_kills(team: Team, first: Made) -> None:
    """Of its flow, of the worker and of the server, each while its student is trained."""
    run = started(team, "killed", 11)
    kill_the_flow(team, run)
    again = started(team, "killed", 11)
    killed = kill_the_worker(team)
    team.await_task(again, STAGE, since=killed)
    kill_the_server(team)
    ended = team.ended(again)
    assert ended["state_type"] == "COMPLETED", ended["state"]["message"]
    assert_over(team, again)
    cached = {task["name"].split()[0] for task in team.task_runs(again) if task["state_name"] == "Cached"}
    assert {"augment", "search", "label", "select", "fetch"} <= cached


def kill_the_flow(team: Team, run: str) -> None:
    process = team.process_of(run)
    assert process is not None
    process.kill()
    assert team.ended(run)["state_type"] == "CRASHED"
    assert_over(team, run)


def kill_the_worker(team: Team) -> float:
    """The one that trains, as the other has nothing to do. Returns when that was."""
    workers = psutil.Process(team.pid("dask-workers")).children(recursive=True)
    before = seconds_used(workers)
    time.sleep(1)
    used = {worker: now - before[worker] for worker, now in seconds_used(before).items()}
    max(used, key=lambda worker: used[worker]).kill()
    return time.time()


def seconds_used(processes: Iterable[psutil.Process]) -> dict[psutil.Process, float]:
    """CPU time of those that are still there."""
    used = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            used[process] = sum(process.cpu_times()[:2])
    return used


def test_a_process_that_has_ended_has_used_nothing() -> None:
    with subprocess.Popen(["sleep", "600"]) as ended:
        gone = psutil.Process(ended.pid)
        ended.kill()
    assert set(seconds_used([gone, psutil.Process()])) == {psutil.Process()}


def kill_the_server(team: Team) -> None:
    os.kill(team.pid("prefect-server"), signal.SIGKILL)
    time.sleep(10)
    assert team.command("up")["started"] == ["prefect-server"]


def test_f14_a_cancelled_run_stops_and_leaves_nothing_half_done(team: Team, first: Made) -> None:
    run = started(team, "cancelled", 14, ENDLESS)
    assert team.command("target", "cancel", "cancelled")["name"] == "cancelled"
    assert team.ended(run)["state_type"] == "CANCELLED"
    until(lambda: team.process_of(run) is None or None, "the end of its process", 60)
    assert_over(team, run)


def test_f75_secrets_of_the_stack_are_in_no_log_database_object_or_command_line(
    team: Team, first: Made
) -> None:
    """After builds, a submission, kills and a cancelled run: only the files that are there for secrets have
    them, and those are the owner's alone."""
    stack = find_stack(team.folder / ".mudg/stack")
    assert stack is not None
    key = stack.folder / "tls/key.pem"
    private = (stack.folder / "keys.json", stack.folder / "env", key)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (stack.folder, *private))
    keys = (stack.keys.secret, stack.keys.internal, stack.auth[1], key.read_text().splitlines()[1])
    secrets = [secret.encode() for secret in keys]
    files = [path for path in stack.folder.rglob("*") if path.is_file() and path not in private]
    leaks = [str(path) for path in files if any(secret in path.read_bytes() for secret in secrets)]
    objects = team.store.objects
    stored = [path for path in objects.list("") if not path.endswith("/")]
    leaks += [path for path in stored if any(one in (objects.read(path) or (b"",))[0] for one in secrets)]
    lines = [line.encode() for line in team.processes()]
    assert len(files) > 20 and len(stored) > 50 and len(lines) >= 6
    assert leaks == [] and not any(secret in line for line in lines for secret in secrets)


def test_nothing_is_left_running(team: Team, first: Made) -> None:
    runs = team.runs("build-classifier")
    tasks = [task for run in runs for task in team.task_runs(run["id"])]
    assert {run["state_type"] for run in runs} <= ENDED
    assert {task["state_type"] for task in tasks} <= ENDED


def test_down_ends_what_up_has_started_and_nothing_else(team: Team, first: Made) -> None:
    with subprocess.Popen(["sleep", "600"], cwd=team.folder) as bystander:
        try:
            assert len(team.processes()) >= 6  # server, store, scheduler, two workers, the one for flows
            assert "prefect-server" in team.command("down")["ended"]
            assert team.processes() == []
            assert bystander.poll() is None
        finally:
            bystander.kill()
