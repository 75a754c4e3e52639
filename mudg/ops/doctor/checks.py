"""Checks of all but Prefect: Python and packages, the stack, the store, Dask, GPU, disk, img2dataset.

Libraries that may be broken are imported by the check that needs them.
"""

from __future__ import annotations

import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from mudg.ops.doctor.examine import Finding, Installation, fault, ok, warning
from mudg_core.errors import MudgError, SettingsError
from mudg_core.settings import ComputeSettings

SETUP = "run `make setup`, or install from requirements.lock"
# What no resolver reports.
BREAKAGES = {
    "fastapi>=0.151": "Prefect's server fails: Body() got an unexpected keyword argument 'min_items'",
    "sqlalchemy>=2.1": "Prefect's cron schedules create no runs, and report no error",
    "dataclasses": "the backport hides Python's own module, and Prefect's server does not start",
}
FAISS = ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu12", "faiss-gpu-cu11")
GPU_USE = "models and q(p) use it, k-means, cells and searches run on the CPU"
FAULT_BYTES, WARNING_BYTES = 2e9, 10e9  # a demo run takes one; a shard with its images about five
SERVER_SECONDS = 10.0
COMPARED = ("python", "dask", "distributed", "numpy", "tornado", "msgpack")


def python(installation: Installation) -> list[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    try:
        required = metadata.metadata("mudg")["Requires-Python"] or ">=3.11"
    except (metadata.PackageNotFoundError, KeyError):
        required = ">=3.11"
    if Requirement(f"python{required}").specifier.contains(version):
        return [ok("python", version)]
    return [fault("python", f"{version}, and mudg needs {required}", f"use a Python {required}")]


def packages(installation: Installation) -> list[Finding]:
    """Against mudg's own requirements."""
    try:
        requirements = [Requirement(line) for line in metadata.requires("mudg") or ()]
    except metadata.PackageNotFoundError:
        return [warning("packages", "mudg is not installed, but run from its sources", "pip install -e .")]
    base = [one for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    unmet = [one for one in base if not _is_met(one)]
    if unmet:
        details = (f"{one.name} {_version(one.name) or 'is missing'} ({one.specifier})" for one in unmet)
        return [fault("packages", ", ".join(details), SETUP)]
    examples = ", ".join(f"{name} {_version(name)}" for name in ("prefect", "distributed", "torch"))
    return [ok("packages", f"{len(base)} in versions that mudg allows; {examples}")]


def breakages(installation: Installation) -> list[Finding]:
    name = "known breakages"
    findings = [
        fault(name, f"{one.name} {_version(one.name)}: {effect}", f"pip uninstall, or {SETUP}")
        for one, effect in ((Requirement(line), effect) for line, effect in BREAKAGES.items())
        if _is_met(one)
    ]
    faiss = [package for package in FAISS if _version(package)]
    if len(faiss) > 1:
        detail = f"{' and '.join(faiss)} break each other"
        findings.append(fault(name, detail, "uninstall both, then install one"))
    if not faiss:
        fix = "pip install -e '.[cpu]' in the checkout, or [gpu]"
        findings.append(fault(name, "no faiss is installed", fix))
    return findings or [ok(name, "none")]


def _is_met(requirement: Requirement) -> bool:
    version = _version(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def stack(installation: Installation) -> list[Finding]:
    """A stack that was stopped is well, too."""
    from mudg.ops.stack.parts import PARTS
    from mudg.ops.stack.state import read_state

    running = installation.stack
    if running is None:
        state = read_state(installation.folder)
        ended = ", ".join(process.name for process in state.processes) if state else ""
        if not ended:
            return [ok("stack", f"none runs in {installation.folder}")]
        return [warning("stack", f"all of it has ended by itself: {ended}", "`mudg up`")]
    dead = [name for name in PARTS if not running.is_alive(name)]
    if dead:
        logs = ", ".join(str(running.log(name)) for name in dead)
        return [fault("stack", f"not running: {', '.join(dead)}", f"`mudg up` starts it again; see {logs}")]
    return [ok("stack", f"all {len(PARTS)} parts run; UI: {running.ui_url}")]


def storage(installation: Installation) -> list[Finding]:
    """As every run checks it before it works, but with one try and a short time-out."""
    from mudg_core.storage import ArtifactStore

    configured = installation.settings.storage
    settings = configured.model_copy(update={"retries": 0, "timeout_seconds": SERVER_SECONDS})
    where = settings.url + (f" at {settings.endpoint_url}" if settings.endpoint_url else "")
    try:
        ArtifactStore(settings).check()
    except MudgError as error:
        return [fault("storage", f"{where}: {error.what}", error.fix or "see storage.* in `mudg settings`")]
    return [ok("storage", f"{where} takes files, and honours conditional puts")]


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
        client = dask_client(compute.dask_address, SERVER_SECONDS)
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


def gpu(installation: Installation) -> list[Finding]:
    import torch

    device, available = installation.settings.compute.device, torch.cuda.is_available()
    if not device.startswith("cuda"):
        if available:
            return [warning("gpu", "there is one, and compute.device is cpu", "--set compute.device=cuda")]
        return [ok("gpu", "none, and compute.device is cpu")]
    if not available:
        detail = f"compute.device is {device}, and torch sees no GPU"
        return [fault("gpu", detail, "fix the driver or torch's build")]
    number, count = int(device.partition(":")[2] or 0), torch.cuda.device_count()
    if number >= count:
        return [fault("gpu", f"compute.device is {device}, and there are {count}", "name one that is there")]
    return [ok("gpu", f"{count} × {torch.cuda.get_device_name(number)}; {GPU_USE}")]


def disk(installation: Installation) -> list[Finding]:
    settings = installation.settings.storage
    places = {"disk (cache)": Path(settings.cache_dir)}
    if settings.url.startswith("file://"):
        places["disk (store)"] = Path(settings.url.removeprefix("file://"))
    return [_space(name, place.expanduser().absolute()) for name, place in places.items()]


def _space(name: str, place: Path) -> Finding:
    free = shutil.disk_usage(next(folder for folder in (place, *place.parents) if folder.exists())).free
    detail, fix = f"{free / 1e9:.1f} GB free for {place}", "free some, or choose another disk (storage.*)"
    if free < FAULT_BYTES:
        return fault(name, detail, fix)
    return warning(name, detail, fix) if free < WARNING_BYTES else ok(name, detail)


def img2dataset(installation: Installation) -> list[Finding]:
    """Only lists of links need it."""
    from mudg_core.corpus.web.img2dataset import find_command

    try:
        return [ok("img2dataset", find_command(installation.settings.download))]
    except MudgError as error:
        return [warning("img2dataset", error.what, error.fix)]
