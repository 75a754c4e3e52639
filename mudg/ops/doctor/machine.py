"""This machine: GPU, disk, the command that downloads, and the stack that runs on it."""

from __future__ import annotations

import shutil
from pathlib import Path

from mudg.ops.doctor.finding import Case, Finding, fault, ok, warning
from mudg.ops.stack.parts import PARTS
from mudg.ops.stack.state import read_state
from mudg_core.errors import MudgError

USE = "models and q(p) use it, k-means, cells and searches run on the CPU"
TIGHT_BYTES, LITTLE_BYTES = 2e9, 10e9  # a demo run takes one; a shard with its images about five


def stack(case: Case) -> list[Finding]:
    """A stack that was taken down is well, too."""
    state = read_state(case.folder)
    if case.stack is None:
        left = [one.name for one in state.processes] if state else []
        if not left:
            return [ok("stack", f"none runs in {case.folder}")]
        return [warning("stack", f"all of it has ended by itself: {', '.join(left)}", "`mudg up`")]
    dead = [name for name in PARTS if not case.stack.is_alive(name)]
    if dead:
        logs = ", ".join(str(case.stack.log(name)) for name in dead)
        return [fault("stack", f"not running: {', '.join(dead)}", f"`mudg up` starts it again; see {logs}")]
    return [ok("stack", f"all {len(PARTS)} parts run; UI: {case.stack.ui_url}")]


def gpu(case: Case) -> list[Finding]:
    import torch

    device, there = case.settings.compute.device, torch.cuda.is_available()
    if not device.startswith("cuda"):
        if there:
            return [warning("gpu", "there is one, and compute.device is cpu", "--set compute.device=cuda")]
        return [ok("gpu", "none, and compute.device is cpu")]
    if not there:
        found = f"compute.device is {device}, and torch sees no GPU"
        return [fault("gpu", found, "fix the driver or torch's build")]
    number, count = int(device.partition(":")[2] or 0), torch.cuda.device_count()
    if number >= count:
        return [fault("gpu", f"compute.device is {device}, and there are {count}", "name one that is there")]
    return [ok("gpu", f"{count} × {torch.cuda.get_device_name(number)}; {USE}")]


def disk(case: Case) -> list[Finding]:
    settings = case.settings.storage
    places = {"disk (cache)": Path(settings.cache_dir)}
    if settings.url.startswith("file://"):
        places["disk (store)"] = Path(settings.url.removeprefix("file://"))
    return [_space(name, place.expanduser().absolute()) for name, place in places.items()]


def _space(name: str, place: Path) -> Finding:
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    found, fix = f"{free / 1e9:.1f} GB free for {place}", "free some, or choose another disk (storage.*)"
    if free < TIGHT_BYTES:
        return fault(name, found, fix)
    return warning(name, found, fix) if free < LITTLE_BYTES else ok(name, found)


def img2dataset(case: Case) -> list[Finding]:
    """Only lists of links need it."""
    from mudg_core.corpus.web.img2dataset import find_command

    try:
        return [ok("img2dataset", find_command(case.settings.download))]
    except MudgError as error:
        return [warning("img2dataset", error.what, error.fix)]
