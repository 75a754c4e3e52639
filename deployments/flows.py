"""The flows that `prefect.yaml` declares: those in `flows/`, with the settings of the worker that runs them.

Each runs the function of the flow that it stands for, in its own flow run: one run with its tasks in the UI,
and not a run within a run. What a flow needs is imported when it runs, as the worker starts a new process for
every run and the inbox is looked into every few minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from prefect import State, flow, get_run_logger, runtime
from prefect.states import Cancelled, Completed
from pydantic import JsonValue

from deployments.worker import worker_settings

Changes = dict[str, Any] | None
WARNINGS = 20  # that a submission keeps; the report has all
WATCH_SECONDS = 240  # less than from one look into the inbox to the next, which is not let in before


def _dated(name: str) -> Callable[[], str]:
    """`build-index 2026-11-17 03:00`: by the time for which a run was scheduled."""

    def named() -> str:
        moment = runtime.flow_run.scheduled_start_time or datetime.now(UTC)
        return f"{name} {moment.astimezone(UTC):%Y-%m-%d %H:%M}"

    return named


@flow(
    name="build-index",
    flow_run_name=_dated("build-index"),
    description="Embeds new corpus shards, populates the index, measures its recall and promotes it. "
    "With nothing new it finds everything made, and does nothing.",
    persist_result=False,
)
def build_index(settings: Changes = None, retrain: bool = False) -> State[dict[str, Any]]:
    """`settings`: changes to the worker's settings, by area. `retrain`: learn centroids anew."""
    from deployments.on_prefect import run_stages
    from flows import build_index as index
    from tasks.results import counts

    built = run_stages(index.build_index, worker_settings(settings), retrain)
    done = counts(built.records)
    data = {"index": str(built.version.index), "note": built.note} | _sums(done)
    said = f"{built.version.index}: {done['computed']} computed, {done['cached']} cached"
    return Completed(message=f"{said}. {built.note}".rstrip(". "), data=data)


@flow(
    name="build-classifier",
    flow_run_name="build-classifier {name}",
    description="Builds a classifier for one target that was submitted (`mudg target submit`, or the inbox).",
    persist_result=False,
)
def build_classifier(name: str, submission: str, settings: Changes = None) -> State[dict[str, Any] | None]:
    """`name` and `submission` say which submission; the event that starts the run has both."""
    from deployments.on_prefect import run_stages
    from deployments.target_runs import ALREADY_RUNNING, claim, run_url
    from flows import build_classifier as classifier
    from mudg_core.storage import ArtifactStore
    from mudg_core.target.class_names import lookalikes
    from mudg_core.target.submissions import Submissions
    from mudg_core.target.submitted_spec import check_submitted, with_phrase_files, without_phrase_files

    ready, mine = worker_settings(settings), str(runtime.flow_run.id)
    store = ArtifactStore(ready.storage)
    desk = Submissions(store.objects)
    claimed = claim(desk, name, submission, mine)
    if claimed.cancelled is not None:
        return Cancelled(message=f"submission {submission} was cancelled")
    if claimed.run != mine:
        return Completed(name=ALREADY_RUNNING, message=f"another run has it: {run_url(claimed.run)}")
    check_submitted(
        without_phrase_files(claimed.target, claimed.files), ready.target.allowed_paths, submission
    )
    for pair in lookalikes(claimed.target.classes):  # of a spec from the inbox nobody has been told
        get_run_logger().warning("classes %a and %a look the same: are they two?", *pair)
    with with_phrase_files(claimed.target, claimed.files) as target:
        built = run_stages(classifier.build_classifier, ready, target)
    outcome = _outcome(store, built)
    desk.finish(claimed, outcome)
    return Completed(message=_said(outcome), data=outcome)


@flow(
    name="collect-garbage",
    flow_run_name=_dated("collect-garbage"),
    description="Condemns what nobody needs any more, and deletes what was condemned a grace period ago.",
    persist_result=False,
)
def collect_garbage(
    settings: Changes = None, dry_run: bool = False, older_than_days: float | None = None
) -> State[dict[str, Any]]:
    """`older_than_days`: instead of the days in the settings (`gc.*`)."""
    from flows import collect_garbage as garbage

    collected = garbage.collect_garbage(worker_settings(settings), dry_run, older_than_days)
    for kind, action, why, count, size in collected.lines():
        get_run_logger().info("%s %s: %d, %d bytes (%s)", action, kind, count, size, why)
    done = collected.sums()
    said = ", ".join(f"{sums['count']} {action}" for action, sums in done.items())
    return Completed(message=said, data=done)


@flow(
    name="watch-inbox",
    flow_run_name=_dated("watch-inbox"),
    description="Turns specs in the store's inbox into runs of build-classifier, each once.",
    timeout_seconds=WATCH_SECONDS,
    persist_result=False,
)
def watch_inbox(settings: Changes = None) -> State[dict[str, int]]:
    """Refuses bad specs with a reason (`inbox-refused/`), announces again what nobody heard, and closes tasks
    of runs that were killed."""
    from deployments.target_runs import announce, close_tasks_of_ended_runs, find_lost
    from flows import watch_inbox as inbox

    logger = get_run_logger()
    if closed := close_tasks_of_ended_runs():
        logger.warning("%d tasks of runs that were killed are marked as Crashed", closed)
    watched = inbox.watch_inbox(worker_settings(settings), announce, find_lost)
    for path in watched.refused:
        logger.warning("%s was refused: inbox-refused/ has it, with the reason", path)
    for token in watched.known:
        logger.info("submission %s was there already: the same file is not run again", token)
    for error in watched.errors:  # told after all were tried
        logger.error("%s", error)
    if watched.errors:
        raise watched.errors[0]
    data = {"submitted": len(watched.submitted), "refused": len(watched.refused)}
    data |= {"known": len(watched.known), "announced again": len(watched.again)}
    return Completed(message=", ".join(f"{count} {what}" for what, count in data.items()), data=data)


def _outcome(store: Any, built: Any) -> dict[str, JsonValue]:
    """What a submission says of its run for good, whatever becomes of Prefect's database: small."""
    from tasks.report import REPORT
    from tasks.results import accuracies, counts

    told: Any = store.manifest(built.report).facts
    measured = accuracies(store, [built])
    means = {arm: figures["mean"] for arm, figures in measured.items() if arm != "targets"}
    made: dict[str, JsonValue] = {"classifier": str(built.classifier), "report": str(built.report)}
    made["report_file"] = store.uri(built.report, REPORT)
    made["gate"] = [_reason(store, ref) for ref in built.verdicts]
    made["warnings"] = [one["message"] for one in told["warnings"][built.target.name]][:WARNINGS]
    return {"accuracy": means, **made, **_sums(counts(built.records))}


def _reason(store: Any, verdict: Any) -> str:
    from mudg_core.evaluate.gate import VERDICT

    return str(json.loads(store.file(verdict, VERDICT).read_text())["reasons"][0])


def _sums(done: dict[str, Any]) -> dict[str, int]:
    return {what: done[what] for what in ("computed", "cached")}


def _said(outcome: dict[str, Any]) -> str:
    said = f"{outcome['classifier']}: {outcome['computed']} computed, {outcome['cached']} cached"
    accuracy = outcome["accuracy"].get("mudg")
    return said if accuracy is None else f"{said}, accuracy {accuracy:.1f} %"
