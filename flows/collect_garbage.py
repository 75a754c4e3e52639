"""What nobody needs any more goes; to be run on a schedule (`mudg_core/storage/gc/collect.py` says how)."""

from __future__ import annotations

from datetime import timedelta

from mudg_core.settings import Settings
from mudg_core.storage import ArtifactStore
from mudg_core.storage.gc.collect import Collection
from mudg_core.storage.gc.collect import collect_garbage as collect
from tasks.flow import dated, flow


@flow(
    name="collect-garbage",
    description="Marks what nobody needs any more, and deletes what was marked a grace period ago.",
    run_name=lambda settings, dry_run=False, older_than_days=None: dated("collect-garbage"),
)
def collect_garbage(
    settings: Settings, dry_run: bool = False, older_than_days: float | None = None
) -> Collection:
    """marks, leases and pointers → marked → deleted. `older_than_days`: instead of the settings' (`gc.*`)."""
    term = None if older_than_days is None else timedelta(days=older_than_days)
    return collect(ArtifactStore(settings.storage), settings.gc, dry_run=dry_run, older_than=term)
