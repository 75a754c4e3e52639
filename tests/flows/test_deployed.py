"""Deployed flows: the worker's settings and cluster, and a submission that one run has."""

from __future__ import annotations

import json
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prefect import flow

import flows.build_classifier
import flows.watch_inbox
from deployments import flows as deployed
from deployments.on_prefect import run_stages
from deployments.worker import worker_settings
from mudg_core.errors import DataError, MudgError, SettingsError
from mudg_core.evaluate.gate import VERDICT
from mudg_core.settings import ComputeSettings, Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe
from mudg_core.target.spec import parse_target
from mudg_core.target.submissions import Submission, Submissions
from tasks.executors import prefect_dask
from tasks.executors.session import _ending_in_order
from tasks.flow import Flow
from tests.support.places import Place
from tests.support.tiny import tiny_flow

SPEC = b"name: zoo\nclasses: [cat, dog]\n"


def stand_in(function: Callable[..., Any]) -> Flow[..., Any]:
    """In the place of one of our flows; it leaves no summary."""
    return Flow("stand-in", "", lambda *_: "stand-in", function)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    """The store of a worker whose environment names it; runs have a folder of their own."""
    monkeypatch.setenv("MUDG_STORAGE__URL", f"file://{tmp_path}/store")
    monkeypatch.setenv("MUDG_STORAGE__CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    return ArtifactStore(worker_settings().storage)


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch, servers: Place) -> list[str]:
    """What happens to clusters of runs; all are the one that tests share."""
    seen: list[str] = []

    @contextmanager
    def scheduler(compute: ComputeSettings) -> Iterator[str]:
        seen.append(f"started with {compute.workers}")
        try:
            yield servers.dask
        finally:
            seen.append("ended")

    monkeypatch.setattr(prefect_dask, "scheduler", scheduler)
    monkeypatch.setenv("MUDG_COMPUTE__WORKERS", "7")
    return seen


