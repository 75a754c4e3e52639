"""Commands on the top level about a team's stack on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mudg.cli.output import AsJson, Overrides, SettingsFile, exit_codes, settings_from
from mudg.ops.stack.running import FOLDER

app = typer.Typer()

Folder = Annotated[Path, typer.Option(help="Where the stack keeps all that it has.")]


@app.command("up")
def up(
    folder: Folder = FOLDER,
    ui_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65_535, help="Port of Prefect's UI.", show_default="4200, or the next free one"
        ),
    ] = None,
    s3_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_535,
            help="First of four consecutive S3 ports; gRPC uses each + 10000.",
            show_default="free ones",
        ),
    ] = None,
    dask_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_535,
            help="First of two consecutive ports of Dask's scheduler.",
            show_default="free ones",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Number of Dask workers.", show_default="compute.workers"),
    ] = None,
    index_cron: Annotated[
        str | None,
        typer.Option(
            metavar="CRON",
            help="When the index is built, in UTC; `off`: only by hand; `default`: as prefect.yaml says.",
            show_default="as before, or prefect.yaml",
        ),
    ] = None,
    gpu_limit: Annotated[
        int | None,
        typer.Option(min=1, help="GPU tasks at a time.", show_default="GPUs, or Dask workers without any"),
    ] = None,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Start a team's stack on this machine: Prefect with its UI, an S3 store, Dask, and our deployments.

    No Docker, no root, nothing that others on the network can reach. It runs on after this command, until
    `mudg down`. Called again, it starts what has died. Settings given here are those of every run in it.
    Example: `mudg up --workers 4 --index-cron "0 3 * * *" -s settings.yaml`
    """
    with exit_codes(as_json):
        wanted = [*(changes or ()), *([f"compute.workers={workers}"] if workers else [])]
        settings = settings_from(file, wanted, hint=False)

        from mudg.cli.stack import run_up

        ports = {"prefect": ui_port, "s3": s3_port, "dask": dask_port}
        named = {name: port for name, port in ports.items() if port}
        run_up(folder, named, index_cron, gpu_limit, as_json, settings)


@app.command("down")
def down(
    folder: Folder = FOLDER,
    wipe: Annotated[
        bool, typer.Option("--wipe", help="Also delete all that the stack has stored: artifacts and runs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """End what `mudg up` has started, and nothing else. What the stack has stored stays.

    Flow runs that are at work get some seconds to end in order; they resume when they are run again.
    """
    with exit_codes(as_json):
        from mudg.cli.stack import run_down

        run_down(folder, wipe, as_json)


@app.command("doctor")
def doctor(
    folder: Folder = FOLDER,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Check the installation and suggest fixes: versions, storage, Prefect, Dask, GPU, disk, the stack.

    Exit code 1 if something is at fault. Changes nothing, but for an object in the store that it puts there
    to see what the store does, and takes away again.
    """
    with exit_codes(as_json):
        from mudg.cli.stack import run_doctor

        run_doctor(folder, as_json, file, changes)
