"""`mudg target submit`, `status`, `list` and `cancel`: what was asked of the team's servers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun
from prefect.client.schemas.sorting import TaskRunSort
from prefect.settings import PREFECT_API_URL

from deployments.target_runs import (
    announce,
    cancel_run,
    deployment_exists,
    find_runs,
    is_lost,
    is_over,
    prefect_client,
    run_url,
    state_of,
)
from mudg.cli.output import console, show, table_of
from mudg_core.errors import InputError, OrchestrationError
from mudg_core.settings import Json, Settings, StorageSettings
from mudg_core.storage import ArtifactStore
from mudg_core.target.spec import Target
from mudg_core.target.submissions import Submission, Submissions

RUN_SECONDS = 120.0  # until the server must have started a run, also one that is busy
POLL_SECONDS = 1.0
LOST_POLLS = 20  # in a row: a server that is started again is waited for
TASKS = 200


def run_submit(
    target: Target, files: dict[str, str], spec: Path, minutes: float, as_json: bool, settings: Settings
) -> None:
    """Stored first: whatever happens to the event, watch-inbox announces what nobody has heard of."""
    submissions = _open(settings)
    submission = submissions.add(target, spec.read_bytes(), "command", files=files)
    submissions.announce(submission, announce)
    with console.status("waiting for Prefect to start a run …"):
        run = _started(submission)
    if minutes:
        console.print(f"run: {run_url(run)}", highlight=False, markup=False, soft_wrap=True)
        with console.status("the run goes on …"):
            run = _follow(run, minutes)
    result = _described(submissions.read(submission.name, submission.id), run, settings)
    show(result, _text(result), as_json)
    if minutes and result["state"] != "Completed":
        raise typer.Exit(OrchestrationError.exit_code)


def run_status(which: str, as_json: bool, settings: Settings) -> None:
    submission = _open(settings).find(which)
    result = _described(submission, _run_of(submission), settings)
    show(result, _text(result), as_json)


def run_list(limit: int, as_json: bool, settings: Settings) -> None:
    found = _open(settings).newest(limit)
    with prefect_client() as client:
        runs = find_runs(client, found)
    told = [_described(submission, runs.get(submission.id), settings) for submission in found]
    rows = [(one["name"], one["id"][:8], one["state"], one["submitted"], one["url"]) for one in told]
    text = table_of(rows, ("target", "id", "state", "submitted", "run")) if rows else "nothing was submitted"
    show({"submissions": told}, text, as_json)


def run_cancel(which: str, as_json: bool, settings: Settings) -> None:
    """Marked first, so that a run that starts meanwhile finds the mark; then the run that is there ends."""
    submissions = _open(settings)
    submission = submissions.find(which)
    run = _run_of(submission)
    if is_over(submission, run):
        raise InputError(
            what=f"submission {submission.id} of {submission.name} is over: {state_of(submission, run)}",
            where=run_url(run) if run else submissions.objects.url,
            fix="nothing is left to cancel; `mudg target list` shows the others",
        )
    submission = submissions.cancel(submission.name, submission.id)
    with prefect_client() as client:
        runs = find_runs(client, [submission])  # again: one may have started until the mark was there
        for run in runs.values():
            cancel_run(client, run)
        runs = find_runs(client, [submission])
    result = _described(submission, runs.get(submission.id), settings)
    show(result, _text(result), as_json)


def _open(settings: Settings) -> Submissions:
    return Submissions(ArtifactStore(settings.storage).objects)


def _run_of(submission: Submission) -> FlowRun | None:
    with prefect_client() as client:
        return find_runs(client, [submission]).get(submission.id)


def _started(submission: Submission) -> FlowRun:
    """A server that does not answer once is asked again until the time is over, and that is said once."""
    deadline, told = time.monotonic() + RUN_SECONDS, False
    while time.monotonic() < deadline:
        try:
            if run := _run_of(submission):
                return run
        except OrchestrationError as error:
            if not told:
                said = f"{error.what}: waited for, {RUN_SECONDS:.0f} s at most"
                console.print(said, highlight=False, markup=False, soft_wrap=True)
            told = True
        time.sleep(POLL_SECONDS)
    raise _no_run(submission)


def _no_run(submission: Submission) -> OrchestrationError:
    with prefect_client() as client:
        deployed = deployment_exists(client)
    why = "its automation `mudg target created` may be off, or the server is busy"
    fix = "look at Automations and Event Feed in the UI; watch-inbox announces it again in some minutes"
    if not deployed:
        why = "the server has no deployment build-classifier"
        fix = "`mudg up` declares it, and so does `prefect --no-prompt deploy --all`; then submit again"
    what = f"submission {submission.id} is stored, but no run of it started within {RUN_SECONDS:.0f} s: {why}"
    return OrchestrationError(what=what, where=str(PREFECT_API_URL.value()), fix=fix)


def _follow(run: FlowRun, minutes: float) -> FlowRun:
    """Tells of each task that ends. A server that is away for a while is waited for."""
    deadline, told, lost = time.monotonic() + 60 * minutes, set[Any](), 0
    while time.monotonic() < deadline:
        try:
            run = _look(run, told)
            lost = 0
        except OrchestrationError:
            lost += 1
            if lost > LOST_POLLS:
                raise
        if run.state and run.state.is_final():
            return run
        time.sleep(POLL_SECONDS)
    raise OrchestrationError(
        what=f"the run was not over after {minutes:g} minutes; it goes on",
        where=run_url(run),
        fix="`mudg target status` tells how it ends",
    )


def _look(run: FlowRun, told: set[Any]) -> FlowRun:
    chosen = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    with prefect_client() as client:
        now = client.read_flow_run(run.id)
        tasks = client.read_task_runs(flow_run_filter=chosen, sort=TaskRunSort.END_TIME_DESC, limit=TASKS)
    for task in reversed(tasks):
        if task.id not in told and task.state and task.state.is_final():
            told.add(task.id)
            console.print(f"{task.state_name}: {task.name}", highlight=False, markup=False)
    return now


def _described(submission: Submission, run: FlowRun | None, settings: Settings) -> Json:
    said: Json = {"name": submission.name, "id": submission.id, "state": state_of(submission, run)}
    said |= {"submitted": submission.submitted.isoformat(timespec="seconds"), "source": submission.source}
    identity = str(run.id) if run else submission.run
    said |= {"run": identity, "url": run_url(identity) if identity else ""}
    message = [run.state.message] if run and run.state and run.state.message else []
    if run and is_lost(submission, run) and submission.cancelled is None:
        message.append("watch-inbox announces it again")
    said["message"] = "; ".join(message)
    said |= submission.outcome or {}
    if link := _link(str(said.get("report_file", "")), settings.storage):
        said["report_link"] = link
    return said


def _link(uri: str, storage: StorageSettings) -> str:
    """Where a browser finds a file of the store, if the settings say; signed links are in the UI alone."""
    if not (storage.browse_url and uri.startswith(f"{storage.url}/")):
        return ""
    return storage.browse_url.rstrip("/") + uri.removeprefix(storage.url)


def _text(result: Json) -> str:
    lines = [f"{result['name']} ({result['id']}): {result['state']}"]
    if result["message"]:
        lines.append(result["message"])
    if accuracy := result.get("accuracy"):
        lines.append("accuracy: " + ", ".join(f"{arm} {mean:.1f} %" for arm, mean in accuracy.items()))
    lines += [f"warning: {warning}" for warning in result.get("warnings", ())]
    lines += [f"estimated without labels: {reason}" for reason in result.get("gate", ())]
    named = {
        "run": result["url"],
        "classifier": result.get("classifier"),
        "report": result.get("report_link") or result.get("report_file"),
    }
    return "\n".join([*lines, *(f"{what}: {where}" for what, where in named.items() if where)])
