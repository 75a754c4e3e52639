"""Submissions and the runs of Prefect that have them: announcing one, finding its run, ending it.

The event `mudg.target.created` starts the deployment `build-classifier` (prefect.yaml). It is sent over HTTP
and not by Prefect's `emit_event`, whose background thread may not have sent anything when the process ends.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterName,
    FlowRunFilter,
    FlowRunFilterEndTime,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.events import Event, Resource
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelling, Crashed
from prefect.utilities.urls import url_for

from mudg_core.errors import OrchestrationError
from mudg_core.target.submissions import MOST_LOST, Submission, Submissions

EVENT = "mudg.target.created"
DEPLOYMENT = "build-classifier"
ALREADY_RUNNING = "AlreadyRunning"  # the state in which a second run of one submission ends
REQUEST_SECONDS, RETRIES = 10.0, 2
SETTLED_SECONDS = 60.0  # after which the server has heard of all that a run has done
PAGE, PAGES = 200, 5  # runs that are looked through, newest first
NAMES = {StateType.SCHEDULED: "Submitted", StateType.PENDING: "Submitted"}


@contextmanager
def prefect_client() -> Iterator[SyncPrefectClient]:
    """A client that does not wait for ever, and says whom it could not reach."""
    try:
        with (
            temporary_settings({PREFECT_CLIENT_MAX_RETRIES: RETRIES}),
            get_client(httpx_settings={"timeout": REQUEST_SECONDS}, sync_client=True) as client,
        ):
            yield client
    except (httpx.HTTPError, RuntimeError) as error:
        raise OrchestrationError(
            what=f"Prefect does not do what it is asked: {error or type(error).__name__}",
            where=str(PREFECT_API_URL.value()),
            fix="see that the server is up (`mudg doctor`) and PREFECT_API_URL names it; "
            "what was submitted is kept",
        ) from error


def announce(submission: Submission) -> None:
    """Sends the event and waits until the server has it. The server ignores what it has just heard, so the
    same announcement is the same event, and a later one of the same submission is another."""
    event = Event(
        id=uuid.uuid5(uuid.NAMESPACE_URL, f"mudg:submission:{submission.id}:{submission.taken}"),
        event=EVENT,
        resource=Resource(
            {
                "prefect.resource.id": f"mudg.target.{submission.name}",
                "prefect.resource.name": submission.name,
            }
        ),
        payload={"submission": submission.id, "name": submission.name},
    )
    with prefect_client() as client:
        body: Any = event.model_dump(mode="json")
        client._client.post("/events", json=[body])


def find_runs(client: SyncPrefectClient, submissions: Collection[Submission]) -> dict[str, FlowRun]:
    """The run of each submission that has one: the one that has claimed it, else the first that was made, if
    it did not end in an error before another."""
    found: dict[str, FlowRun] = {}
    for submission in submissions:
        if submission.run and (run := _read(client, submission.run)):
            found[submission.id] = run
    wanted = {submission.id for submission in submissions if not submission.run}
    for run in _runs(client) if wanted else ():
        token = run.parameters.get("submission")
        replaced = token in found and has_broken(run)
        if token in wanted and run.state_name != ALREADY_RUNNING and not replaced:
            found[token] = run  # newest first: an earlier one takes its place
    return found


def claim(desk: Submissions, name: str, token: str, mine: str) -> Submission:
    """For a run, before it does anything; whether it may go on is whether `run` is its own. A claim of
    a run that is over, or that Prefect says it does not know, is taken over; if Prefect says nothing, not."""
    found = desk.claim(name, token, mine)
    over = found.outcome is not None or found.cancelled is not None
    if over or found.run == mine or _goes_on(found.run):
        return found
    return desk.take_over(found, mine)


def has_broken(run: FlowRun) -> bool:
    return run.state is not None and (run.state.is_crashed() or run.state.is_failed())


def is_lost(submission: Submission, run: FlowRun) -> bool:
    """It broke before it could claim the submission, as when `mudg down` met it or the store was away when it
    started: the inbox announces the submission again, unless too many have."""
    return not submission.run and has_broken(run) and submission.lost + 1 < MOST_LOST


def is_over(submission: Submission, run: FlowRun | None) -> bool:
    ended = run is not None and run.state is not None and run.state.is_final()
    return submission.outcome is not None or (ended and run is not None and not is_lost(submission, run))


def state_of(submission: Submission, run: FlowRun | None) -> str:
    """One word for people. The store knows what was made even if Prefect has lost its database."""
    if run is None or run.state is None:
        if submission.cancelled:
            return "Cancelled"
        if submission.outcome is not None:
            return "Completed"
        return "Unknown" if submission.run else "Submitted"
    if submission.cancelled and (run.state.type in NAMES or is_lost(submission, run)):
        return "Cancelled"
    return NAMES.get(run.state.type, run.state.type.value.capitalize())


def cancel_run(client: SyncPrefectClient, run: FlowRun) -> None:
    """Asks for it: the worker that runs it ends its process in order; one that waits never starts."""
    if run.state is None or not run.state.is_final():
        client.set_flow_run_state(run.id, Cancelling())


def run_url(run: FlowRun | uuid.UUID | str) -> str:
    """Where the run is in Prefect's UI."""
    identity = run.id if isinstance(run, FlowRun) else run
    return url_for("flow-run", obj_id=str(identity)) or f"flow run {identity}"


def deployment_exists(client: SyncPrefectClient) -> bool:
    try:
        client.read_deployment_by_name(f"{DEPLOYMENT}/{DEPLOYMENT}")
    except ObjectNotFound:
        return False
    return True


def close_tasks_of_ended_runs() -> int:
    """A run whose process was killed has told nobody that its tasks have ended with it: they would be shown
    as Running for good. Those of a run that ended in order may still be on their way to the server."""
    ended = FlowRunFilterEndTime(before_=datetime.now(UTC) - timedelta(seconds=SETTLED_SECONDS))
    unfinished = TaskRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING])
    with prefect_client() as client:
        tasks = client.read_task_runs(
            flow_run_filter=FlowRunFilter(end_time=ended),
            task_run_filter=TaskRunFilter(state=TaskRunFilterState(type=unfinished)),
        )
        for task in tasks:
            client.set_task_run_state(task.id, Crashed(message="its run has ended"), force=True)
    return len(tasks)


def _goes_on(run: str) -> bool:
    with prefect_client() as client:
        found = _read(client, run)
    return found is not None and (found.state is None or not found.state.is_final())


def _read(client: SyncPrefectClient, run: str) -> FlowRun | None:
    try:
        return client.read_flow_run(uuid.UUID(run))
    except ObjectNotFound:
        return None


def _runs(client: SyncPrefectClient) -> Iterator[FlowRun]:
    deployment = DeploymentFilter(name=DeploymentFilterName(any_=[DEPLOYMENT]))
    for page in range(PAGES):
        found = client.read_flow_runs(
            deployment_filter=deployment,
            sort=FlowRunSort.EXPECTED_START_TIME_DESC,
            limit=PAGE,
            offset=page * PAGE,
        )
        yield from found
        if len(found) < PAGE:
            return


def find_lost(submissions: Sequence[Submission]) -> dict[str, bool]:
    """Which ones have a run, and whether it is lost: some pages of runs, however many are asked about."""
    with prefect_client() as client:
        runs = find_runs(client, submissions)
    return {one.id: is_lost(one, runs[one.id]) for one in submissions if one.id in runs}
