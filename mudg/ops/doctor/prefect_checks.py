"""Checks of Prefect: which server, whether it answers, whether it has what runs need.

In a file of its own, so that the other checks run where Prefect cannot be imported.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
from prefect import __version__
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL

from mudg.ops.doctor.examine import Finding, Installation, Level, fault, ok, warning
from mudg.ops.stack.prefect_setup import GPU_LIMIT, declared_deployments
from mudg.ops.stack.running import POOL
from mudg_core.errors import MudgError

SECONDS = 10.0
SET_UP = "`mudg up` for a stack on this machine; else see infra/README.md"


def prefect(installation: Installation) -> list[Finding]:
    url = PREFECT_API_URL.value()
    if not url:
        return [ok("prefect", "no server is configured: commands need none")]
    if unreachable := _unreachable(url):
        return [unreachable]
    try:
        with get_client({"timeout": SECONDS}, sync_client=True) as client:
            return [_version(client.api_version(), __version__, url), *_registered(client, installation)]
    except httpx.HTTPStatusError as error:
        detail = f"{url} answers {error.response.status_code} {error.response.reason_phrase}"
        return [fault("prefect", detail, "see PREFECT_API_AUTH_STRING, PREFECT_API_KEY and the server's log")]


def _unreachable(url: str) -> Finding | None:
    """By a plain connection first, as Prefect's own client tries for minutes."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), SECONDS).close()
    except OSError as error:
        fix = f"start it, or unset PREFECT_API_URL; {SET_UP}"
        return fault("prefect", f"{url} does not answer: {str(error)[:200]}", fix)
    return None


def _version(theirs: str, ours: str, url: str) -> Finding:
    if theirs == ours:
        return ok("prefect", f"{url}, version {ours}")
    detail = f"{url} has version {theirs}, and we have {ours}"
    return warning("prefect", detail, "use the same version on both")


def _registered(client: SyncPrefectClient, installation: Installation) -> Iterator[Finding]:
    """Without them deployed runs do not start; commands like `mudg target run` need none of it. So they are
    faults of a stack only."""
    level: Level = "fault" if installation.stack else "warning"
    for name, check in (("work pool", _pool), ("deployments", _deployments), ("gpu limit", _limit)):
        detail, is_ok = check(client)
        yield ok(name, detail) if is_ok else Finding(name, level, detail, SET_UP)


def _pool(client: SyncPrefectClient) -> tuple[str, bool]:
    try:
        pool = client.read_work_pool(POOL)
        workers = client.read_workers_for_work_pool(POOL)
    except ObjectNotFound:
        return f"there is no work pool {POOL!r}", False
    online = [worker for worker in workers if str(getattr(worker.status, "value", worker.status)) == "ONLINE"]
    if pool.is_paused:
        return f"the work pool {POOL!r} is paused (`prefect work-pool resume {POOL}`, or in the UI)", False
    if not online:
        return f"no worker of the work pool {POOL!r} is online", False
    return f"{POOL} ({pool.type}), {len(online)} worker online", True


def _deployments(client: SyncPrefectClient) -> tuple[str, bool]:
    registered = {deployment.name for deployment in client.read_deployments()}
    try:
        declared = declared_deployments()
    except MudgError:
        declared = set()
    if missing := declared - registered:
        return f"not registered: {', '.join(sorted(missing))}", False
    return ", ".join(sorted(registered & declared if declared else registered)) or "none", bool(registered)


def _limit(client: SyncPrefectClient) -> tuple[str, bool]:
    try:
        limit = client.read_global_concurrency_limit_by_name(GPU_LIMIT)
    except ObjectNotFound:
        return f"tasks that need a GPU are not limited ({GPU_LIMIT})", False
    return f"{limit.limit} tasks at a time may need a GPU", bool(limit.active)
