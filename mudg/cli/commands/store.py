"""Commands on the top level about what the store holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mudg.cli.output import AsJson, Overrides, SettingsFile, exit_codes, settings_from

app = typer.Typer()


@app.command("show")
def show_artifact(
    artifact: Annotated[
        str, typer.Argument(help="`stage/beginning-of-key`, a URI, or `index-current`.", show_default=False)
    ],
    verify: Annotated[bool, typer.Option(help="Read every byte and compare checksums.")] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Show an artifact: its files, facts, settings, and the artifacts it was made from."""
    from mudg.cli.inspect import show_manifest

    with exit_codes(as_json):
        show_manifest(artifact, verify, as_json, settings_from(file, changes))


@app.command("lineage")
def lineage(
    artifact: Annotated[
        str, typer.Argument(help="`stage/beginning-of-key`, a URI, or `index-current`.", show_default=False)
    ],
    children: Annotated[bool, typer.Option("--children", help="Also what was made from it.")] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the graph (SVG).", show_default=False)
    ] = None,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Show what an artifact was made from, back to the corpus: when, how large, by which settings.

    Example: `mudg lineage model/3fa9 --children --picture model.svg`
    """
    with exit_codes(as_json):
        from mudg.cli.lineage import run_lineage

        run_lineage(artifact, children, picture, as_json, settings_from(file, changes))


@app.command("gc")
def collect_garbage(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be deleted, and why the rest stays.")
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE", help="30d or 12h, instead of the days in the settings.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Delete what nobody needs any more, in two steps: condemned now, deleted by a later run.

    Kept are the current index and the versions before it, whatever a run is using, reports, models and
    datasets for as long as the settings say (`gc.*`), and all that these were made from. What is condemned
    goes after `gc.grace_hours`, unless a run wants it meanwhile. Example: `mudg gc --dry-run`
    """
    with exit_codes(as_json):
        from mudg.cli.storage import run_gc

        run_gc(dry_run, older_than, as_json, settings_from(file, changes))


@app.command("forget")
def forget(
    url: Annotated[
        list[str] | None, typer.Option(help="Address of an image; may be repeated.", show_default=False)
    ] = None,
    row: Annotated[
        list[int] | None,
        typer.Option(
            help="Corpus row, as `mudg search --json` shows it; may be repeated.", show_default=False
        ),
    ] = None,
    listed: Annotated[
        Path | None,
        typer.Option("--file", help="A text file: one address or row number a line.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be touched.")] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Forget images for good: out of the index, training sets and exports, and out of later builds.

    The index gets a new version without them, which becomes current. Training sets that have one leave it
    out from now on, and models that were trained on one are marked: `mudg show` and `mudg lineage` say so. An
    image is known by its address and by its bytes, so it does not come back with new shards. Example:
    `mudg forget --url https://example.org/me.jpg`
    """
    with exit_codes(as_json):
        from mudg.cli.takedown import run_takedown

        run_takedown(url or (), row or (), listed, dry_run, as_json, file, changes)
