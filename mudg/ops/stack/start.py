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
from mudg.ops.stack.credentials import make_certificate
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
from mudg.ops.stack.prefect_setup import (
    DEFAULT,
    check_cron,
    create_pool,
    is_registered,
    limit_gpu_tasks,
    prefect_file,
    schedule_index,
)
from mudg.ops.stack.processes import exit_code, spawn
from mudg.ops.stack.running import Stack, find_stack, settings_for_stack
from mudg.ops.stack.state import FOLDERS, State, check_folder, locked, read_state, write_state
from mudg.ops.stack.stop import crash_open_runs, stop_part
from mudg_core.errors import OrchestrationError, SettingsError
from mudg_core.settings import ComputeSettings, Settings
from tasks.executors.clusters import gpus, kind_of
from tasks.executors.prefect_database import lay_out

STARTS = 3
DEPLOY_SECONDS = 300.0
PAUSE_SECONDS = 0.2
BUSY_SECONDS = 60.0  # how long a part that lives may only be busy
LOG_LINES = 15

Progress = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True)
class StartOptions:
    """The user's; None is for us to choose, or as it was before."""

    ports: Mapping[str, int] = field(default_factory=dict)  # `prefect`, `s3` and `dask`: the first of each
    index_cron: str | None = None
    gpu_limit: int | None = None


@dataclass
class StartResult:
    """`was_running`: its processes know each other's ports and settings already."""

    stack: Stack
    was_running: bool = False
    started: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def start_stack(folder: Path, settings: Settings, options: StartOptions, progress: Progress) -> StartResult:
    """A stack that works. Of one that is there already, only what has died is started again, as it was. If
    anything does not come up, whatever this call has started is stopped again."""
    weed(), prefect_file()  # what is not installed is reported before anything is started
    check_folder(folder)
    if options.index_cron:
        check_cron(options.index_cron)
    with locked(folder):
        result = _running(folder, settings, options) or _new(folder, settings, options)
        try:
            _wait_for(result, _start_missing(result, FIRST), options, progress)
            if not result.was_running:  # runs of a machine that went down would be shown as running for ever
                crash_open_runs(result.stack)
            _register(result, options, progress)
        except BaseException:
            for name in (DEPLOY, *reversed(result.started)):
                stop_part(result.stack, name)
            raise
    return result


def _running(folder: Path, settings: Settings, options: StartOptions) -> StartResult | None:
    """One that runs keeps its settings and ports, which its processes know."""
    stack = find_stack(folder)
    if stack is None:
        return None
    result = StartResult(stack, was_running=True)
    if settings_for_stack(settings) not in (stack.state.settings, {}):
        result.notes.append(
            "it keeps the settings that it was started with: `mudg down` first to change them"
        )
    if any(stack.state.ports[name] != port for name, port in options.ports.items()):
        result.notes.append("it keeps its ports: `mudg down` first to change them")
    return result


def _new(folder: Path, settings: Settings, options: StartOptions) -> StartResult:
    """On the ports and data of the last start if there was one."""
    before = read_state(folder) or State(id="")
    if before.id:  # what a killed `mudg up` has left would be in the way
        stack = Stack(folder, before)
        for name in (DEPLOY, *reversed(PARTS)):
            stop_part(stack, name)
    chosen = ports.choose_all(before.ports, options.ports)
    state = State(
        id=before.id or token_hex(8),
        ports=chosen,
        settings=settings_for_stack(settings),
        workers=_workers(settings.compute),
        index_cron=before.index_cron,
        gpu_limit=before.gpu_limit,
    )
    write_state(folder, state)
    result = StartResult(Stack(folder, state))
    make_certificate(result.stack.folder)
    for name in FOLDERS:
        (folder / name).mkdir(exist_ok=True)
    write_dask_config(result.stack)
    lay_out(folder / "prefect" / "prefect.db")
    if "prefect" not in options.ports and chosen["prefect"] != ports.UI_PORT:
        result.notes.append(f"port {ports.UI_PORT} is taken: the UI is on {chosen['prefect']}")
    if before.index_cron and not options.index_cron:
        result.notes.append(f"the schedule of the index is as before: {before.index_cron}")
    return result


def _workers(compute: ComputeSettings) -> int:
    """On GPUs there is one for each, whatever `compute.workers` is."""
    if kind_of(compute) != "cuda":
        return compute.workers
    if count := gpus():
        return count
    raise SettingsError(
        what="compute.device is cuda, and torch sees no GPU",
        where="compute.device",
        fix="fix the driver or torch's build (`mudg doctor`), or set compute.device to cpu",
    )


