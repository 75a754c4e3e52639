"""`mudg target …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mudg.cli.output import AsJson, Overrides, SettingsFile, exit_codes, settings_from, warn_of_lookalikes
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

    `mudg target ready` shows specs that are ready to take.
    """
    with exit_codes(as_json):
        target = load_target(spec)  # before torch and Prefect are loaded: a bad spec is told at once
        warn_of_lookalikes(target.classes)
        if out is not None:
            from mudg_core.dataset.export import check_place

            check_place(out)

        from mudg.cli.runs import run_target

        run_target(target, out, as_json, file, changes)


@app.command("submit")
def target_submit(
    spec: Annotated[Path, typer.Argument(help="Target spec (YAML).", show_default=False)],
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end.")] = False,
    minutes: Annotated[float, typer.Option(min=0.1, help="With --wait: how long, at most.")] = 1440.0,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Have the team's servers build a classifier for the classes in SPEC, and print where to watch it.

    Stores the spec, sends the event that starts a run of the deployment build-classifier, and prints the
    run's address in Prefect's UI. Servers: PREFECT_API_URL and `storage.url`, or what `mudg up` started here.
    Example: `mudg target submit footwear.yaml --wait`
    """
    with exit_codes(as_json):
        from mudg_core.target.submitted_spec import read_here

        target, files = read_here(spec)
        warn_of_lookalikes(target.classes)

        from mudg.cli.servers import use_servers

        use_servers()

        from mudg.cli.submissions import run_submit

        run_submit(target, files, spec, minutes if wait else 0.0, as_json, settings_from(file, changes))


@app.command("status")
def target_status(
    which: Annotated[str, typer.Argument(help="A target's name, or a submission's id.", show_default=False)],
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Show what became of a submission: its run, its state, and what was made."""
    with exit_codes(as_json):
        from mudg.cli.servers import use_servers

        use_servers()

        from mudg.cli.submissions import run_status

        run_status(which, as_json, settings_from(file, changes))


@app.command("list")
def target_list(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, at most.")] = 20,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """List what was submitted, newest first, with the state of its runs."""
    with exit_codes(as_json):
        from mudg.cli.servers import use_servers

        use_servers()

        from mudg.cli.submissions import run_list

        run_list(limit, as_json, settings_from(file, changes))


@app.command("cancel")
def target_cancel(
    which: Annotated[str, typer.Argument(help="A target's name, or a submission's id.", show_default=False)],
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Cancel a submission: a run that goes on is ended, one that has not begun never will."""
    with exit_codes(as_json):
        from mudg.cli.servers import use_servers

        use_servers()

        from mudg.cli.submissions import run_cancel

        run_cancel(which, as_json, settings_from(file, changes))


@app.command("ready")
def target_ready(as_json: AsJson = False) -> None:
    """List the specs that come with mudg: the paper's twenty tasks, with its hyperparameters and templates.

    n images are retrieved for each query, m augmentations are kept, k1 images for each class, N iterations.
    """
    with exit_codes(as_json):
        from mudg.cli.target import run_ready

        run_ready(as_json)


@app.command("init")
def target_init(
    name: Annotated[str, typer.Argument(help="One of `mudg target ready`.", show_default=False)],
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
        from mudg.cli.target import run_init

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

        from mudg.cli.target import run_prompts

        run_prompts(target, save, as_json, file, changes)
