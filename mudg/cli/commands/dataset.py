"""`mudg dataset …`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mudg.cli.output import AsJson, Overrides, SettingsFile, exit_codes, settings_from

app = typer.Typer(no_args_is_help=True, help="See and take out the training sets of targets.")


class Format(StrEnum):
    """Layouts that a training set can be exported to."""

    imagefolder = "imagefolder"
    huggingface = "huggingface"
    webdataset = "webdataset"


@app.command("list")
def dataset_list(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Training sets that were made: for which target, how many images, which classes, and when.

    One without a target is a baseline, or its report is not written yet.
    """
    with exit_codes(as_json):
        from mudg.cli.dataset import run_list

        run_list(as_json, settings_from(file, changes))


@app.command("export")
def dataset_export(
    dataset: Annotated[str, typer.Argument(help="`dataset/beginning-of-key`.", show_default=False)],
    out: Annotated[Path, typer.Argument(help="A new or empty folder.", show_default=False)],
    to: Annotated[Format, typer.Option(help="The layout.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Write a training set for other tools, with where every image came from and a README.

    Images are copied as they were found, byte by byte. Their labels are pseudo-labels, and they belong to
    their owners. Example: `mudg dataset export dataset/3fa9 ./animals --to imagefolder`
    """
    with exit_codes(as_json):
        from mudg.cli.dataset import run_export

        run_export(dataset, out, to, force, as_json, settings_from(file, changes))
