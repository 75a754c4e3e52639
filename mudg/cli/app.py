"""The `mudg` command: all commands, in the panels of `mudg --help`."""

from __future__ import annotations

import logging
import warnings
from typing import Annotated, Any

import typer

from mudg.cli import (
    artifact,
    compare,
    corpus,
    dataset,
    demo,
    evaluate,
    index,
    model,
    plan,
    predict,
    stack,
    store,
    submissions,
    target,
)
from mudg.cli.command import Group
from mudg.cli.output import show
from mudg_core import __version__

PANELS = {
    "Get started": ("demo", "plan", "settings", "doctor"),
    "Images and index": ("corpus", "index", "search"),
    "Targets and models": ("target", "compare", "dataset", "model", "predict", "evaluate"),
    "Store": ("show", "lineage", "takedown", "gc"),
    "Servers": ("up", "down"),
}


class Root(Group):
    """Commands in the order of their panels; hidden ones come last."""

    def list_commands(self, ctx: Any) -> list[str]:
        for panel, names in PANELS.items():
            for name in names:
                part: Any = self.commands[name]
                part.rich_help_panel = panel
        listed = [name for names in PANELS.values() for name in names]
        return [*listed, *(name for name in self.commands if name not in listed)]


app = typer.Typer(
    name="mudg",
    cls=Root,
    help="Class names in, a finetuned CLIP classifier out, fed by an image pool that is indexed once.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
target.app.add_typer(submissions.app)
for part in (artifact, compare, demo, evaluate, plan, predict, stack, store):
    app.add_typer(part.app)
for noun in (corpus, index, target, dataset, model):
    app.add_typer(noun.app, name=noun.__name__.rpartition(".")[2])


def _version(wanted: bool) -> None:
    if wanted:
        show({}, f"mudg {__version__}", as_json=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Libraries report what is wrong, and nothing else."""
    warnings.simplefilter("ignore")
    logging.getLogger("httpx").setLevel(logging.ERROR)
