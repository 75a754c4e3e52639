"""Where a flow is run: in processes of this machine, or on Prefect and Dask; by settings alone.

`compute.executor: auto` takes servers where some are named (`PREFECT_API_URL`, a profile of Prefect's,
`compute.dask_address`, another `compute.cluster` than this machine), else processes of this machine, or this
process alone if `compute.workers` is 1.
All find and make the same artifacts. Prefect and Dask are imported only where they are used: they take
seconds to load.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from mudg_core.settings import Settings
from tasks.flow import Flow
from tasks.run import executing, prepared

P = ParamSpec("P")
R = TypeVar("R")
SERVER = "PREFECT_API_URL"


def uses_prefect(settings: Settings) -> bool:
    compute = settings.compute
    if compute.executor != "auto":
        return compute.executor == "prefect-dask"
    return bool(
        compute.dask_address or compute.cluster != "local" or os.environ.get(SERVER) or _profile_has_server()
    )


@contextmanager
def session(settings: Settings) -> Iterator[Settings]:
    """The settings to call flows with inside the block; servers that have to be started live as long."""
    if not uses_prefect(settings):
        ready, compute = prepared(settings), settings.compute
        if compute.executor == "in-process" or (compute.executor == "auto" and compute.workers == 1):
            from tasks.executors import in_process

            with in_process.closing():
                yield ready
            return
        from tasks.executors.processes import LocalProcesses, closing

        with executing(LocalProcesses()), closing():
            yield ready
        return
    from tasks.executors.session import session as with_servers

    with with_servers(settings) as ready:
        yield ready.replace({"compute": {"executor": "prefect-dask"}})


def call(flow: Flow[Concatenate[Settings, P], R], settings: Settings, *args: P.args, **inputs: P.kwargs) -> R:
    """A flow of ours, by the executor of the session that gave the settings."""
    if not uses_prefect(settings):
        return flow(settings, *args, **inputs)
    from deployments.on_prefect import call as on_prefect

    return on_prefect(flow, settings, *args, **inputs)


def _profile_has_server() -> bool:
    """What `prefect config set` has written, read without Prefect."""
    home = Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect")
    try:
        profiles = tomllib.loads((home / "profiles.toml").read_text())
        active = os.environ.get("PREFECT_PROFILE") or profiles.get("active", "")
        return SERVER in profiles.get("profiles", {}).get(active, {})
    except (OSError, ValueError, AttributeError, TypeError):
        return False
