"""`mudg corpus …`."""

from __future__ import annotations

from typing import Annotated

import typer

from mudg.cli.output import AsJson, Overrides, SettingsFile, exit_codes, settings_from

app = typer.Typer(no_args_is_help=True, help="Say what the image pool is made of.")


@app.command("add")
def corpus_add(
    url: Annotated[
        str, typer.Argument(help="A path, file:///path or s3://bucket/prefix; also one .tar or .parquet.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is there.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Register all of a source anew whose files have changed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Replace it; without, only say what follows.")] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Look at a source, say what it has, and register it. Nothing is copied or embedded yet.

    Taken are: WebDataset tars (as img2dataset writes them), parquet files of url and caption (downloaded by
    the next build), embeddings in clip-retrieval's layout (`img_emb/ text_emb/ metadata/`), and folders of
    images (captions in `.txt` files beside them). Adding a source again registers the files that came
    since. Example: `mudg corpus add s3://bucket/laion --set storage.endpoint_url=https://s3.example.org`
    """
    with exit_codes(as_json):
        if replace:
            from mudg.cli.corpus_remove import run_replace

            run_replace(url, yes and not dry_run, as_json, settings_from(file, changes))
        else:
            from mudg.cli.corpus import run_add

            run_add(url, dry_run, as_json, settings_from(file, changes))


@app.command("remove")
def corpus_remove(
    source: Annotated[str, typer.Argument(help="As `mudg corpus status` shows it; it need not exist.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without, only say what follows.")] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Take a source out of the corpus. Without --yes, only say what follows for the index and lineage."""
    with exit_codes(as_json):
        from mudg.cli.corpus_remove import run_remove

        run_remove(source, yes, as_json, settings_from(file, changes))


@app.command("status")
def corpus_status(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Show every source: shards, rows, what was embedded when, and what was refused and why."""
    with exit_codes(as_json):
        from mudg.cli.corpus import run_status

        run_status(as_json, settings_from(file, changes))
