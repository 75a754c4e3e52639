"""`mudg up`, `mudg down` and `mudg doctor`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from mudg.cli.output import console, settings_from, show, table_of
from mudg.ops.stack.running import Stack, use_stack
from mudg_core.settings import Json, Settings

COLOURS = {"ok": "green", "warning": "yellow", "fault": "red"}


@contextmanager
def watched(title: str) -> Iterator[None]:
    """A spinner while a part comes up, a tick and its time when it works."""
    started = time.monotonic()
    with console.status(f"{title} …"):
        yield
    console.print(f"[green]✓[/] {title} [dim]{time.monotonic() - started:.1f} s[/]", highlight=False)


def run_up(
    folder: Path,
    ports: dict[str, int],
    index_cron: str | None,
    gpu_limit: int | None,
    as_json: bool,
    settings: Settings,
) -> None:
    with console.status("looking at what is there …"):
        from mudg.ops.stack.start import Wishes, bring_up
    upped = bring_up(folder, settings, Wishes(ports, index_cron, gpu_limit), watched)
    notes = [*upped.notes, *foreign_places(settings, upped.stack)]
    for note in notes:
        console.print(note, markup=False, highlight=False)
    result = addresses(upped.stack) | {"started": upped.started, "notes": notes}
    show(result, _up_text(upped.stack, bool(upped.started)), as_json)


def foreign_places(settings: Settings, stack: Stack) -> list[str]:
    """A store or scheduler that the user has named, and that a stack with its own does not use."""
    ours = stack.environment()
    named = {"storage.url": settings.storage.url, "compute.dask_address": settings.compute.dask_address}
    plain = {"storage.url": Settings().storage.url, "compute.dask_address": None}
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
        ("UI", f"{stack.login_url}      # signs you in: share it with nobody"),
        ("S3", stack.s3_url),
        ("Dask", stack.dask_address),
        ("logs", folder / "logs"),
        ("next", f"source {folder}/env      # this shell's commands use the stack then"),
        ("", "mudg corpus add URL   # images of yours"),
        ("", "mudg index build      # once, or wait for its schedule"),
        ("", "mudg target submit SPEC.yaml"),
        ("", "mudg doctor      # is all well?"),
        ("", "mudg down"),
    ]
    said = "the stack is up" if started else "the stack was up already"
    return table_of(rows, (said, "")).replace(f"{said}  ", said, 1)


def run_down(folder: Path, with_data: bool, as_json: bool) -> None:
    from mudg.ops.stack.stop import take_down, wipe

    ended: list[str] = []
    with console.status("ending the stack …"):
        for name in take_down(folder):
            ended.append(name)
            console.print(f"[green]✓[/] {name} ended", highlight=False)
    wiped: list[str] = []
    if with_data:
        console.print(
            f"deleting all that the stack has stored in {folder}: artifacts, runs, logs and keys",
            style="bold yellow",
            markup=False,
            highlight=False,
        )
        wiped = wipe(folder)
    said = f"ended: {', '.join(ended)}" if ended else f"nothing of a stack is running in {folder}"
    said += f"\ndeleted: {', '.join(wiped)}" if wiped else ""
    said += f"\nits data stays in {folder}; `mudg up` starts on it again" if ended and not wiped else ""
    show({"ended": ended, "wiped": wiped}, said, as_json)


def run_doctor(folder: Path, as_json: bool, file: Path | None, changes: list[str] | None) -> None:
    """Exit code 1 says that something must be done."""
    stack = use_stack(folder)  # before Prefect is imported
    settings = settings_from(file, changes)
    from mudg.ops.doctor.examine import examine
    from mudg.ops.doctor.finding import Case

    with console.status("looking …") as status:
        findings = examine(Case(settings, folder, stack), lambda name: status.update(f"looking at {name} …"))
    faults = sum(one.level == "fault" for one in findings)
    rows = [(one.name, one.level, one.found) for one in findings]
    fixes = [f"{one.name}: {one.fix}" for one in findings if one.fix]
    text = table_of(rows, ("what", "how", "found"))
    text += "\n\nto do:\n" + "\n".join(f"  {fix}" for fix in fixes) if fixes else "\n\nall is well"
    show({"faults": faults, "checks": [one.described() for one in findings]}, text, as_json)
    if faults:
        raise typer.Exit(1)
