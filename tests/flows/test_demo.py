"""The whole pipeline with real Prefect and real Dask, through the command a user types."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.build_index import build_index
from flows.demo import DEMO_SETTINGS
from mudg_core.settings import load_settings
from tasks.executors.in_process import InProcess
from tasks.run import executing
from tests.support.demo_runs import (
    ASKED_TWICE,
    FLAGS,
    MUDG,
    demo,
    digests,
    environment,
    mudg,
    task_states,
    ui_artifacts,
)
from tests.support.kernels import environments
from tests.support.other_systems import without_linux
from tests.support.places import Place, here

pytestmark = pytest.mark.timeout(1200)  # whole runs of the pipeline, on a machine that may be busy


TWO_WORKERS = ("--set", "compute.workers=2")
ON_SERVERS = ("--set", "compute.executor=prefect-dask", *TWO_WORKERS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="module")
def first(folder: Path, elsewhere: Path) -> dict[str, Any]:
    """As on a system without the calls that only Linux has."""
    return demo(folder, *ON_SERVERS, **without_linux(elsewhere))


def test_no_process_of_the_demo_needs_what_only_linux_has(first: dict[str, Any], elsewhere: Path) -> None:
    """The command itself, its Prefect server, the scheduler's nannies and two workers: all did without."""
    assert first["computed"] > 0
    assert len(list(elsewhere.glob("process-*"))) >= 4


def test_result_has_what_the_readme_promises(first: dict[str, Any]) -> None:
    for arm in ("zero_shot", "nearest_neighbours", "mudg"):
        assert set(first[arm]) == {"mean", "std", "domains"}
        assert len(first[arm]["domains"]) == 4
        assert 0 <= first[arm]["mean"] <= 100
    assert first["seeds"] == 1
    assert first["computed"] == len(_stages(first)) > 0
    assert first["cached"] == ASKED_TWICE
    assert {"corpus-shard", "embedding-shard", "centroids", "index", "model", "report"} <= set(
        first["seconds"]
    )
    assert Path(first["report"]).stat().st_size > 10_000


def _stages(result: dict[str, Any]) -> dict[str, str]:
    return digests(Path(result["report"]).parents[2])


def test_report_names_every_class_and_loads_nothing(first: dict[str, Any]) -> None:
    page = Path(first["report"]).read_text()
    seen: list[tuple[str, str]] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            seen.extend((tag, value or "") for name, value in attrs if name == "src")

    Links().feed(page)
    assert seen and all(value.startswith("data:") for _, value in seen)
    assert all(name in page for name in ("giraffe", "shark", "penguin"))


def test_the_ui_shows_tables_a_summary_and_where_the_report_is(first: dict[str, Any], folder: Path) -> None:
    shown = ui_artifacts(folder)
    funnel = {row["class"]: row for row in shown["funnel-animals"]}
    assert {"giraffe", "shark", "penguin"} < set(funnel)
    assert all(
        row["retrieved"] >= row["labelled"] >= row["kept"] <= row["selected"] for row in funnel.values()
    )
    accuracy = {row["accuracy, %"]: row for row in shown["accuracy-animals"]}
    assert accuracy["MUDG"].items() >= first["mudg"]["domains"].items()
    assert shown["recall"][0]["probes"] == 16 and sum(row["rows"] for row in shown["embedded"]) > 500
    assert f"{first['computed']} computed" in shown["summary-demo"]
    summary = shown["summary-animals"]
    for part in (
        "mudg predict animals IMAGES",
        "gate, without labels",
        "mudg lineage classifier/",
        "- train.",
    ):
        assert part in summary
    address = shown["report-animals"].split("`")[1]
    assert Path(address.removeprefix("file://")).read_bytes() == Path(first["report"]).read_bytes()


def test_second_run_computes_nothing(first: dict[str, Any], folder: Path) -> None:
    before = digests(folder)
    shown = task_states(folder)
    assert shown == {"Completed": shown["Completed"], "Cached": ASKED_TWICE}
    again = demo(folder, *ON_SERVERS)  # as many tasks as before
    assert again["computed"] == 0
    cached = shown["Completed"] + 2 * ASKED_TWICE
    assert task_states(folder) == {"Completed": shown["Completed"], "Cached": cached}
    assert again["cached"] == first["computed"] + ASKED_TWICE
    assert again["mudg"] == first["mudg"]
    assert digests(folder) == before