def _start_missing(result: StartResult, parts: tuple[Part, ...]) -> list[Part]:
    """Starts those that do not work, all at once: they need seconds each, and not each other. What a dead
    part has left goes first, but for flow runs, which need no worker to come to their end."""
    missing = [part for part in parts if not _comes_up(result.stack, part, BUSY_SECONDS)]
    for part in missing:
        if part.ends_its_own or result.stack.is_alive(part.name):
            stop_part(result.stack, part.name)
        _spawn(result, part)
    return missing


def _spawn(result: StartResult, part: Part) -> None:
    stack = result.stack
    result.started.append(part.name)
    own_ports = {name: stack.state.ports[name] for name in part.ports}
    environment = environment_of(stack, part.name, part.environment(stack))
    folder, log = stack.folder / "work", stack.log(part.name)
    stack.record(spawn(part.name, part.command(stack), environment, folder, log, own_ports))


def _comes_up(stack: Stack, part: Part, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and stack.is_alive(part.name):
        if stack.listens(part.name) and part.healthy(stack):
            return True
        time.sleep(PAUSE_SECONDS)
    return False


def _wait_for(result: StartResult, parts: list[Part], options: StartOptions, progress: Progress) -> None:
    for part in parts:
        with progress(part.title):
            _wait_for_part(result, part, fixed=result.was_running or bool({*part.ports} & {*options.ports}))


def _wait_for_part(result: StartResult, part: Part, *, fixed: bool) -> None:
    """One that ends at once because somebody took its port meanwhile is started again on another, unless its
    ports are `fixed`."""
    stack = result.stack
    for attempt in range(1, STARTS + 1):
        if _comes_up(stack, part, part.seconds):
            return
        opened = ports.opened(part.ports, stack.state.ports)
        clash = not stack.is_alive(part.name) and any(not ports.is_free(port) for port in opened)
        stop_part(stack, part.name)
        if not clash or fixed or attempt == STARTS:
            raise _failure(stack, part, clash)
        current = stack.state.ports
        used = ports.of_other_parts(part.ports, current)
        stack.change(ports=current | ports.choose(part.ports, current, used))
        _spawn(result, part)


def _failure(stack: Stack, part: Part, clash: bool) -> OrchestrationError:
    log = stack.log(part.name)
    reason, fix = "the last lines of its log", "see docs/stack.md, and `mudg doctor`"
    if clash:
        reason, fix = "one of its ports is taken", "`mudg down` and `mudg up` choose other ports"
    what = f"{part.title} ({part.name}) did not come up; {reason}:\n{_last_lines(log)}"
    return OrchestrationError(what=what, where=str(log), fix=fix)


def _last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(f"    {line[:300]}" for line in lines[-LOG_LINES:]) or "    (it is empty)"


def _register(result: StartResult, options: StartOptions, progress: Progress) -> None:
    """The server's side, and with it the parts that need the first ones. Deployments are declared while those
    come up, as reading flows takes as long."""
    stack, wanted = result.stack, options.index_cron
    new = not stack.state.registered or not is_registered(stack)
    cron = None if wanted == DEFAULT else wanted or stack.state.index_cron
    limit = options.gpu_limit or stack.state.gpu_limit
    stack.write_environment()
    if new:
        create_pool(stack)
    if new or options.gpu_limit:
        limit_gpu_tasks(stack, limit or stack.state.workers)
    starting = _start_missing(result, SECOND)
    if new or wanted == DEFAULT:
        with progress("the deployments of prefect.yaml"):
            _deploy(stack)
    if cron and (new or wanted):  # a new start has declared that of prefect.yaml
        schedule_index(stack, cron)
    _wait_for(result, starting, options, progress)
    stack.change(registered=True, index_cron=cron, gpu_limit=limit)


def _deploy(stack: Stack) -> None:
    """Prefect's own command, from where prefect.yaml lies, as paths in it may be relative."""
    file, log = prefect_file(), stack.log(DEPLOY)
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(file)]
    process = spawn(DEPLOY, command, environment_of(stack, DEPLOY), file.parent, log)
    if exit_code(process, DEPLOY_SECONDS) != 0:
        raise OrchestrationError(
            what=f"the deployments were not registered; the last lines of the log:\n{_last_lines(log)}",
            where=str(log),
            fix="see prefect.yaml, and `mudg doctor`",
        )
