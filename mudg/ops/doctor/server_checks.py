"""Checks of servers: whether Prefect and Dask answer, and have what runs need. Prefect is imported by its own
check, as it may be broken while Dask is not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mudg.ops.doctor.examine import Finding, Installation, Level, fault, ok, warning
from mudg_core.errors import MudgError, SettingsError
from mudg_core.settings import ComputeSettings

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

SECONDS = 10.0
SET_UP = "`mudg up` for a stack on this machine; else see infra/README.md"
COMPARED = ("python", "dask", "distributed", "numpy", "tornado", "msgpack")


def prefect(installation: Installation) -> list[Finding]:
    import httpx
    from prefect import __version__
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL

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
    from prefect.exceptions import ObjectNotFound

    from mudg.ops.stack.running import POOL

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
    from mudg.ops.stack.prefect_setup import declared_deployments

    registered = {deployment.name for deployment in client.read_deployments()}
    try:
        declared = declared_deployments()
    except MudgError:
        declared = set()
    if missing := declared - registered:
        return f"not registered: {', '.join(sorted(missing))}", False
    return ", ".join(sorted(registered & declared if declared else registered)) or "none", bool(registered)


def _limit(client: SyncPrefectClient) -> tuple[str, bool]:
    from prefect.exceptions import ObjectNotFound

    from mudg.ops.stack.prefect_setup import GPU_LIMIT

    try:
        limit = client.read_global_concurrency_limit_by_name(GPU_LIMIT)
    except ObjectNotFound:
        return f"tasks that need a GPU are not limited ({GPU_LIMIT})", False
    return f"{limit.limit} tasks at a time may need a GPU", bool(limit.active)


def dask(installation: Installation) -> list[Finding]:
    from mudg.ops.stack.health import dask_client
    from tasks.executors.clusters import kind_of

    compute = installation.settings.compute
    if not compute.dask_address:
        try:
            kind = kind_of(compute)
        except SettingsError as error:
            return [fault("dask", error.what, error.fix)]
        return [ok("dask", f"no scheduler is configured: runs use processes of this machine ({kind})")]
    try:
        client = dask_client(compute.dask_address, SECONDS)
    except OSError as error:
        detail = f"{compute.dask_address} does not answer: {str(error)[:200]}"
        return [fault("dask", detail, "start it (`mudg up`), or leave compute.dask_address empty")]
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        return [check_workers(workers, compute), check_versions(client.get_versions())]


def check_workers(workers: dict[str, Any], compute: ComputeSettings) -> Finding:
    detail = f"{len(workers)} workers at {compute.dask_address}"
    if not workers:
        return fault("dask", detail, "start workers (`mudg up`), or see why they ended")
    if compute.device.startswith("cuda") and not any(one["resources"].get("GPU") for one in workers.values()):
        fix = "start them with --resources GPU=1, or use device cpu"
        return fault("dask", f"{detail}, and none offers a GPU", fix)
    if len(workers) < compute.workers:
        return warning("dask", f"{detail}, of {compute.workers}", "see why the others ended, or start more")
    return ok("dask", detail)


def check_versions(versions: dict[str, Any]) -> Finding:
    """Client, scheduler and workers send each other objects, which other versions may not understand."""
    places = {"client": versions["client"], "scheduler": versions["scheduler"], **versions["workers"]}
    differing = []
    for package in COMPARED:
        by_version: dict[str, list[str]] = {}
        for place, info in places.items():
            by_version.setdefault(str(info["packages"].get(package)), []).append(place)
        if len(by_version) > 1:
            differing.append(
                f"{package}: " + ", ".join(f"{v} ({names[0]})" for v, names in by_version.items())
            )
    if differing:
        return fault("dask versions", "; ".join(differing), "use one environment or image for all of them")
    version = versions["client"]["packages"].get("distributed")
    return ok("dask versions", f"the same everywhere ({version})")
