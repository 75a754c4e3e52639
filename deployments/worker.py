"""What a deployed flow finds at the Prefect worker that starts it: its settings.

The worker's own environment says where things are (`MUDG_*`, and a file that `MUDG_SETTINGS_FILE` names), as
it does for the commands of `mudg`; whoever starts a run may change everything else. A SIGTERM needs nothing
of ours here: Prefect takes it before a flow begins, and leaves the flow and its executor as by an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mudg_core.errors import SettingsError
from mudg_core.settings import Json, Settings, load_settings
from mudg_core.target.submitted_spec import check_paths
from tasks.run import prepared

SOURCE = "parameter `settings` of the run"
WORKERS_OWN = ("storage", "compute", "target")
# A program that the worker would run, and what the guard of links lets through.
NO_RUNS = {"download": ("command", "allow_networks")}


def worker_settings(changes: Mapping[str, Any] | None = None) -> Settings:
    """The settings of this worker with those of a run on top, ready to work with."""
    if taken := sorted(set(WORKERS_OWN) & set(changes or ())):
        raise SettingsError(
            what=f"settings.{taken[0]} is the worker's own, and no run can change it",
            where=SOURCE,
            fix=f"set MUDG_{taken[0].upper()}__… where the Prefect worker is started",
        )
    settings = load_settings(overrides=changes, source=SOURCE)
    _check_changes(dict(changes or {}), settings)
    _check_paths(settings)
    return prepared(settings)


def _check_changes(changes: Json, settings: Settings) -> None:
    """Whoever can start a run is not whoever owns the worker's files and programs."""
    for area, names in NO_RUNS.items():
        if taken := sorted(set(names) & set(changes.get(area, ()))):
            raise SettingsError(
                what=f"settings.{area}.{taken[0]} is the worker's own, and no run can change it",
                where=SOURCE,
                fix=f"set MUDG_{area.upper()}__{taken[0].upper()} where the Prefect worker is started",
            )
    check_paths(changes, settings.target.allowed_paths, SOURCE)


def _check_paths(settings: Settings) -> None:
    """Prefect gives every run a folder of its own and deletes it afterwards, with all that was made there."""
    storage = settings.storage
    paths = {"cache_dir": storage.cache_dir}
    if storage.url.startswith("file://"):
        paths["url"] = storage.url.removeprefix("file://")
    for name, path in sorted(paths.items(), reverse=True):
        if not Path(path).expanduser().is_absolute():
            raise SettingsError(
                what=f"storage.{name} is relative: {path}",
                where="environment of the Prefect worker",
                fix=f"set MUDG_STORAGE__{name.upper()} to an absolute one where the worker is started",
            )
