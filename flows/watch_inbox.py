"""The store's inbox → submissions → events, each exactly once (`mudg_core/target/inbox.py` says how)."""

from __future__ import annotations

from collections.abc import Sequence

from prefect import flow, get_run_logger

from deployments.target_runs import announce, find_runs, is_lost, prefect_client
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactStore
from mudg_core.target.inbox import Watched, Watcher
from mudg_core.target.submissions import Submission


@flow(
    name="watch-inbox",
    description="Turns specs in the store's inbox into runs of build-classifier, each once.",
    persist_result=False,
)
def watch_inbox(settings: Settings) -> Watched:
    """inbox → submissions → events. What one spec or one request has failed is told after all were tried."""
    objects, allowed = ArtifactStore(settings.storage).objects, settings.target.allowed_paths
    watched = Watcher(objects, announce, look, allowed=allowed).watch()
    logger = get_run_logger()
    for path in watched.refused:
        logger.warning("%s was refused: inbox-refused/ has it, with the reason", path)
    for token in watched.known:
        logger.info("submission %s was there already: the same file is not run again", token)
    for error in watched.errors:
        logger.error("%s", error)
    if watched.errors:
        raise watched.errors[0]
    return watched


def look(submissions: Sequence[Submission]) -> dict[str, bool]:
    """Which ones have a run, and whether it is lost: some pages of runs, however many are asked about."""
    with prefect_client() as client:
        runs = find_runs(client, submissions)
    return {one.id: is_lost(one, runs[one.id]) for one in submissions if one.id in runs}
