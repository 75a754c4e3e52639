"""Progress in Prefect's UI, without Prefect: what it costs, and what becomes of it when Prefect is away."""

from __future__ import annotations

import logging
import threading
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

import tasks.executors.prefect_artifacts
import tasks.executors.progress
from mudg_core.settings import Settings, load_settings
from mudg_core.storage import ArtifactStore, Facts
from tasks.code import CODE
from tasks.executors.in_process import ThreadHost
from tasks.executors.progress import progress_bar
from tasks.policy import Work, build_batch, stage
from tasks.run import Progress, counted, silent
from tasks.stage_progress import Report

asked = threading.Event()


class Api:
    """Remembers what it was told, or is not there."""

    def __init__(self, away: bool = False) -> None:
        self.away, self.told = away, list[float]()

    def create_artifact(self, artifact: Any) -> Any:
        self.told.append(artifact.data)
        asked.set()
        if self.away:
            raise httpx.ConnectError("https://x.org/?X-Amz-Signature=5ec7e7 refused")
        return artifact.model_copy(update={"id": uuid.uuid4()})

    def update_artifact(self, artifact_id: uuid.UUID, artifact: Any) -> None:
        self.told.append(artifact.data)


@stage("watched")
def watched(work: Work, *, number: int) -> Facts:
    for step in counted(range(4), 4, work.progress):
        if step == 2:
            assert asked.wait(60)
    (work.scratch / "number.txt").write_text(str(number))
    return Facts({"rows": 1})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    storage = {"url": f"file://{tmp_path}", "cache_dir": str(tmp_path / "cache")}
    return load_settings(overrides={"storage": storage}, environ={})


@pytest.fixture
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Api:
    """In a run that there is not; the first word is due at once, and the next never."""
    found, run = Api(away=request.param), (uuid.uuid4(), None)
    asked.clear()
    for module in (tasks.executors.progress, tasks.executors.prefect_artifacts):
        monkeypatch.setattr(module, "current_run", lambda: run)
        monkeypatch.setattr(module, "get_client", lambda sync_client: found)
    monkeypatch.setattr(tasks.executors.progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(tasks.executors.progress, "EVERY_SECONDS", 600.0)
    return found


class Shown(ThreadHost):
    """Of a task whose reports reach a bar."""

    def __init__(self, bar: Progress) -> None:
        super().__init__()
        self.bar = bar

    def report(self, report: Report) -> None:
        self.bar(report.share)


def made(settings: Settings, *numbers: int) -> list[str]:
    recipes = [watched.recipe(settings, {"number": number}) for number in numbers]
    with progress_bar("watched", "") as bar:
        found = build_batch(f"{__name__}:watched", settings, recipes, "", CODE, Shown(bar))
    store = ArtifactStore(settings.storage)
    return [store.file(ref, "number.txt").read_text() for ref in found]


@pytest.mark.parametrize("api", [False], indirect=True)
def test_a_task_shows_how_far_all_of_its_artifacts_are(api: Api, settings: Settings) -> None:
    assert made(settings, 1, 2) == ["1", "2"]
    first, last = api.told
    assert 0 <= first <= 25 and last == 100  # half way through the first of two, at most


@pytest.mark.parametrize("api", [False], indirect=True)
def test_what_fails_keeps_the_share_that_it_had_reached(api: Api) -> None:
    with pytest.raises(KeyError), progress_bar("x", "") as progress:
        progress(0.5)
        assert asked.wait(60)
        progress(0.75)
        raise KeyError
    assert api.told[-1] == 75


@pytest.mark.parametrize("api", [False], indirect=True)
def test_what_is_done_at_once_is_not_spoken_of(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.executors.progress, "FIRST_SECONDS", 600.0)
    with progress_bar("x", "") as progress:
        progress(0.5)
    assert api.told == []


@pytest.mark.parametrize("api", [True], indirect=True)
def test_f18_a_task_that_cannot_reach_prefect_commits_and_warns_once(
    api: Api, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "tasks.executors.prefect_artifacts"):
        assert made(settings, 1) == ["1"] and made(settings, 2) == ["2"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "ConnectError" in line and "refused" in line and "5ec7e7" not in line


def test_outside_a_run_nobody_is_told() -> None:
    with progress_bar("x", "") as progress:
        assert progress is silent