def test_the_environment_decides_then_the_run(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.yaml").write_text("index: {cells: 99, iterations: 3}\ncompute: {workers: 5}\n")
    monkeypatch.setenv("MUDG_SETTINGS_FILE", str(tmp_path / "settings.yaml"))
    monkeypatch.setenv("MUDG_INDEX__ITERATIONS", "4")
    settings = worker_settings({"index": {"seed": 5}, "profile": "paper"})
    assert (settings.index.cells, settings.index.iterations, settings.index.seed) == (99, 4, 5)
    assert settings.compute.workers == 5 and settings.profile == "paper"
    assert settings.storage.url == f"file://{tmp_path}/store"


@pytest.mark.parametrize("area", ["storage", "compute"])
def test_a_run_cannot_change_what_is_the_workers(store: ArtifactStore, area: str) -> None:
    with pytest.raises(SettingsError, match=f"settings.{area} is the worker's own"):
        worker_settings({area: {}})
    with pytest.raises(SettingsError, match="parameter `settings` of the run"):
        worker_settings({"index": {"colour": "red"}})


@pytest.mark.parametrize(("name", "value"), [("URL", "file://.mudg"), ("CACHE_DIR", ".mudg/cache")])
def test_nothing_is_made_in_a_folder_that_goes_with_the_run(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"MUDG_STORAGE__{name}", value)
    with pytest.raises(SettingsError, match=f"MUDG_STORAGE__{name}"):
        worker_settings()


def test_the_cluster_starts_for_the_first_task_and_ends_with_the_run(
    store: ArtifactStore, clusters: list[str]
) -> None:
    @flow(persist_result=False)
    def computing(numbers: list[int]) -> list[str]:
        assert clusters == []
        return run_stages(tiny_flow, worker_settings(), numbers)

    assert computing([]) == [] and clusters == []
    made = computing([1, 2])
    assert len(made) == 2 and clusters == ["started with 7", "ended"]
    clusters.clear()
    assert computing([1, 2]) == made and clusters == []


def test_a_sigterm_ends_the_cluster_in_order(store: ArtifactStore, clusters: list[str]) -> None:
    def terminated(settings: Settings) -> None:
        tiny_flow(settings, [1])
        os.kill(os.getpid(), signal.SIGTERM)

    @flow(persist_result=False)
    def ending() -> None:
        run_stages(stand_in(terminated), worker_settings())

    with pytest.raises(SystemExit) as caught, _ending_in_order():
        ending()
    assert caught.value.code == 143 and clusters == ["started with 7", "ended"]


def submitted(store: ArtifactStore) -> tuple[Submissions, Submission]:
    desk = Submissions(store.objects)
    return desk, desk.add(parse_target(SPEC), SPEC, "command")


def report(store: ArtifactStore) -> ArtifactRef:
    def make(folder: Path) -> Facts:
        (folder / "report.html").write_text("<p>")
        (folder / VERDICT).write_text(json.dumps({"reasons": ["it is not better", "by far"]}))
        return Facts({"warnings": {"zoo": [{"message": "there is no yeti"}]}})

    return store.build(Recipe(stage="report", algorithm=1), make)


def test_a_run_claims_its_submission_and_leaves_what_it_has_made(
    store: ArtifactStore, servers: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, mine = submitted(store)
    asked: list[Any] = []

    def build(settings: Any, target: Any) -> Any:
        assert desk.read("zoo", mine.id).run
        asked.append((target, settings.train.iterations))
        page = report(store)
        return SimpleNamespace(
            target=target, scores=[], records=[], classifier=page, report=page, verdicts=[page]
        )

    monkeypatch.setattr(flows.build_classifier, "build_classifier", stand_in(build))
    arguments: dict[str, Any] = {"name": "zoo", "submission": mine.id}
    done = deployed.build_classifier(**arguments, settings={"train": {"iterations": 9}}, return_state=True)
    assert done.is_completed() and "0 computed" in str(done.message) and asked == [(mine.target, 9)]
    outcome = desk.read("zoo", mine.id).outcome or {}
    assert str(outcome["classifier"]).startswith("report/") and str(outcome["report_file"]).startswith("file")
    assert (outcome["gate"], outcome["warnings"]) == (["it is not better"], ["there is no yeti"])
    second = deployed.build_classifier(**arguments, return_state=True)
    assert (second.name, second.is_completed()) == ("AlreadyRunning", True) and len(asked) == 1
    assert desk.read("zoo", mine.id).run in str(second.message)


def test_f81_a_run_refuses_a_submission_that_names_a_path_of_the_worker(
    store: ArtifactStore, servers: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """However it came into the store, and before anything is read; not if the operator allows the folder."""
    tried: list[Any] = []

    def build(settings: Any, target: Any) -> Any:
        tried.append(target.settings["augment"]["descriptors"])
        raise DataError(what=f"it was built with {Path(tried[-1]).read_text()}")

    monkeypatch.setattr(flows.build_classifier, "build_classifier", stand_in(build))
    (tmp_path / "secret").write_text("the worker's own")
    target = parse_target(SPEC).model_copy(
        update={"settings": {"augment": {"descriptors": f"{tmp_path}/secret"}}}
    )
    desk = Submissions(store.objects)

    def run(files: dict[str, str]) -> str:
        mine = desk.add(target, SPEC, "command", files=files)
        return str(deployed.build_classifier("zoo", mine.id, return_state=True).message)

    assert "names a path of the worker" in run({}) and not tried
    assert "built with handed in" in run({"descriptors": "handed in"})
    assert "names a path of the worker" in run({"prompts": "handed in"}) and len(tried) == 1
    monkeypatch.setenv("MUDG_TARGET__ALLOWED_PATHS", f"[{tmp_path}]")
    assert "built with the worker's own" in run({})


@pytest.mark.parametrize(
    "changes",
    [
        {"target": {"allowed_paths": ["/"]}},
        {"download": {"command": "/bin/sh"}},
        {"download": {"allow_networks": ["127.0.0.0/8"]}},
        {"augment": {"descriptors": "/etc/hostname"}},
        {"train": {"model": "local-dir:/data/model"}},
        {"evaluate": {"source": "/data/images"}},
    ],
)
def test_f81_parameters_of_a_run_name_no_path_or_program_either(
    changes: dict[str, Any], store: ArtifactStore
) -> None:
    with pytest.raises(MudgError, match="worker"):
        worker_settings(changes)


def test_a_run_builds_what_a_dead_one_had_claimed(
    store: ArtifactStore, servers: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state in Prefect is what counts: this one there has never been."""
    desk, mine = submitted(store)
    dead = desk.claim("zoo", mine.id, str(uuid.uuid4())).run

    def build(settings: Any, target: Any) -> Any:
        raise DataError(what="it was built")

    monkeypatch.setattr(flows.build_classifier, "build_classifier", stand_in(build))
    done = deployed.build_classifier("zoo", mine.id, return_state=True)
    assert done.is_failed() and "it was built" in str(done.message)
    assert desk.read("zoo", mine.id).run not in ("", dead)


def test_a_run_of_a_cancelled_submission_does_nothing(
    store: ArtifactStore, servers: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, mine = submitted(store)
    desk.cancel("zoo", mine.id)
    monkeypatch.setattr(flows.build_classifier, "build_classifier", None)
    done = deployed.build_classifier("zoo", mine.id, return_state=True)
    assert done.is_cancelled() and desk.read("zoo", mine.id).run == ""


def test_the_inbox_is_watched_and_garbage_collected(store: ArtifactStore, servers: Place) -> None:
    store.objects.put_new("inbox/zoo.yaml", SPEC)
    store.objects.put_new("inbox/bad.yaml", b"")
    done: Any = deployed.watch_inbox()
    assert (done["submitted"], done["refused"]) == (1, 1) and list(store.objects.list("inbox/")) == []
    [one] = Submissions(store.objects).newest(9)
    assert one.announced is not None
    kept: Any = deployed.collect_garbage({"gc": {"grace_hours": 1}}, dry_run=True)
    assert kept["keep"]["count"] == 2 and kept["delete"]["count"] == 0


@pytest.mark.timeout(300, method="thread")  # the alarm is Prefect's here, as in the process of a run
def test_a_look_into_the_inbox_that_hangs_ends_before_the_next_is_due(
    store: ArtifactStore, servers: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else no other would ever be let in: prefect.yaml cancels those that meet it."""
    assert deployed.watch_inbox.timeout_seconds == deployed.WATCH_SECONDS < 300
    hang = stand_in(lambda *_: threading.Event().wait())
    monkeypatch.setattr(flows.watch_inbox, "watch_inbox", hang)
    done = deployed.watch_inbox.with_options(timeout_seconds=0.2)(return_state=True)
    assert (done.name, done.is_failed()) == ("TimedOut", True)
