"""Commands on the top level that run something, or say what a run would cost."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from mudg.cli.output import AsJson, Overrides, SettingsFile, exit_codes, settings_from, show
from mudg_core.errors import InputError

app = typer.Typer()


class Prompts(StrEnum):
    """How a classifier's classes are said."""

    single = "single"
    averaged = "averaged"


@app.command()
def demo(
    full: Annotated[
        bool, typer.Option(help="Three targets with three seeds each (up to 40 minutes).")
    ] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Run everything on the built-in demo world: no server, account or download.

    The first run takes a few minutes; the second finds every stage done and takes seconds. What is made goes
    to `.mudg/` (change it with `--set storage.url=file:///other/place`).
    """
    from mudg.cli.runs import run_demo

    with exit_codes(as_json):
        run_demo(full, as_json, file, changes)


@app.command()
def search(
    text: Annotated[
        str, typer.Argument(help='What to look for, e.g. "a photo of a red boat".', show_default=False)
    ],
    neighbors: Annotated[
        int, typer.Option("--neighbors", "-n", min=1, max=1000, help="How many images.")
    ] = 10,
    probes: Annotated[
        int | None, typer.Option(min=1, help="Cells to read.", show_default="index.probes")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Also save the images found as one picture.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Search the current index with a sentence."""
    from mudg.cli.search import run_search

    with exit_codes(as_json):
        if not text.strip() or len(text) > 1000:
            raise InputError(what="the text to look for is empty or longer than 1000 characters")
        run_search(text, neighbors, probes, save, as_json, file, changes)


@app.command()
def predict(
    model: Annotated[
        str,
        typer.Argument(
            help="A folder from `mudg model export`, a target's name, or `classifier/beginning-of-key`.",
            show_default=False,
        ),
    ],
    images: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders (with all below them), patterns, or - for a list on standard input.",
            show_default=False,
        ),
    ],
    top: Annotated[int, typer.Option(min=1, max=1000, help="Classes told for each image, best first.")] = 1,
    prompts: Annotated[Prompts, typer.Option(help="How classes are said.")] = Prompts.single,
    as_csv: Annotated[bool, typer.Option("--csv", help="Write CSV, one line an image.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write there instead of standard output.", show_default=False)
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, max=16_384, help="Images at a time.", show_default="32, or 256 on a GPU"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON, one line an image, and a last line with counts.")
    ] = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Classify images with a finished classifier.

    An image that cannot be read is told with its reason and counted; the others go on. Exit code 0: at least
    one image was classified; 3: none could be read; 2: there was none. Examples:

        mudg predict ./animals photos/ "more/**/*.jpg"
        find . -name "*.png" | mudg predict animals - --csv --out classes.csv
        mudg predict ./animals photo.jpg --top 5 --prompts averaged --json
    """
    with exit_codes(as_json):
        if as_csv and as_json:
            raise InputError(what="--csv and --json contradict each other", fix="give one of them")

        from mudg.cli.predict import Asked, run_predict

        form = "json" if as_json else "csv" if as_csv else "table"
        asked = Asked(model, tuple(images), top, prompts.value, form, out, batch_size)
        run_predict(asked, settings_from(file, changes))


@app.command()
def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            help="A model's folder, or a model as `encode.model` names it (ARCHITECTURE/TAG …).",
            show_default=False,
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            help="Labelled images: a dataset's folder, LAYOUT:PATH, or demo:TARGET.", show_default=False
        ),
    ],
    classes: Annotated[
        Path | None,
        typer.Option(
            help="Class names of a model that has none: a list or a dataset.", show_default="those of DATA"
        ),
    ] = None,
    template: Annotated[str, typer.Option(help="Prompt of a model that has none.")] = "a photo of a {}.",
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Measure a model on labelled images: accuracy by domain and class, confusions, calibration.

    A model that mudg trained brings its classes and prompts; any other CLIP model is asked by a template.
    Needs no index and keeps nothing. Layouts are seen from the folder: `split_zhou_*.json`, FGVC's lists,
    ImageNet's files, WordNet folders, CLASS/\\* and DOMAIN/CLASS/\\* (docs/evaluate.md). Examples:

        mudg evaluate .mudg/artifacts/model/3fa9… datasets/PACS
        mudg evaluate ViT-B-32/laion2b_s34b_b79k datasets/food-101 --template "a photo of {}, a type of food."
        mudg evaluate demo:student demo:animals --json
    """
    with exit_codes(as_json):
        from mudg.cli.evaluate import run_evaluate

        run_evaluate(model, data, classes, template, as_json, settings_from(file, changes))


