"""`mudg evaluate`: what a model is worth on labelled images, without a store, a server or an index."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from mudg.cli.output import console, show, table_of
from mudg_core.errors import InputError, ModelError
from mudg_core.evaluate.images import DEMO, ListedImages, Source
from mudg_core.evaluate.layouts import open_layout
from mudg_core.evaluate.match import warn_of_unmatched
from mudg_core.settings import Json, Settings
from mudg_core.target.class_names import NameCheck, check_classes
from mudg_core.target.published import class_names
from mudg_core.target.spec import Target
from mudg_core.target.user_files import parse_json, read_text

if TYPE_CHECKING:
    from mudg_core.evaluate.classifier import Classifier
    from mudg_core.evaluate.measures import Metrics

EXPORTED = "classes.json"  # as mudg_core.train.export writes it, which imports torch
MAX_BYTES = 64 << 20
PAIRS = 10


def run_evaluate(
    model: str, data: str, classes: Path | None, template: str, as_json: bool, settings: Settings
) -> None:
    folder = Path(model).expanduser()
    exported = (folder / EXPORTED).is_file()
    if exported and classes is not None:
        raise InputError(what="an exported model has classes of its own", where=model, fix="omit --classes")
    names = _exported_names(folder) if exported else _names(data, classes)
    images = Source(data, names, settings.evaluate.demo_images)
    listed, unknown = ListedImages.of(images), images.matching().unknown
    total = sum(len(labels) for labels in listed.labels.values())
    with console.status(f"{total:,} images of {len(names):,} classes …"):
        classifier = _classifier(model, folder, exported, names, template, settings)
        found = classifier.scores(listed, settings.evaluate.batch_size, settings.train.temperature)
    there = {int(label) for labels in listed.labels.values() for label in labels}
    empty = [name for label, name in enumerate(names) if label not in there]
    told = [warning.message for warning in warn_of_unmatched(unknown, empty)]
    result = _result(found, names) | {"model": model, "data": data, "warnings": told}
    show(result, _text(found, names, told), as_json)


def _exported_names(folder: Path) -> list[str]:
    where = folder / EXPORTED
    match parse_json(read_text(where, "list of classes", MAX_BYTES), str(where)):
        case {"classes": [*names]} if names and all(isinstance(name, str) for name in names):
            return [str(name) for name in names]
    raise ModelError(what="the classes of the model cannot be read", where=str(where), fix="export it again")


def _names(data: str, classes: Path | None) -> list[str]:
    """Of a model that knows no classes: those that the user lists, or those of the dataset."""
    if data.startswith(DEMO) and classes is None:
        from mudg_core.corpus.demo.targets import TARGET_BY_NAME

        target = TARGET_BY_NAME.get(data.removeprefix(DEMO))
        return list(target.classes) if target else []  # which `Source` refuses, with the names there are
    found = class_names(classes) if classes else [(name, data) for name in open_layout(data).names]
    return check_classes(found, NameCheck())


def _classifier(
    model: str, folder: Path, exported: bool, names: list[str], template: str, settings: Settings
) -> Classifier:
    from mudg_core.encode.models import load_clip  # torch: a mistake in what was given is told before
    from mudg_core.evaluate.classifier import finetuned, plain

    device = settings.compute.device
    if exported:
        return finetuned(folder, device)
    return plain(
        load_clip(f"local-dir:{folder}" if folder.is_dir() else model, device), _target(names, template)
    )


def _target(names: list[str], template: str) -> Target:
    try:
        return Target(name="target", classes=tuple(names), template=template)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(
            what=f"{first['loc'][0]}: {first['msg']}",
            fix="give two classes at least, and one {} in --template",
        ) from error


def _result(found: dict[str, Metrics], names: list[str]) -> Json:
    return {"classes": names, **{way: asdict(measured) for way, measured in found.items()}}


def _text(found: dict[str, Metrics], names: list[str], told: list[str]) -> str:
    first = next(iter(found.values()))
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
        for way, one in found.items()
    ]
    parts = [table_of(rows, ("accuracy, %", "mean", *domains, "macro", "top 5", "ECE"))]
    pairs = [
        (names[one.truth], names[one.predicted], one.images, f"{one.share:.1f}")
        for one in first.confusions[:PAIRS]
    ]
    if pairs:
        parts.append(table_of(pairs, ("class", "taken for", "images", "% of the class")))
    parts += [f"warning: {message}" for message in told]
    return "\n\n".join([*parts, f"{first.images:,} images of {sum(n > 0 for n in first.counts):,} classes"])
