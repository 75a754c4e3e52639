"""`mudg up`: starts what is not there, in the order in which parts need each other, and waits for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from mudg.ops.stack import ports
from mudg.ops.stack.certificates import make_certificate
from mudg.ops.stack.environment import given_to_stack
from mudg.ops.stack.parts import (
    DEPLOY,
    FIRST,
    PARTS,
    SECOND,
    Part,
    environment_of,
    weed,
    write_dask_config,
)
from mudg.ops.stack.processes import exit_code, spawn
from mudg.ops.stack.registered import (
    DEFAULT,
    check_cron,
    is_known,
    limit_gpu_tasks,
    make_pool,
    prefect_file,
    schedule_index,
)
from mudg.ops.stack.running import Stack, find_stack
from mudg.ops.stack.state import State, check_folder, locked, read_state, write_state
from mudg.ops.stack.stop import close_runs, end_part
from mudg_core.errors import OrchestrationError, SettingsError
from mudg_core.settings import ComputeSettings, Settings
from tasks.executors.clusters import gpus, kind_of
from tasks.executors.prefect_database import lay_out

STARTS = 3
DEPLOY_SECONDS = 300.0
PAUSE_SECONDS = 0.2
PATIENCE_SECONDS = 60.0  # with a part that lives: it may only be busy
LOG_LINES = 15

Watch = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True)
class Wishes:
    """What the user has asked for; None is for us to choose, or as it was before."""

    ports: Mapping[str, int] = field(default_factory=dict)  # `prefect`, `s3` and `dask`: the first of each
    index_cron: str | None = None
    gpu_limit: int | None = None


@dataclass
class Upped:
    """What came of it. `mended`: it ran already, so its processes know each other's ports."""

    stack: Stack
    mended: bool = False
    started: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def bring_up(folder: Path, settings: Settings, wishes: Wishes, watch: Watch) -> Upped:
    """A stack that works. Of one that is there already, only what has died is started again, as it was. If
    anything does not come up, whatever this call has started is ended again."""
    weed(), prefect_file()  # what cannot be had is told before anything is started
    check_folder(folder)
    if wishes.index_cron:
        check_cron(wishes.index_cron)
    with locked(folder):
        upped = _found(folder, settings, wishes) or _laid_out(folder, settings, wishes)
        try:
            _await_all(upped, _begin(upped, FIRST), wishes, watch)
            if not upped.mended:  # runs of a machine that went down would be shown as running for ever
                close_runs(upped.stack)
            _register(upped, wishes, watch)
        except BaseException:
            for name in (DEPLOY, *reversed(upped.started)):
                end_part(upped.stack, name)
            raise
    return upped


def _found(folder: Path, settings: Settings, wishes: Wishes) -> Upped | None:
    """One that runs keeps its settings and ports, which its processes know."""
    stack = find_stack(folder)
    if stack is None:
        return None
    upped = Upped(stack, mended=True)
    if given_to_stack(settings) not in (stack.state.settings, {}):
        upped.notes.append("it keeps the settings that it was started with: `mudg down` first to change them")
    if any(stack.state.ports[name] != port for name, port in wishes.ports.items()):
        upped.notes.append("it keeps its ports: `mudg down` first to change them")
    return upped


def _laid_out(folder: Path, settings: Settings, wishes: Wishes) -> Upped:
    """A new start, on the ports and data of the last one if there was one."""
    before = read_state(folder) or State(id="")
    if before.id:  # what a killed `mudg up` has left would be in the way
        stack = Stack(folder, before)
        for name in (DEPLOY, *reversed(PARTS)):
            end_part(stack, name)
    chosen = ports.choose_all(before.ports, wishes.ports)
    state = State(
        id=before.id or token_hex(8),
        ports=chosen,
        settings=given_to_stack(settings),
        workers=_workers(settings.compute),
        index_cron=before.index_cron,
        gpu_limit=before.gpu_limit,
    )
    write_state(folder, state)
    upped = Upped(Stack(folder, state))
    for name in ("cache", "dask", "logs", "prefect", "s3", "work"):
        (folder / name).mkdir(exist_ok=True)
    make_certificate(upped.stack.folder)
    write_dask_config(upped.stack)
    lay_out(folder / "prefect" / "prefect.db")
    if "prefect" not in wishes.ports and chosen["prefect"] != ports.UI_PORT:
        upped.notes.append(f"port {ports.UI_PORT} is taken: the UI is on {chosen['prefect']}")
    if before.index_cron and not wishes.index_cron:
        upped.notes.append(f"the schedule of the index is as before: {before.index_cron}")
    return upped


