"""The `mudg` command: what it is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from mudg.cli.commands import corpus, dataset, index, model, stack, store, target, use
from mudg.cli.output import quiet_libraries, show
from mudg_core import __version__

app = typer.Typer(
    name="mudg",
    help="Class names in, a finetuned CLIP classifier out, fed by an image pool that is indexed once.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.add_typer(use.app)
app.add_typer(store.app)
app.add_typer(stack.app)
app.add_typer(corpus.app, name="corpus")
app.add_typer(index.app, name="index")
app.add_typer(target.app, name="target")
app.add_typer(dataset.app, name="dataset")
app.add_typer(model.app, name="model")


def _version(asked: bool) -> None:
    if asked:
        show({"version": __version__}, f"mudg {__version__}", as_json=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    quiet_libraries()
