"""`mudg up`, `mudg down` and `mudg doctor`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from mudg.cli.command import Flags, Output, command
from mudg.cli.output import console, say, table_of, tick
from mudg.ops.stack import FOLDER

if TYPE_CHECKING:
    from mudg.ops.stack.running import Stack
    from mudg_core.settings import Json, Settings

app = typer.Typer()
Folder = Annotated[Path, Option(help="Folder with everything of the stack.")]


@command(app, "up")
def up(
    flags: Flags,
    folder: Folder = FOLDER,
    ui_port: Annotated[
        int | None,
        Option(min=1, max=65_535, help="Port of Prefect's UI.", show_default="4200, or the next free one"),
    ] = None,
    s3_port: Annotated[
        int | None,
        Option(
            min=1,
            max=65_535,
            help="First of four consecutive S3 ports; gRPC uses each + 10000.",
            show_default="free ones",
        ),
    ] = None,
    dask_port: Annotated[
        int | None,
        Option(
            min=1,
            max=65_535,
            help="First of two consecutive ports of Dask's scheduler.",
            show_default="free ones",
        ),
    ] = None,
    workers: Annotated[
        int | None, Option(min=1, max=256, help="Number of Dask workers.", show_default="compute.workers")
    ] = None,
    index_cron: Annotated[
        str | None,
        Option(
            metavar="CRON",
            help="When the index is built, in UTC; `off`: only by hand; `default`: as prefect.yaml says.",
            show_default="as before, or prefect.yaml",
        ),
    ] = None,
    gpu_limit: Annotated[
        int | None,
        Option(
            min=1, help="Number of GPU tasks at a time.", show_default="GPUs, or Dask workers without any"
        ),
    ] = None,
) -> Output:
    """Start a team's stack on this machine: Prefect with its UI, an S3 store, Dask, and mudg's deployments.

    Needs no Docker and no root, and is not reachable from the network. It runs until `mudg down`. Called
    again, it starts what has died. The settings of this command hold for every run in the stack.

    Example: `mudg up --workers 4 --index-cron "0 3 * * *" -s settings.yaml`
    """
    settings = flags.settings(hint=False, more=[f"compute.workers={workers}"] if workers else [])
    with console.status("checking what is running …"):
        from mudg.ops.stack.start import StartOptions, start_stack
    ports = {
        name: port for name, port in (("prefect", ui_port), ("s3", s3_port), ("dask", dask_port)) if port
    }
    result = start_stack(folder, settings, StartOptions(ports, index_cron, gpu_limit), _watched)
    notes = [*result.notes, *foreign_places(settings, result.stack)]
    for note in notes:
        console.print(note, markup=False, highlight=False)
    facts = addresses(result.stack) | {"started": result.started, "notes": notes}
    return Output(facts, _up_text(result.stack, bool(result.started)))


@command(app, "down")
def down(
    folder: Folder = FOLDER,
    wipe: Annotated[
        bool, Option("--wipe", help="Also delete all that the stack has stored: artifacts and runs.")
    ] = False,
) -> Output:
    """Stop what `mudg up` has started, and nothing else. What the stack has stored stays.

    Flow runs get some seconds to end in order; they resume when they are run again. Example: `mudg down`
    """
    from mudg.ops.stack import stop

    ended: list[str] = []
    with console.status("stopping the stack …"):
        for name in stop.stop_stack(folder):
            ended.append(name)
            tick(f"{name} stopped")
    wiped: list[str] = []
    if wipe:
        say(
            f"deleting all that the stack has stored in {folder}: artifacts, runs, logs and keys",
            "bold yellow",
        )
        wiped = stop.wipe(folder)
    text = f"stopped: {', '.join(ended)}" if ended else f"nothing of a stack is running in {folder}"
    text += f"\ndeleted: {', '.join(wiped)}" if wiped else ""
    text += f"\nits data stays in {folder}; `mudg up` starts on it again" if ended and not wiped else ""
    return Output({"ended": ended, "wiped": wiped}, text)


@command(app, "doctor")
def doctor(flags: Flags, folder: Folder = FOLDER) -> Output:
    """Check the installation and suggest fixes: versions, storage, Prefect, Dask, GPU, disk, the stack.

    Exit code 1 if there is a fault. Changes nothing, but for a test object in the store, which is deleted
    again. Example: `mudg doctor --json`
    """
    from mudg.ops.stack.running import use_stack

    stack = use_stack(folder)  # before Prefect is imported
    settings = flags.settings()
    from mudg.ops.doctor.examine import Installation, examine

    with console.status("checking …") as status:
        installation = Installation(settings, folder, stack)
        findings = examine(installation, lambda name: status.update(f"checking {name} …"))
    faults = sum(one.level == "fault" for one in findings)
    fixes = [f"  {one.name}: {one.fix}" for one in findings if one.fix]
    text = table_of([(one.name, one.level, one.detail) for one in findings], ("check", "result", "detail"))
    text += "\n\nto do:\n" + "\n".join(fixes) if fixes else "\n\nall is well"
    checks = [asdict(finding) for finding in findings]
    return Output({"faults": faults, "checks": checks}, text, int(bool(faults)))


@contextmanager
def _watched(title: str) -> Iterator[None]:
    """A spinner while a part starts, a tick and its time when it works."""
    started = time.monotonic()
    with console.status(f"{title} …"):
        yield
    tick(title, f"{time.monotonic() - started:.1f} s")


def foreign_places(settings: Settings, stack: Stack) -> list[str]:
    """A store or scheduler that the user has named, and that a stack with its own does not use."""
    ours = stack.environment()
    named = {"storage.url": settings.storage.url, "compute.dask_address": settings.compute.dask_address}
    plain = {"storage.url": type(settings)().storage.url, "compute.dask_address": None}
    return [
        f"{name} is {value} in your settings: the stack has its own"
        for name, value in named.items()
        if value not in (plain[name], ours[f"MUDG_{name}".replace(".", "__").upper()])
    ]


def addresses(stack: Stack) -> Json:
    return {
        "ui": stack.ui_url,
        "api": stack.api_url,
        "s3": stack.s3_url,
        "dask": stack.dask_address,
        "folder": str(stack.folder),
        "logs": str(stack.folder / "logs"),
        "env": str(stack.folder / "env"),
        "processes": {one.name: one.pid for one in stack.state.processes},
    }


def _up_text(stack: Stack, started: bool) -> str:
    here = Path.cwd()
    folder = stack.folder.relative_to(here) if stack.folder.is_relative_to(here) else stack.folder
    rows = [
        ("UI", f"{stack.login_url}      # signs you in: do not share it"),
        ("S3", stack.s3_url),
        ("Dask", stack.dask_address),
        ("logs", folder / "logs"),
        ("next", f"source {folder}/env      # this shell's commands use the stack then"),
        ("", "mudg corpus add URL   # images of yours"),
        ("", "mudg index build      # once, or wait for its schedule"),
        ("", "mudg target submit SPEC.yaml"),
        ("", "mudg doctor      # check all of it"),
        ("", "mudg down"),
    ]
    title = "the stack is up" if started else "the stack was up already"
    return table_of(rows, (title, "")).replace(f"{title}  ", title, 1)
