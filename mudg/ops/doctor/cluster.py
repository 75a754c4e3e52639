"""Dask: is the scheduler there, and do its workers have what we have?"""

from __future__ import annotations

from typing import Any

from mudg.ops.doctor.finding import Case, Finding, fault, ok, warning
from mudg.ops.stack.health import dask_client
from mudg_core.errors import SettingsError
from mudg_core.settings import ComputeSettings
from tasks.executors.clusters import kind_of

SECONDS = 10.0
COMPARED = ("python", "dask", "distributed", "numpy", "tornado", "msgpack")


def dask(case: Case) -> list[Finding]:
    compute = case.settings.compute
    if not compute.dask_address:
        return [_own(compute)]
    try:
        client = dask_client(compute.dask_address, SECONDS)
    except OSError as error:
        found = f"{compute.dask_address} does not answer: {str(error)[:200]}"
        return [fault("dask", found, "start it (`mudg up`), or leave compute.dask_address empty")]
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        return [workers_of(workers, compute), versions_of(client.get_versions())]


def _own(compute: ComputeSettings) -> Finding:
    try:
        kind = kind_of(compute)
    except SettingsError as error:
        return fault("dask", error.what, error.fix)
    return ok("dask", f"no scheduler is configured: every run starts a cluster ({kind})")


def workers_of(workers: dict[str, Any], compute: ComputeSettings) -> Finding:
    found = f"{len(workers)} workers at {compute.dask_address}"
    if not workers:
        return fault("dask", found, "start workers (`mudg up`), or see why they ended")
    if compute.device.startswith("cuda") and not any(one["resources"].get("GPU") for one in workers.values()):
        return fault(
            "dask", f"{found}, and none offers a GPU", "start them with --resources GPU=1, or use device cpu"
        )
    if len(workers) < compute.workers:
        return warning("dask", f"{found}, of {compute.workers}", "see why the others ended, or start more")
    return ok("dask", found)


def versions_of(versions: dict[str, Any]) -> Finding:
    """Client, scheduler and workers send each other objects, which other versions may not understand."""
    places = {"client": versions["client"], "scheduler": versions["scheduler"], **versions["workers"]}
    seen: dict[str, dict[str, list[str]]] = {}
    for place, one in places.items():
        for package in COMPARED:
            seen.setdefault(package, {}).setdefault(str(one["packages"].get(package)), []).append(place)
    wrong = [
        f"{package}: " + ", ".join(f"{version} ({places[0]})" for version, places in by_version.items())
        for package, by_version in seen.items()
        if len(by_version) > 1
    ]
    if wrong:
        return fault("dask versions", "; ".join(wrong), "use one environment or image for all of them")
    return ok("dask versions", f"the same everywhere ({', '.join(seen['distributed'])})")
