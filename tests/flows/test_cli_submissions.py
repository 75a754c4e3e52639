"""`mudg target submit|status|list|cancel`, with a stand-in for Prefect."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelling, Completed, Crashed, Failed, Running, Scheduled
from typer.testing import CliRunner

from deployments import target_runs
from mudg.cli import submissions as cli
from mudg.cli.app import app
from mudg.cli.command import Flags
from mudg.ops.stack import running
from mudg_core.errors import OrchestrationError
from mudg_core.storage.objects_local import LocalObjects
from mudg_core.target.submissions import Submission, Submissions

runner = CliRunner()
FLAGS = Flags((), (), False)


class Prefect:
    """Starts a run for each event, unless it is told not to."""

    def __init__(self) -> None:
        self.starts, self.runs, self.state = True, dict[str, FlowRun](), list[Any]()

    def announce(self, submission: Submission) -> None:
        if self.starts:
            self.runs[submission.id] = FlowRun(flow_id=uuid.uuid4(), state=Scheduled())

    def find(self, _: Any, submissions: list[Submission]) -> dict[str, FlowRun]:
        return {one.id: self.runs[one.id] for one in submissions if one.id in self.runs}

    def look(self, run: FlowRun, _: Any) -> FlowRun:
        run.state = self.state.pop(0)
        return run

    def cancel(self, _: Any, run: FlowRun) -> None:
        if run.state is None or not run.state.is_final():
            run.state = Cancelling()


@pytest.fixture
def prefect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Prefect]:
    server = Prefect()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    monkeypatch.setattr(target_runs, "prefect_client", lambda: nullcontext(None))
    monkeypatch.setattr(target_runs, "announce", server.announce)
    monkeypatch.setattr(target_runs, "find_runs", server.find)
    monkeypatch.setattr(target_runs, "cancel_run", server.cancel)
    monkeypatch.setattr(cli, "_look", server.look)
    monkeypatch.setattr(target_runs, "deployment_exists", lambda _: False)
    monkeypatch.setattr(cli, "RUN_SECONDS", 0.05)
    monkeypatch.setattr(cli, "POLL_SECONDS", 0.01)
    Path("zoo.yaml").write_text("name: zoo\nclasses: [cat, dog]\nevaluation: images\n")
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        yield server


def run(*words: str, ends: int = 0) -> Any:
    done = runner.invoke(app, ["target", *words, "--json"])
    assert done.exit_code == ends, done.output
    return json.loads(done.stdout.splitlines()[-1])


def desk(folder: Path) -> Submissions:
    return Submissions(LocalObjects(folder / ".mudg"))


def test_submit_prints_where_the_run_is_and_the_others_find_it(prefect: Prefect, tmp_path: Path) -> None:
    done = run("submit", "zoo.yaml")
    assert done["state"] == "Submitted" and done["url"].endswith(f"/runs/flow-run/{done['run']}")
    assert desk(tmp_path).find("zoo").target.evaluation == f"{tmp_path}/images"
    second = run("submit", "zoo.yaml")
    assert [one["id"] for one in run("list")["submissions"]] == [second["id"], done["id"]]
    assert run("status", "zoo") == second and run("status", done["id"][:10]) == done
    text = runner.invoke(app, ["target", "list"]).stdout
    assert text.splitlines()[0].split() == ["target", "id", "state", "submitted", "run"]
    assert done["url"] in text and "Submitted" in text


def test_waiting_ends_with_what_was_made(
    prefect: Prefect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefect.state = [Running(), Completed(message="done")]
    made = {"classifier": "classifier/ab", "accuracy": {"mudg": 71.5}}
    made |= {"report_file": "file://.mudg/r.html", "gate": ["not better"], "warnings": ["no yeti"]}

    def finished(submission: Submission) -> None:
        prefect.announce(submission)
        desk(tmp_path).finish(submission, made)  # type: ignore[arg-type]

    monkeypatch.setattr(target_runs, "announce", finished)
    text = runner.invoke(app, ["target", "submit", "zoo.yaml", "--wait"])
    assert text.exit_code == 0 and "Completed" in text.stdout and "accuracy: mudg 71.5 %" in text.stdout
    assert "classifier: classifier/ab" in text.stdout and f"report: {made['report_file']}" in text.stdout
    assert "warning: no yeti" in text.stdout and "gate, without labels: not better" in text.stdout
    monkeypatch.setenv("MUDG_STORAGE__BROWSE_URL", "http://files.example.org/mudg")
    assert run("status", "zoo")["report_link"] == "http://files.example.org/mudg/r.html"


def test_waiting_for_a_run_that_fails_ends_in_failure(prefect: Prefect) -> None:
    prefect.state = [Failed(message="no index yet")]
    done = run("submit", "zoo.yaml", "--wait", ends=6)
    assert done["state"] == "Failed" and done["message"].startswith("no index yet")


def test_waiting_has_an_end_and_a_server_that_is_away_is_waited_for(
    prefect: Prefect, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def away(run: FlowRun, _: Any) -> FlowRun:
        nonlocal looks
        looks += 1
        raise OrchestrationError(what="away")

    monkeypatch.setattr(cli, "_look", away)
    assert run("submit", "zoo.yaml", "--wait", ends=6)["what"] == "away" and looks == cli.LOST_POLLS + 1
    monkeypatch.setattr(cli, "_look", lambda run, _: run)
    going = FlowRun(flow_id=uuid.uuid4(), state=Running())
    with pytest.raises(OrchestrationError, match="it goes on"):
        cli._follow(going, minutes=0.001)


def test_without_a_run_it_is_said_why_and_the_submission_stays(
    prefect: Prefect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefect.starts = False
    told = run("submit", "zoo.yaml", ends=6)
    assert "no deployment build-classifier" in told["what"] and "deploy --all" in told["fix"]
    monkeypatch.setattr(target_runs, "deployment_exists", lambda _: True)
    told = run("submit", "zoo.yaml", ends=6)
    assert "automation" in told["what"] and "watch-inbox" in told["fix"]
    assert {one["state"] for one in run("list")["submissions"]} == {"Submitted"}


def test_a_server_that_is_slow_to_answer_is_waited_for_until_the_run_is_there(
    prefect: Prefect, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([OrchestrationError(what="time-out"), {}, OrchestrationError(what="time-out")])

    def slow(client: Any, submissions: list[Submission]) -> dict[str, FlowRun]:
        answer = next(answers, None)
        if isinstance(answer, Exception):
            raise answer
        return prefect.find(client, submissions) if answer is None else answer

    monkeypatch.setattr(target_runs, "find_runs", slow)
    monkeypatch.setattr(cli, "RUN_SECONDS", 60.0)
    done = runner.invoke(app, ["target", "submit", "zoo.yaml"])
    assert done.exit_code == 0 and "Submitted" in done.stdout
    assert done.stderr.count("waited for") == 1 and "time-out" in done.stderr


def test_cancel_marks_first_and_then_asks_prefect(prefect: Prefect, tmp_path: Path) -> None:
    done = run("submit", "zoo.yaml")
    assert run("cancel", "zoo")["state"] == "Cancelling"
    assert desk(tmp_path).claim("zoo", done["id"], "late").run == ""
    prefect.starts = False
    run("submit", "zoo.yaml", ends=6)
    assert run("cancel", "zoo")["state"] == "Cancelled"


def test_what_is_over_is_not_cancelled(prefect: Prefect, tmp_path: Path) -> None:
    done = run("submit", "zoo.yaml")
    prefect.runs[done["id"]].state = Completed()
    assert "is over: Completed" in run("cancel", "zoo", ends=2)["what"]
    assert desk(tmp_path).find("zoo").cancelled is None
    assert "mudg target list" in run("status", "absent", ends=2)["fix"]


def test_what_broke_before_it_began_can_be_cancelled(prefect: Prefect, tmp_path: Path) -> None:
    done = run("submit", "zoo.yaml")
    prefect.runs[done["id"]].state = Failed(message="the store is away")
    assert run("status", "zoo")["message"] == "the store is away; watch-inbox announces it again"
    assert run("cancel", "zoo")["state"] == "Cancelled"
    assert run("status", "zoo")["message"] == "the store is away"
    desk(tmp_path).claim("zoo", run("submit", "zoo.yaml")["id"], "mine")
    prefect.runs[desk(tmp_path).find("zoo").id].state = Crashed()
    assert "is over: Crashed" in run("cancel", "zoo", ends=2)["what"]


def test_a_bad_spec_is_told_before_any_server_is_asked(
    prefect: Prefect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL")
    Path("zoo.yaml").write_text("name: zoo\nclasses: [cat, dog]\ncolour: red\n")
    assert run("submit", "zoo.yaml", ends=2)["where"].endswith("zoo.yaml:3")


def test_the_servers_are_the_users_own_then_those_of_mudg_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a stack as a whole: keys of the user's for another store would be refused by its own."""
    whole = {"PREFECT_API_URL": "http://here/api", "AWS_ACCESS_KEY_ID": "here"}
    found = SimpleNamespace(environment=lambda: whole)
    monkeypatch.setattr(running, "find_stack", lambda folder: found)
    environ = {"PREFECT_API_URL": "http://mine/api", "AWS_ACCESS_KEY_ID": "mine"}
    monkeypatch.setattr(running.os, "environ", environ)
    cli.use_servers(FLAGS)
    assert environ == {"PREFECT_API_URL": "http://mine/api", "AWS_ACCESS_KEY_ID": "mine"}
    del environ["PREFECT_API_URL"]
    cli.use_servers(FLAGS)
    assert environ == whole


def test_without_any_server_both_ways_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.os, "environ", {})
    monkeypatch.setattr(running, "find_stack", lambda _: None)
    monkeypatch.setattr(cli, "_profile", lambda: None)
    with pytest.raises(OrchestrationError, match=r"mudg up[^$]*PREFECT_API_URL"):
        cli.use_servers(FLAGS)