def _workers(compute: ComputeSettings) -> int:
    """On GPUs there is one for each, however many were asked for."""
    if kind_of(compute) != "cuda":
        return compute.workers
    if found := gpus():
        return found
    raise SettingsError(
        what="compute.device is cuda, and torch sees no GPU",
        where="compute.device",
        fix="fix the driver or torch's build (`mudg doctor`), or set compute.device to cpu",
    )


def _begin(upped: Upped, parts: tuple[Part, ...]) -> list[Part]:
    """Starts those that do not work, all at once: they need seconds each, and not each other. What a dead
    part has left goes first, but for flow runs, which need no worker to come to their end."""
    missing = [part for part in parts if not _works(upped.stack, part)]
    for part in missing:
        if part.ends_its_own or upped.stack.is_alive(part.name):
            end_part(upped.stack, part.name)
        _spawn(upped, part)
    return missing


def _await_all(upped: Upped, parts: list[Part], wishes: Wishes, watch: Watch) -> None:
    for part in parts:
        with watch(part.title):
            _await(upped, part, fixed=upped.mended or part.ports[:1] in {(name,) for name in wishes.ports})


def _works(stack: Stack, part: Part) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while stack.is_alive(part.name):
        if stack.listens(part.name) and part.healthy(stack):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_SECONDS)
    return False


def _spawn(upped: Upped, part: Part) -> None:
    stack = upped.stack
    upped.started.append(part.name)
    own = {name: stack.state.ports[name] for name in part.ports}
    command, environment = part.command(stack), part.environment(stack)
    stack.record(spawn(part.name, command, environment, stack.folder / "work", stack.log(part.name), own))


def _await(upped: Upped, part: Part, *, fixed: bool) -> None:
    """Waits until a part works. One that ends at once because somebody took its port meanwhile is started
    again on another, unless its ports are `fixed`."""
    for attempt in range(1, STARTS + 1):
        if _comes_up(upped.stack, part):
            return
        clash = part.ports and not upped.stack.is_alive(part.name) and _taken(upped.stack, part)
        end_part(upped.stack, part.name)
        if not clash or fixed or attempt == STARTS:
            raise _failure(upped.stack, part, bool(clash))
        now = upped.stack.state.ports
        upped.stack.change(ports=now | ports.choose(part.ports, now, ports.others(part.ports, now)))
        _spawn(upped, part)


def _taken(stack: Stack, part: Part) -> bool:
    return any(not ports.is_free(port) for port in ports.twins(part.ports, stack.state.ports))


def _comes_up(stack: Stack, part: Part) -> bool:
    deadline = time.monotonic() + part.seconds
    while time.monotonic() < deadline and stack.is_alive(part.name):
        if stack.listens(part.name) and part.healthy(stack):
            return True
        time.sleep(PAUSE_SECONDS)
    return False


def _failure(stack: Stack, part: Part, clash: bool) -> OrchestrationError:
    reason = "one of its ports is taken" if clash else "the last lines of its log say"
    return OrchestrationError(
        what=f"{part.title} ({part.name}) did not come up; {reason}:\n{last_lines(stack.log(part.name))}",
        where=str(stack.log(part.name)),
        fix="`mudg down` and `mudg up` choose other ports"
        if clash
        else "see docs/stack.md, and `mudg doctor`",
    )


def last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(f"    {line[:300]}" for line in lines[-LOG_LINES:]) or "    (it is empty)"


def _register(upped: Upped, wishes: Wishes, watch: Watch) -> None:
    """The server's side, and with it the parts that need the first ones. Deployments are declared while those
    come up, as reading flows takes as long."""
    stack, asked = upped.stack, wishes.index_cron
    new = not stack.state.registered or not is_known(stack)
    cron = None if asked == DEFAULT else asked or stack.state.index_cron
    limit = wishes.gpu_limit or stack.state.gpu_limit
    stack.write_environment()
    if new:
        make_pool(stack)
    if new or wishes.gpu_limit:
        limit_gpu_tasks(stack, limit or stack.state.workers)
    begun = _begin(upped, SECOND)
    if new or asked == DEFAULT:
        with watch("the deployments of prefect.yaml"):
            _deploy(stack)
    if cron and (new or asked):  # a new start has declared that of prefect.yaml
        schedule_index(stack, cron)
    _await_all(upped, begun, wishes, watch)
    stack.change(registered=True, index_cron=cron, gpu_limit=limit)


def _deploy(stack: Stack) -> None:
    """Prefect's own command, from where prefect.yaml lies, as paths in it may be relative."""
    file, log = prefect_file(), stack.log(DEPLOY)
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(file)]
    process = spawn(DEPLOY, command, environment_of(stack, DEPLOY), file.parent, log)
    if exit_code(process, DEPLOY_SECONDS) != 0:
        raise OrchestrationError(
            what=f"the deployments were not registered; the last lines of the log say:\n{last_lines(log)}",
            where=str(log),
            fix="see prefect.yaml, and `mudg doctor`",
        )
