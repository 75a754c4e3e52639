"""The commands. Each reads its flags, runs a flow or asks the store, and shows the result."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from flows.cli.output import (
    AsJson,
    Overrides,
    SettingsFile,
    exit_codes,
    quiet_libraries,
    settings_from,
    show,
)
from mudg_core import __version__
from mudg_core.errors import InputError
from mudg_core.target.spec import load_target

app = typer.Typer(
    name="mudg",
    help="Class names in, a finetuned CLIP classifier out, fed by an image pool that is indexed once.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
corpus_app = typer.Typer(no_args_is_help=True, help="Say what the image pool is made of.")
index_app = typer.Typer(no_args_is_help=True, help="Build, measure and manage the index of the image pool.")
target_app = typer.Typer(no_args_is_help=True, help="Build a classifier for a target.")
dataset_app = typer.Typer(no_args_is_help=True, help="See and take out the training sets of targets.")
model_app = typer.Typer(no_args_is_help=True, help="See and take out the classifiers of targets.")
app.add_typer(corpus_app, name="corpus")
app.add_typer(index_app, name="index")
app.add_typer(target_app, name="target")
app.add_typer(dataset_app, name="dataset")
app.add_typer(model_app, name="model")


class Format(StrEnum):
    """Layouts that a training set can be exported to."""

    imagefolder = "imagefolder"
    huggingface = "huggingface"
    webdataset = "webdataset"


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
    from flows.cli.runs import run_demo

    with exit_codes(as_json):
        run_demo(full, as_json, file, changes)


@corpus_app.command("add")
def corpus_add(
    url: Annotated[
        str, typer.Argument(help="A path, file:///path or s3://bucket/prefix; also one .tar or .parquet.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is there.")] = False,
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
        from flows.cli.corpus import run_add

        run_add(url, dry_run, as_json, settings_from(file, changes))


@corpus_app.command("status")
def corpus_status(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Show every source: shards, rows, what was embedded when, and what was refused and why."""
    with exit_codes(as_json):
        from flows.cli.corpus import run_status

        run_status(as_json, settings_from(file, changes))


@index_app.command("build")
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
        from flows.cli.index import run_build

        run_build(retrain, as_json, file, changes)


