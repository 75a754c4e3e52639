"""What nobody needs any more goes; to be run on a schedule (`mudg_core/storage/collect.py` says how)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from prefect import flow, get_run_logger

from mudg_core.settings import Settings
from mudg_core.storage import ArtifactStore
from mudg_core.storage.collect import collect_garbage as collect


@flow(
    name="collect-garbage",
    description="Condemns what nobody needs any more, and deletes what was condemned a grace period ago.",
    persist_result=False,
)
def collect_garbage(
    settings: Settings, dry_run: bool = False, older_than_days: float | None = None
) -> dict[str, Any]:
    """marks, leases and pointers → condemned → deleted. Returns how much was kept, condemned and deleted."""
    term = None if older_than_days is None else timedelta(days=older_than_days)
    done = collect(ArtifactStore(settings.storage), settings.gc, dry_run=dry_run, older_than=term)
    logger = get_run_logger()
    for kind, action, why, count, size in done.lines():
        logger.info("%s %s: %d, %d bytes (%s)", action, kind, count, size, why)
    return done.sums()
