"""`mudg evaluate`: accuracy of a model on labelled images, without a store, a server or an index."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from mudg.cli.command import Output, command
from mudg.cli.output import console, table_of
from mudg_core.errors import InputError, ModelError

if TYPE_CHECKING:
    from mudg_core.evaluate.classifier import Classifier
    from mudg_core.evaluate.measures import Metrics
    from mudg_core.settings import Settings
    from mudg_core.target.spec import Target

app = typer.Typer()
EXPORTED = "classes.json"  # as mudg_core.train.export writes it, which imports torch
MAX_BYTES = 64 << 20
PAIRS = 10


@command(app, "evaluate")
def evaluate(
    model: Annotated[
        str,
        Argument(
            help="A model's folder, a target's name, `classifier/beginning-of-key`, or ARCHITECTURE/TAG."
        ),
    ],
    data: Annotated[str, Argument(help="Labelled images: a dataset's folder, LAYOUT:PATH, or demo:TARGET.")],
    settings: Settings,
    classes: Annotated[
        Path | None,
        Option(
            help="Class names of a model that has none: a list or a dataset.", show_default="those of DATA"
        ),
    ] = None,
    template: Annotated[str, Option(help="Prompt of a model that has none.")] = "a photo of a {}.",
) -> Output:
    """Measure a model on labelled images: accuracy by domain and class, confusions, calibration.

    A model that mudg trained has its classes and prompts; for any other CLIP model give a template. Needs no
    index and stores nothing. Layouts are detected: `split_zhou_*.json`, FGVC's lists, ImageNet's files,
    WordNet folders, CLASS/\\* and DOMAIN/CLASS/\\* (docs/evaluate.md). Examples:

        mudg evaluate ./animals datasets/PACS
        mudg evaluate ViT-B-32/laion2b_s34b_b79k datasets/food-101 --template "a photo of {}, a type of food."
        mudg evaluate demo:student demo:animals --json
    """
    from mudg_core.evaluate.images import ListedImages, Source
    from mudg_core.evaluate.match import warn_of_unmatched

    folder = _folder(model, settings)
    exported = (folder / EXPORTED).is_file()
    if exported and classes is not None:
        raise InputError(what="an exported model has classes of its own", where=model, fix="omit --classes")
    names = _exported_names(folder) if exported else _names(data, classes)
    images = Source(data, names, settings.evaluate.demo_images)
    listed, unknown = ListedImages.of(images), images.matching().unknown
    total = sum(len(labels) for labels in listed.labels.values())
    with console.status(f"{total:,} images of {len(names):,} classes …"):
        classifier = _classifier(model, folder, exported, names, template, settings)
        scores = classifier.scores(listed, settings.evaluate.batch_size, settings.train.temperature)
    present = {int(label) for labels in listed.labels.values() for label in labels}
    empty = [name for label, name in enumerate(names) if label not in present]
    warnings = [warning.message for warning in warn_of_unmatched(unknown, empty)]
    body = {"classes": names, **{way: asdict(measured) for way, measured in scores.items()}}
    body |= {"model": model, "data": data, "warnings": warnings}
    return Output(body, _text(scores, names, warnings))


def _folder(model: str, settings: Settings) -> Path:
    """Of a model that lies in one, also in the store. What open_clip loads has none."""
    from mudg.names import CLASSIFIER, find
    from mudg_core.storage import ArtifactStore

    path = Path(model).expanduser()
    in_store = "/" not in model or model.startswith(f"{CLASSIFIER}/")
    if path.is_dir() or not in_store or model.startswith(("demo:", "local-dir:")):
        return path
    store = ArtifactStore(settings.storage)
    return store.folder(find(store, model, CLASSIFIER))


def _exported_names(folder: Path) -> list[str]:
    from mudg_core.target.user_files import parse_json, read_text

    where = folder / EXPORTED
    match parse_json(read_text(where, "list of classes", MAX_BYTES), str(where)):
        case {"classes": [*names]} if names and all(isinstance(name, str) for name in names):
            return [str(name) for name in names]
    raise ModelError(what="the classes of the model cannot be read", where=str(where), fix="export it again")


def _names(data: str, classes: Path | None) -> list[str]:
    """Of a model that knows no classes: those that the user lists, or those of the dataset."""
    from mudg_core.evaluate.images import DEMO
    from mudg_core.evaluate.layouts import open_layout
    from mudg_core.target.class_names import NameCheck, check_classes
    from mudg_core.target.published import class_names

    if data.startswith(DEMO) and classes is None:
        from mudg_core.corpus.demo.targets import TARGET_BY_NAME

        target = TARGET_BY_NAME.get(data.removeprefix(DEMO))
        return list(target.classes) if target else []  # which `Source` refuses, with the names there are
    names = class_names(classes) if classes else [(name, data) for name in open_layout(data).names]
    return check_classes(names, NameCheck())


def _classifier(
    model: str, folder: Path, exported: bool, names: list[str], template: str, settings: Settings
) -> Classifier:
    from mudg_core.encode.models import load_clip
    from mudg_core.evaluate.classifier import finetuned, plain

    device = settings.compute.device
    if exported:
        return finetuned(folder, device)
    clip = load_clip(f"local-dir:{folder}" if folder.is_dir() else model, device)
    return plain(clip, _target(names, template))


def _target(names: list[str], template: str) -> Target:
    from pydantic import ValidationError

    from mudg_core.target.spec import Target

    try:
        return Target(name="target", classes=tuple(names), template=template)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            what=f"{first['loc'][0]}: {first['msg']}",
            fix="give two classes at least, and one {} in --template",
        ) from error


def _text(scores: dict[str, Metrics], names: list[str], warnings: list[str]) -> str:
    first = next(iter(scores.values()))
    domains = list(first.domains) if len(first.domains) > 1 else []
    rows: list[tuple[Any, ...]] = [
        (
            f"{way} prompt" if way == "single" else f"{way} prompts",
            f"{one.mean:.1f}",
            *(f"{one.domains[domain]:.1f}" for domain in domains),
            f"{one.macro:.1f}",
            "-" if one.top5 is None else f"{one.top5:.1f}",
            f"{one.calibration.ece:.1f}",
        )
        for way, one in scores.items()
    ]
    parts = [table_of(rows, ("accuracy, %", "mean", *domains, "macro", "top 5", "ECE"))]
    pairs = [
        (names[one.truth], names[one.predicted], one.images, f"{one.share:.1f}")
        for one in first.confusions[:PAIRS]
    ]
    if pairs:
        parts.append(table_of(pairs, ("class", "taken for", "images", "% of the class")))
    parts += [f"warning: {message}" for message in warnings]
    return "\n\n".join([*parts, f"{first.images:,} images of {sum(n > 0 for n in first.counts):,} classes"])