@app.command()
def compare(
    targets: Annotated[
        list[str], typer.Argument(help="Target specs (YAML), or demo:NAME.", show_default=False)
    ],
    rows: Annotated[
        str | None, typer.Option(help="Only these rows, with commas between.", show_default="all")
    ] = None,
    groups: Annotated[str | None, typer.Option(help="Only these groups of rows.", show_default="all")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=32, help="Seeds 0, 1, …", show_default="each target's own")
    ] = None,
    quick: Annotated[
        bool, typer.Option(help="20 steps of training: to see that all works, not who wins.")
    ] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Compare MUDG with baselines, ablations and labelled images, on targets with evaluation images.

    Prompts alone, plain retrieval, ways to select images, adapters without training, ablations, profiles, and
    16 labelled images a class instead of retrieved ones. Rows share what they have in common; a second run
    computes what is new. Examples:

        mudg compare animals.yaml
        mudg compare demo:animals --groups prompts,retrieval --seeds 3

    docs/compare.md explains every row.
    """
    with exit_codes(as_json):
        from mudg.cli.compare import Asked, run_compare

        asked = Asked(tuple(targets), rows, groups, seeds, quick)
        run_compare(asked, as_json, file, changes)


@app.command()
def plan(
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's scale, beside the times its authors report.")
    ] = False,
    hardware: Annotated[
        str | None,
        typer.Option(
            help="this-machine (its CPUs, measured), a100 (with a cpu-64 as host) or cpu-64.",
            show_default="this-machine, or a100 with --paper",
        ),
    ] = None,
    devices: Annotated[int, typer.Option(min=1, max=10_000, help="How many of them.")] = 1,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of the corpus.", show_default="those of the corpus")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(min=1, help="Queries of the target.", show_default="of ten classes")
    ] = None,
    pair_images: Annotated[
        int | None, typer.Option(min=1, help="Images searched for q(p).", show_default="all rows")
    ] = None,
    evaluation_images: Annotated[
        int | None,
        typer.Option(
            min=0, help="Evaluation images of the target.", show_default="evaluate.demo_images_per_class each"
        ),
    ] = None,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Show what a run will cost before it runs: FLOP, bytes, memory, storage and time of every stage.

    Nothing is downloaded or kept, and no corpus is read. Examples:

        mudg plan                         # these settings, this machine
        mudg plan --rows 5000000 --set index.cells=4096
        mudg plan --paper                 # an index of 851 GB
        mudg plan --paper --hardware cpu-64 --json

    A time is a lower bound: the slowest of arithmetic, memory and storage traffic (`bound` says which).
    """
    from mudg.cli.plan import Asked, run_plan

    with exit_codes(as_json):
        asked = Asked(paper, hardware, devices, rows, queries, pair_images, evaluation_images)
        run_plan(asked, as_json, file, changes)


@app.command("settings")
def show_settings(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """List every setting with the value it has now.

    Later wins: profile, settings file, `MUDG_AREA__NAME` in the environment, `--set area.name=value`.
    """
    with exit_codes(as_json):
        tree: dict[str, Any] = settings_from(file, changes).model_dump(mode="json")
        show(tree, yaml.safe_dump(tree, sort_keys=False), as_json)
