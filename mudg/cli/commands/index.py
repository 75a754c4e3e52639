"""`mudg index …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mudg.cli.output import AsJson, Overrides, SettingsFile, exit_codes, settings_from
from mudg_core.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Build, measure and manage the index of the image pool.")


@app.command("build")
def index_build(
    retrain: Annotated[
        bool, typer.Option(help="Train the cells anew, on all shards, even if the current ones would do.")
    ] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Embed the corpus, train the cells, populate the index, measure it and make it the current one.

    Only what is new is computed: shards that were added since are embedded and added, with the cells that are
    there. It becomes current only if recall@1 of held-out captions reaches `index.required_recall`.
    Example: `mudg index build --set corpus.rows=100000 --set index.cells=512`
    """
    with exit_codes(as_json):
        from mudg.cli.index import run_build

        run_build(retrain, as_json, file, changes)


@app.command("list")
def index_list(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Versions that were current, newest first."""
    with exit_codes(as_json):
        from mudg.cli.index import run_list

        run_list(as_json, settings_from(file, changes))


@app.command("promote")
def index_promote(
    index: Annotated[str, typer.Argument(help="`index/beginning-of-key`.", show_default=False)],
    force: Annotated[bool, typer.Option(help="Skip the recall check.")] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Make a version the current one, if its recall passes the gate.

    Promoting one that was current before withdraws the one that is: scheduled builds do not promote it again.
    """
    with exit_codes(as_json):
        from mudg.cli.index import run_promote

        run_promote(index, force, as_json, file, changes)


@app.command("rollback")
def index_rollback(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Go back to the version that was current before."""
    with exit_codes(as_json):
        from mudg.cli.index import run_rollback

        run_rollback(as_json, settings_from(file, changes))


@app.command("recall")
def index_recall(
    index: Annotated[
        str | None, typer.Argument(help="`index/beginning-of-key`.", show_default="the current one")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Also draw the curves (SVG).", show_default=False)] = None,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Measure recall against exact search, by vectors read and queries a second of CPU time.

    With captions that the index has never seen, and with images; intervals are at 95 %.
    """
    with exit_codes(as_json):
        from mudg.cli.index import run_recall

        run_recall(index, save, as_json, settings_from(file, changes))


@app.command("tune")
def index_tune(
    recall: Annotated[float, typer.Option(min=0.01, max=1.0, help="The recall that is wanted.")] = 0.9,
    at: Annotated[int, typer.Option(help="Of how many nearest images: 1 or 10.")] = 1,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Find the cheapest settings that reach a recall, on tuning queries, and say what they give on others.

    Example: `mudg index tune --recall 0.95 --at 10`
    """
    with exit_codes(as_json):
        if at not in (1, 10):
            raise InputError(what=f"recall at {at} is not measured", fix="use --at 1 or --at 10")

        from mudg.cli.index import run_tune

        run_tune(recall, 1 if at == 1 else 10, as_json, settings_from(file, changes))


@app.command("remove")
def index_remove(
    rows: Annotated[list[int], typer.Argument(help="Corpus rows, as `mudg search --json` shows them.")],
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Take rows out of the index for good (opt-out, takedown), in a new version that becomes current.

    Later builds leave them out too. The new version is the current one without them, whatever the settings:
    only the parts that hold them are made again, and shards that were added since wait for the next build.
    """
    with exit_codes(as_json):
        from mudg.cli.index import run_remove

        run_remove(rows, as_json, file, changes)