def test_processes_and_threads_of_one_machine_make_the_same(
    first: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    """No server; a thread of this process makes the index, and two processes what is left, without what only
    Linux has."""
    threads = tmp_path / "threads"
    threads.mkdir()
    with executing(InProcess()):
        build_index(load_settings(overrides=tree_of(FLAGS) | stored_in(threads), environ={}))
    of_index = digests(threads)
    assert of_index.items() <= digests(folder).items() and of_index
    made = demo(threads, *TWO_WORKERS, **without_linux(tmp_path))
    assert len(list(tmp_path.glob("process-*"))) >= 3
    assert made["mudg"] == first["mudg"] and digests(threads) == digests(folder)
    assert not (threads / ".mudg/prefect").exists()


def tree_of(flags: list[str]) -> dict[str, Any]:
    tree: dict[str, Any] = yaml.safe_load(DEMO_SETTINGS.read_text())
    for change in flags[1::2]:
        path, value = change.split("=")
        area, name = path.split(".")
        tree.setdefault(area, {})[name] = yaml.safe_load(value)
    return tree


def stored_in(folder: Path) -> dict[str, Any]:
    return {"storage": {"url": f"file://{folder}/.mudg", "cache_dir": str(folder / ".mudg/cache")}}


def test_f19_f29_a_damaged_artifact_is_made_again_and_nothing_else(
    first: dict[str, Any], folder: Path, servers: Place
) -> None:
    """Even though Prefect's database and results are lost, and another server knows of no run: manifests
    alone say what is done."""
    before, tasks = digests(folder), task_states(folder)["Completed"] + ASKED_TWICE
    shutil.rmtree(folder / ".mudg/prefect")
    (part,) = folder.glob(".mudg/artifacts/index-part/*/attempts/*/part.faiss")
    part.chmod(0o600)
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(bytes(data))
    assert "ChecksumError" in here(folder, "search", "a photo of a cat", ends=3).stderr
    known = task_states(servers.folder)
    assert replace(servers, folder=folder, flags=FLAGS).run("demo", *TWO_WORKERS)["computed"] == 1
    assert digests(folder) == before
    deadline = time.monotonic() + 60
    while (shown := task_states(servers.folder) - known)["Completed"] + shown["Cached"] < tasks:
        assert time.monotonic() < deadline, shown  # a server that goes on writes them a moment later
        time.sleep(0.1)
    assert shown == {"Completed": 1, "Cached": tasks - 1}


def test_search_and_show(first: dict[str, Any], folder: Path) -> None:
    found = here(folder, "search", "a photo of a cat", "-n", "5", "--save", "cats.png")
    assert len(found.stdout.strip().splitlines()) == 6
    assert (folder / "cats.png").stat().st_size > 1000
    shown = here(folder, "show", "index-current", "--verify")
    assert '"variant"' in shown.stdout and "embedding-shard/" in shown.stdout


@pytest.mark.slow
def test_f55_same_seed_same_digests_elsewhere_after_sigkill(
    first: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    """Killed in the middle, resumed, with other workers: byte for byte what was made elsewhere."""
    process = subprocess.Popen(
        [MUDG, "demo", "--json", *FLAGS],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 500
    while not any(stage.startswith("embedding-shard/") for stage in digests(tmp_path)):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    children = _children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    _assert_gone(children)
    left = digests(tmp_path)
    resumed = demo(tmp_path)
    assert resumed["cached"] >= len(left) > 0
    assert resumed["computed"] > 0
    assert digests(tmp_path) == digests(folder)
    assert resumed["mudg"] == first["mudg"]


def _children(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        for path in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in path.read_text().split()]
    return found[1:]


def _assert_gone(pids: list[int]) -> None:
    """Neither the private server nor a worker may outlive the run that started it."""
    deadline = time.monotonic() + 30
    while alive := [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()]:
        assert time.monotonic() < deadline, f"still running: {alive}"
        time.sleep(0.1)


@pytest.mark.slow
def test_compare_computes_only_what_the_demo_has_not(first: dict[str, Any], folder: Path) -> None:
    before = _models(folder)
    rows = "waffle-words,mudg,nearest-neighbours,tip-adapter,tip-x,index-kmeans,few-shot"
    done = mudg("compare", "demo:animals", "--rows", rows, "--json", *FLAGS, *TWO_WORKERS, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.strip().splitlines()[-1])
    (table,) = result["comparisons"]
    found = {row["name"]: row for row in table["rows"]}
    assert set(found) == {"zero-shot", *rows.split(",")}
    for name in ("zero-shot", "nearest-neighbours", "mudg"):
        arm = name.replace("-", "_")
        assert found[name]["mean"] == pytest.approx(first[arm]["mean"], abs=0.011)
        assert set(found[name]["domains"]) == set(first[arm]["domains"])
    assert len(_models(folder) - before) == 2  # few-shot and index-kmeans: the others were there
    assert found["few-shot"]["accuracy"]["low"] <= found["few-shot"]["accuracy"]["high"]
    assert found["zero-shot"]["method_gain"]["mean"] == pytest.approx(
        found["mudg"]["accuracy"]["mean"] - found["zero-shot"]["accuracy"]["mean"]
    )
    assert "few-shot" in Path(result["report"]).read_text()


def _models(folder: Path) -> set[str]:
    return {name for name in digests(folder) if name.startswith("model/")}


@pytest.mark.slow
def test_f97_a_demo_has_the_same_digests_under_every_openblas_kernel(tmp_path: Path) -> None:
    """Index, training set and all else, but for the map of images, whose places are floats, and the report
    that draws it. torch has kernels of its own, left alone here: it computes floats, and those may differ.
    """
    cores = {variables.get("OPENBLAS_CORETYPE", "") for variables in environments().values()}
    found = {}
    for core in sorted(cores):
        (home := tmp_path / f"home-{core}").mkdir()
        demo(home, OPENBLAS_CORETYPE=core)
        drawn = ("map/", "report/")
        found[core] = {name: own for name, own in digests(home).items() if not name.startswith(drawn)}
    first = next(iter(found.values()))
    assert any(name.startswith("dataset/") for name in first)
    assert all(other == first for other in found.values())
