"""`mudg target submit`, `status`, `list` and `cancel`: runs on the team's servers.

Prefect reads its environment when it is imported, so it is imported after the servers are chosen.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from mudg.cli.command import Flags, Output, command
from mudg.cli.output import console, say, table_of
from mudg_core.errors import InputError, OrchestrationError

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

    from mudg_core.settings import Json, Settings, StorageSettings
    from mudg_core.target.submissions import Submission, Submissions

app = typer.Typer()
API_URL = "PREFECT_API_URL"
RUN_SECONDS = 120.0  # until the server must have started a run, also one that is busy
POLL_SECONDS = 1.0
LOST_POLLS = 20  # in a row: a server that is started again is waited for
TASKS = 200
Which = Annotated[str, Argument(help="A target's name, or a submission's id.")]


@command(app, "submit")
def target_submit(
    spec: Annotated[Path, Argument(help="Target spec (YAML).")],
    flags: Flags,
    wait: Annotated[bool, Option("--wait", help="Follow the run to its end.")] = False,
    minutes: Annotated[float, Option(min=0.1, help="With --wait: maximum time in minutes.")] = 1440.0,
) -> Output:
    """Have the team's servers build a classifier for the classes in SPEC, and print where to watch it.

    Stores the spec, sends the event that starts a run of the deployment build-classifier, and prints the
    run's address in Prefect's UI. Servers: PREFECT_API_URL and `storage.url`, or what `mudg up` started here.

    Example: `mudg target submit footwear.yaml --wait`
    """
    from mudg.cli.target import warn_of_lookalikes
    from mudg_core.target.submitted_spec import load_for_submission

    target, files = load_for_submission(spec)
    warn_of_lookalikes(target.classes)
    settings = use_servers(flags)
    from deployments import target_runs

    submissions = _open(settings)
    # Stored first: whatever happens to the event, watch-inbox announces a submission that has no run.
    submission = submissions.add(target, spec.read_bytes(), "command", files=files)
    submissions.announce(submission, target_runs.announce)
    with console.status("waiting for Prefect to start a run …"):
        run = _started(submission)
    if wait:
        say(f"run: {target_runs.run_url(run)}")
        with console.status("the run goes on …"):
            run = _follow(run, minutes)
    result = _described(submissions.read(submission.name, submission.id), run, settings)
    failed = wait and result["state"] != "Completed"
    return Output(result, _text(result), OrchestrationError.exit_code if failed else 0)


@command(app, "status")
def target_status(which: Which, flags: Flags) -> Output:
    """Show a submission: its run, its state, and its results.

    Example: `mudg target status footwear`
    """
    settings = use_servers(flags)
    submission = _open(settings).find(which)
    result = _described(submission, _run_of(submission), settings)
    return Output(result, _text(result))


@command(app, "list")
def target_list(
    flags: Flags,
    limit: Annotated[int, Option(min=1, max=1000, help="Maximum number of submissions.")] = 20,
) -> Output:
    """List submissions, newest first, with the state of their runs.

    Example: `mudg target list --limit 5`
    """
    settings = use_servers(flags)
    from deployments import target_runs

    newest = _open(settings).newest(limit)
    with target_runs.prefect_client() as client:
        runs = target_runs.find_runs(client, newest)
    lines = [_described(submission, runs.get(submission.id), settings) for submission in newest]
    rows = [(one["name"], one["id"][:8], one["state"], one["submitted"], one["url"]) for one in lines]
    text = table_of(rows, ("target", "id", "state", "submitted", "run")) if rows else "nothing was submitted"
    return Output({"submissions": lines}, text)


@command(app, "cancel")
def target_cancel(which: Which, flags: Flags) -> Output:
    """Cancel a submission: its run ends, or never starts.

    Example: `mudg target cancel footwear`
    """
    settings = use_servers(flags)
    from deployments import target_runs

    submissions = _open(settings)
    submission = submissions.find(which)
    run = _run_of(submission)
    if target_runs.is_over(submission, run):
        state = target_runs.state_of(submission, run)
        raise InputError(
            what=f"submission {submission.id} of {submission.name} is over: {state}",
            where=target_runs.run_url(run) if run else submissions.objects.url,
            fix="nothing is left to cancel; `mudg target list` shows the others",
        )
    # Marked first: a run that starts meanwhile finds the mark, one that has started is looked for after it.
    submission = submissions.cancel(submission.name, submission.id)
    with target_runs.prefect_client() as client:
        for run in target_runs.find_runs(client, [submission]).values():
            target_runs.cancel_run(client, run)
        runs = target_runs.find_runs(client, [submission])
    result = _described(submission, runs.get(submission.id), settings)
    return Output(result, _text(result))


def use_servers(flags: Flags) -> Settings:
    """Settings for the servers that the environment names, or for those that `mudg up` started here, with
    their store and its keys. A Prefect profile (`prefect config set`) comes last."""
    from mudg.ops.stack.running import use_stack

    use_stack()
    settings = flags.settings()
    if not os.environ.get(API_URL) and not _profile():
        raise OrchestrationError(
            what="there is no Prefect server to talk to",
            where=API_URL,
            fix="start one here with `mudg up`, or set PREFECT_API_URL (and storage.url) to your team's",
        )
    return settings


def _profile() -> str | None:
    from prefect.settings import PREFECT_API_URL

    url: str | None = PREFECT_API_URL.value()
    return url


def _open(settings: Settings) -> Submissions:
    from mudg_core.storage import ArtifactStore
    from mudg_core.target.submissions import Submissions

    return Submissions(ArtifactStore(settings.storage).objects)


def _run_of(submission: Submission) -> FlowRun | None:
    from deployments import target_runs

    with target_runs.prefect_client() as client:
        return target_runs.find_runs(client, [submission]).get(submission.id)


def _started(submission: Submission) -> FlowRun:
    """Asks again until the time is over if the server does not answer, and says so once."""
    deadline, warned = time.monotonic() + RUN_SECONDS, False
    while time.monotonic() < deadline:
        try:
            if run := _run_of(submission):
                return run
        except OrchestrationError as error:
            if not warned:
                say(f"{error.what}: waited for, {RUN_SECONDS:.0f} s at most")
            warned = True
        time.sleep(POLL_SECONDS)
    raise _no_run(submission)


def _no_run(submission: Submission) -> OrchestrationError:
    from deployments import target_runs

    with target_runs.prefect_client() as client:
        deployed = target_runs.deployment_exists(client)
    why = "its automation `mudg target created` may be off, or the server is busy"
    fix = "look at Automations and Event Feed in the UI; watch-inbox announces it again in some minutes"
    if not deployed:
        why = "the server has no deployment build-classifier"
        fix = "`mudg up` declares it, and so does `prefect --no-prompt deploy --all`; then submit again"
    what = f"submission {submission.id} is stored, but no run of it started within {RUN_SECONDS:.0f} s: {why}"
    return OrchestrationError(what=what, where=str(_profile()), fix=fix)


def _follow(run: FlowRun, minutes: float) -> FlowRun:
    """Prints each task that ends. A server that is away for a while is waited for."""
    from deployments.target_runs import run_url

    deadline, shown, lost = time.monotonic() + 60 * minutes, set[Any](), 0
    while time.monotonic() < deadline:
        try:
            run = _look(run, shown)
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
        fix="`mudg target status` shows how it ends",
    )


def _look(run: FlowRun, shown: set[Any]) -> FlowRun:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.client.schemas.sorting import TaskRunSort

    from deployments.target_runs import prefect_client

    chosen = FlowRunFilter(id=FlowRunFilterId(any_=[run.id]))
    with prefect_client() as client:
        now = client.read_flow_run(run.id)
        tasks = client.read_task_runs(flow_run_filter=chosen, sort=TaskRunSort.END_TIME_DESC, limit=TASKS)
    for task in reversed(tasks):
        if task.id not in shown and task.state and task.state.is_final():
            shown.add(task.id)
            console.print(f"{task.state_name}: {task.name}", highlight=False, markup=False)
    return now


def _described(submission: Submission, run: FlowRun | None, settings: Settings) -> Json:
    from deployments.target_runs import is_lost, run_url, state_of

    body: Json = {"name": submission.name, "id": submission.id, "state": state_of(submission, run)}
    body |= {"submitted": submission.submitted.isoformat(timespec="seconds"), "source": submission.source}
    identity = str(run.id) if run else submission.run
    body |= {"run": identity, "url": run_url(identity) if identity else ""}
    message = [run.state.message] if run and run.state and run.state.message else []
    if run and is_lost(submission, run) and submission.cancelled is None:
        message.append("watch-inbox announces it again")
    body["message"] = "; ".join(message)
    body |= submission.outcome or {}
    if link := _link(str(body.get("report_file", "")), settings.storage):
        body["report_link"] = link
    return body


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
    lines += [f"gate, without labels: {reason}" for reason in result.get("gate", ())]
    named = {
        "run": result["url"],
        "classifier": result.get("classifier"),
        "report": result.get("report_link") or result.get("report_file"),
    }
    return "\n".join([*lines, *(f"{what}: {where}" for what, where in named.items() if where)])
