"""Prefect: which server, whether it answers, and whether it knows what runs need."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
from prefect import __version__
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL

from mudg.ops.doctor.finding import Case, Finding, Level, fault, ok, warning
from mudg.ops.stack.registered import GPU_LIMIT, declared
from mudg.ops.stack.running import POOL
from mudg_core.errors import MudgError

SECONDS = 10.0
AGAIN = "`mudg up` for a stack on this machine; else see infra/README.md"


def prefect(case: Case) -> list[Finding]:
    url = PREFECT_API_URL.value()
    if not url:
        return [ok("prefect", "no server is configured: every run starts a private one")]
    if dead := _unreachable(url):
        return [dead]
    try:
        with get_client({"timeout": SECONDS}, sync_client=True) as client:
            return [_version(client.api_version(), __version__, url), *_known(client, case)]
    except httpx.HTTPStatusError as error:
        found = f"{url} says {error.response.status_code} {error.response.reason_phrase}"
        return [fault("prefect", found, "see PREFECT_API_AUTH_STRING, PREFECT_API_KEY and the server's log")]


def _unreachable(url: str) -> Finding | None:
    """Asked plainly first, as Prefect's own client tries for minutes."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), SECONDS).close()
    except OSError as error:
        fix = f"start it, or unset PREFECT_API_URL; {AGAIN}"
        return fault("prefect", f"{url} does not answer: {str(error)[:200]}", fix)
    return None


def _version(theirs: str, ours: str, url: str) -> Finding:
    if theirs == ours:
        return ok("prefect", f"{url}, version {ours}")
    return warning(
        "prefect", f"{url} has version {theirs}, and we have {ours}", "use the same version on both"
    )


def _known(client: SyncPrefectClient, case: Case) -> Iterator[Finding]:
    """Without them deployed runs do not start; commands like `mudg target run` need none of it. So they are
    faults of a stack only."""
    level: Level = "fault" if case.stack else "warning"
    for name, look in (("work pool", _pool), ("deployments", _deployments), ("gpu limit", _limit)):
        found, good = look(client)
        yield ok(name, found) if good else Finding(name, level, found, AGAIN)


def _pool(client: SyncPrefectClient) -> tuple[str, bool]:
    try:
        pool = client.read_work_pool(POOL)
        workers = client.read_workers_for_work_pool(POOL)
    except ObjectNotFound:
        return f"there is no work pool {POOL!r}", False
    online = [one.name for one in workers if str(getattr(one.status, "value", one.status)) == "ONLINE"]
    if pool.is_paused:
        return f"the work pool {POOL!r} is paused (`prefect work-pool resume {POOL}`, or in the UI)", False
    if not online:
        return f"no worker of the work pool {POOL!r} is online", False
    return f"{POOL} ({pool.type}), {len(online)} worker online", True


def _deployments(client: SyncPrefectClient) -> tuple[str, bool]:
    found = {one.name for one in client.read_deployments()}
    try:
        ours = declared()
    except MudgError:
        ours = set()
    if missing := ours - found:
        return f"not registered: {', '.join(sorted(missing))}", False
    return ", ".join(sorted(found & ours if ours else found)) or "none", bool(found)


def _limit(client: SyncPrefectClient) -> tuple[str, bool]:
    try:
        limit = client.read_global_concurrency_limit_by_name(GPU_LIMIT)
    except ObjectNotFound:
        return f"tasks that need a GPU are not limited ({GPU_LIMIT})", False
    return f"{limit.limit} tasks at a time may need a GPU", bool(limit.active)
