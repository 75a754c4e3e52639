"""`mudg model …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mudg.cli.output import AsJson, Overrides, SettingsFile, exit_codes, settings_from

app = typer.Typer(no_args_is_help=True, help="See and take out the classifiers of targets.")


@app.command("list")
def model_list(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Classifiers that were made: for which target, of how many classes and images, and when."""
    with exit_codes(as_json):
        from mudg.cli.model import run_list

        run_list(as_json, settings_from(file, changes))


@app.command("export")
def model_export(
    model: Annotated[
        str, typer.Argument(help="A target's name, or `classifier/beginning-of-key`.", show_default=False)
    ],
    out: Annotated[Path, typer.Argument(help="A new or empty folder.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Copy a target's classifier out of the store: weights that open_clip loads, classes, and a model card.

    Of several the latest is taken. Example: `mudg model export animals ./animals`
    """
    with exit_codes(as_json):
        from mudg.cli.model import run_export

        run_export(model, out, force, as_json, settings_from(file, changes))


@app.command("onnx")
def model_onnx(
    folder: Annotated[
        Path, typer.Argument(help="A folder that `mudg model export` wrote.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Write both towers of an exported model as ONNX graphs beside its weights, checked against torch.

    Needs the extra onnx: `pip install -e '.[cpu,onnx]'` in the checkout (`make setup` has it). Takes half a
    minute and about four times the memory of the weights.
    Example: `mudg model onnx ./animals` writes `visual.onnx` and `text.onnx`.
    """
    with exit_codes(as_json):
        from mudg.cli.model import run_onnx

        run_onnx(folder, as_json)
