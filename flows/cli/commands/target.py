"""`mudg target …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.cli.output import AsJson, Overrides, SettingsFile, exit_codes
from mudg_core.target.spec import load_target

app = typer.Typer(no_args_is_help=True, help="Build a classifier for a target.")


@app.command("run")
def target_run(
    spec: Annotated[Path, typer.Argument(help="Target spec (YAML).", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="Copy the model there: a new or empty folder.", show_default=False),
    ] = None,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Build a classifier for the classes in SPEC, from the current index.

    A spec needs a name and class names; the rest is optional:

        name: footwear
        classes: [shoe, boot]        # or classes_from: a list or a dataset folder
        synonyms: {boot: [wellington]}
        template: a photo of a {}.
        evaluation: path/to/folder   # a dataset: DOMAIN/CLASS/*.jpg, split_zhou_*.json, ImageNet …
        seeds: [0, 1, 2]
        per_class: 32                # also neighbors, augmentations, iterations
        settings: {train: {diversity: 0.3}}

    `mudg target list` shows specs that are ready to take.
    """
    with exit_codes(as_json):
        target = load_target(spec)  # before torch and Prefect are loaded: a bad spec is told at once
        if out is not None:
            from mudg_core.dataset.export.place import check_place

            check_place(out)

        from flows.cli.runs import run_target

        run_target(target, out, as_json, file, changes)


@app.command("list")
def target_list(as_json: AsJson = False) -> None:
    """List the specs that come with mudg: the paper's twenty tasks, with its hyperparameters and templates.

    n images are retrieved for each query, m augmentations are kept, k1 images for each class, N iterations.
    """
    with exit_codes(as_json):
        from flows.cli.target import run_list

        run_list(as_json)


@app.command("init")
def target_init(
    name: Annotated[str, typer.Argument(help="One of `mudg target list`.", show_default=False)],
    out: Annotated[Path | None, typer.Argument(help="The file to write.", show_default="NAME.yaml")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Your copy of the dataset: a folder, a list or a split file.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a spec of a known task that `mudg target run` takes.

    Class names of the large tasks are read from your copy of the dataset, which is also evaluated on if its
    images are there. Example: `mudg target init pacs --data datasets/PACS`
    """
    with exit_codes(as_json):
        from flows.cli.target import run_init

        run_init(name, data, out, as_json)


@app.command("prompts")
def target_prompts(
    spec: Annotated[Path, typer.Argument(help="Target spec (YAML).", show_default=False)],
    save: Annotated[Path | None, typer.Option(help="Also draw the study (SVG).", show_default=False)] = None,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Compare ways to say the classes in SPEC, by zero-shot accuracy on its evaluation images.

    Every `augment.method`, ensembles of 1, 2, 4 … augmentations, and single descriptors: whether those that
    keep label features apart classify better. Needs no index. Files: `--set augment.descriptors=FILE.json`
    adds the method per-class, `--set augment.prompts=FILE.json` adds cupl.
    """
    with exit_codes(as_json):
        target = load_target(spec)

        from flows.cli.target import run_prompts

        run_prompts(target, save, as_json, file, changes)