@index_app.command("list")
def index_list(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Versions that were current, newest first."""
    with exit_codes(as_json):
        from flows.cli.index import run_list

        run_list(as_json, settings_from(file, changes))


@index_app.command("promote")
def index_promote(
    index: Annotated[str, typer.Argument(help="`index/beginning-of-key`.", show_default=False)],
    force: Annotated[bool, typer.Option(help="Whatever its recall is.")] = False,
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Make a version the current one, if its recall passes the gate."""
    with exit_codes(as_json):
        from flows.cli.index import run_promote

        run_promote(index, force, as_json, file, changes)


@index_app.command("rollback")
def index_rollback(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Go back to the version that was current before."""
    with exit_codes(as_json):
        from flows.cli.index import run_rollback

        run_rollback(as_json, settings_from(file, changes))


@index_app.command("recall")
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
        from flows.cli.index import run_recall

        run_recall(index, save, as_json, settings_from(file, changes))


@index_app.command("tune")
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

        from flows.cli.index import run_tune

        run_tune(recall, 1 if at == 1 else 10, as_json, settings_from(file, changes))


@index_app.command("remove")
def index_remove(
    rows: Annotated[list[int], typer.Argument(help="Corpus rows, as `mudg search --json` shows them.")],
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Take rows out of the index for good (opt-out, takedown), in a new version that becomes current.

    Later builds leave them out too. Only the parts that hold them are made again.
    """
    with exit_codes(as_json):
        from flows.cli.index import run_remove

        run_remove(rows, as_json, file, changes)


@target_app.command("run")
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


@target_app.command("list")
def target_list(as_json: AsJson = False) -> None:
    """List the specs that come with mudg: the paper's twenty tasks, with its hyperparameters and templates.

    n images are retrieved for each query, m augmentations are kept, k1 images for each class, N iterations.
    """
    with exit_codes(as_json):
        from flows.cli.target import run_list

        run_list(as_json)


@target_app.command("init")
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


@target_app.command("prompts")
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


@dataset_app.command("list")
def dataset_list(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Training sets that were made: for which target, how many images, which classes, and when.

    One without a target is a baseline, or its report is not written yet.
    """
    with exit_codes(as_json):
        from flows.cli.dataset import run_list

        run_list(as_json, settings_from(file, changes))


@dataset_app.command("export")
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
        from flows.cli.dataset import run_export

        run_export(dataset, out, to, force, as_json, settings_from(file, changes))


@model_app.command("list")
def model_list(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """Classifiers that were made: for which target, of how many classes and images, and when."""
    with exit_codes(as_json):
        from flows.cli.model import run_list

        run_list(as_json, settings_from(file, changes))


@model_app.command("export")
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
        from flows.cli.model import run_export

        run_export(model, out, force, as_json, settings_from(file, changes))


@model_app.command("onnx")
def model_onnx(
    folder: Annotated[
        Path, typer.Argument(help="A folder that `mudg model export` wrote.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Write both towers of an exported model as ONNX graphs beside its weights, checked against torch.

    Needs `pip install 'mudg[onnx]'`. Takes half a minute and about four times the memory of the weights.
    Example: `mudg model onnx ./animals` writes `visual.onnx` and `text.onnx`.
    """
    with exit_codes(as_json):
        from flows.cli.model import run_onnx

        run_onnx(folder, as_json)


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

        from flows.cli.predict import Asked, run_predict

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
        from flows.cli.evaluate import run_evaluate

        run_evaluate(model, data, classes, template, as_json, settings_from(file, changes))


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
    from flows.cli.runs import run_search

    with exit_codes(as_json):
        if not text.strip() or len(text) > 1000:
            raise InputError(what="the text to look for is empty or longer than 1000 characters")
        run_search(text, neighbors, probes, save, as_json, file, changes)


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
    """Compare MUDG with everything that the paper compares it with, on targets with evaluation images.

    Prompts alone, plain retrieval, ways to select images, adapters without training, ablations, profiles, and
    an upper bound. Rows share what they have in common; a second run computes what is new. Examples:

        mudg compare animals.yaml
        mudg compare demo:animals --groups prompts,retrieval --seeds 3

    docs/compare.md explains every row.
    """
    with exit_codes(as_json):
        from flows.cli.compare import Asked, run_compare

        asked = Asked(tuple(targets), rows, groups, seeds, quick)
        run_compare(asked, as_json, file, changes)


@app.command()
def plan(
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's scale, beside the times its authors report.")
    ] = False,
    hardware: Annotated[
        str | None,
        typer.Option(help="this-machine (measured), a100 or cpu-64.", show_default="this-machine"),
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
    as_json: AsJson = False,
    file: SettingsFile = None,
    changes: Overrides = None,
) -> None:
    """Show what a run will cost before it runs: FLOP, bytes, memory, storage and time of every stage.

    Nothing is embedded, downloaded or kept. Examples:

        mudg plan                         # these settings, this machine
        mudg plan --rows 5000000 --set index.cells=4096
        mudg plan --paper                 # an index of 851 GB
        mudg plan --paper --hardware cpu-64 --json

    A time is a lower bound: the slowest of arithmetic, memory and storage traffic (`bound` says which).
    """
    from flows.cli.plan import Asked, run_plan

    with exit_codes(as_json):
        asked = Asked(paper, hardware, devices, rows, queries, pair_images)
        run_plan(asked, as_json, file, changes)


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
    from flows.cli.inspect import show_manifest

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
        from flows.cli.lineage import run_lineage

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
        from flows.cli.storage import run_gc

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
        from flows.cli.forget import run_forget

        run_forget(url or (), row or (), listed, dry_run, as_json, file, changes)


@app.command("settings")
def show_settings(as_json: AsJson = False, file: SettingsFile = None, changes: Overrides = None) -> None:
    """List every setting with the value it has now.

    Later wins: profile, settings file, `MUDG_AREA__NAME` in the environment, `--set area.name=value`.
    """
    with exit_codes(as_json):
        tree: dict[str, Any] = settings_from(file, changes).model_dump(mode="json")
        show(tree, yaml.safe_dump(tree, sort_keys=False), as_json)


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


def main() -> None:
    """Entry point of the console command."""
    app()
