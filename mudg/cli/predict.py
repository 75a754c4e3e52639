"""`mudg predict`: images in, classes out, line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from typer import Argument, Option

from mudg.cli.command import Flags, command
from mudg.cli.output import console
from mudg_core.errors import DataError, InputError

if TYPE_CHECKING:
    from mudg_core.predict.model import Prediction
    from mudg_core.settings import Settings

app = typer.Typer()


class Prompts(StrEnum):
    """Prompts of a classifier's classes: one each, or the mean of several."""

    single = "single"
    averaged = "averaged"


@command(app, "predict")
def run_predict(
    model: Annotated[
        str,
        Argument(
            help="A folder from `mudg model export`, a target's name, or `classifier/beginning-of-key`."
        ),
    ],
    images: Annotated[
        list[str],
        Argument(help="Files, folders (with all below them), patterns, or - for a list on standard input."),
    ],
    flags: Flags,
    top: Annotated[int, Option(min=1, max=1000, help="Number of classes for each image, best first.")] = 1,
    prompts: Annotated[Prompts, Option(help="Prompts of the classes.")] = Prompts.single,
    as_csv: Annotated[bool, Option("--csv", help="Write CSV, one line an image.")] = False,
    out: Annotated[Path | None, Option(help="Write to this file instead of standard output.")] = None,
    batch_size: Annotated[
        int | None, Option(min=1, max=16_384, help="Images at a time.", show_default="32, or 256 on a GPU")
    ] = None,
    as_json: Annotated[
        bool, Option("--json", help="Write JSON, one line an image, and a last line with counts.")
    ] = False,
) -> None:
    """Classify images with a classifier of `mudg target run`.

    An image that cannot be read is listed with its reason and counted; the others go on. Exit code 0: at
    least one image was classified; 3: none could be read; 2: there was none. Examples:

        mudg predict ./animals photos/ "more/**/*.jpg"
        find . -name "*.png" | mudg predict animals - --csv --out classes.csv
        mudg predict ./animals photo.jpg --top 5 --prompts averaged --json
    """
    if as_csv and as_json:
        raise InputError(what="--csv and --json contradict each other", fix="give one of them")
    settings = flags.settings()
    from mudg_core.corpus.decode import Limits

    folder, form = model_folder(model, settings), "json" if as_json else "csv" if as_csv else "table"
    with console.status("loading the model …"):
        from mudg_core.predict.files import image_files
        from mudg_core.predict.model import open_model, predict
        from mudg_core.predict.write import write_all

        classifier = open_model(folder, prompts.value, settings.compute.device)
    limits = Limits(max_bytes=settings.corpus.max_image_bytes, max_pixels=settings.corpus.max_pixels)
    files = image_files(images, sys.stdin)
    predictions = predict(classifier, files, top=top, batch_size=batch_size, limits=limits)
    classified = unreadable = 0
    with _stream(out) as stream:
        for one in _watched(write_all(predictions, stream, form, classifier.classes, top), stream):
            classified += not one.error
            unreadable += bool(one.error)
    _show_counts(classified, unreadable, form, out)
    if not classified and not unreadable:
        raise InputError(
            what="no image was found", where=" ".join(images)[:500], fix="name files or folders of them"
        )
    if not classified:
        raise DataError(
            what=f"none of {unreadable:,} images could be read", fix="the reason of each stands beside it"
        )


def model_folder(name: str, settings: Settings) -> Path:
    """A folder if there is one of that name; else a classifier of the store."""
    from mudg.names import CLASSIFIER, find
    from mudg_core.storage import ArtifactStore

    path = Path(name).expanduser()
    if path.is_dir():
        return path.resolve()
    if name.startswith((".", "/", "~")):
        raise InputError(what="there is no such folder", where=name, fix="`mudg model list` shows models")
    store = ArtifactStore(settings.storage)
    return store.folder(find(store, name, CLASSIFIER))


@contextmanager
def _stream(out: Path | None) -> Iterator[TextIO]:
    if out is None:  # for programs as it is, for people without control characters
        raw: TextIO = getattr(sys.stdout, "raw", sys.stdout)
        yield sys.stdout if raw.isatty() else raw
        sys.stdout.flush()
        return
    from mudg_core.storage.objects_local import disk_errors

    with disk_errors(out), out.open("w", encoding="utf-8", newline="") as stream:
        yield stream


def _watched(predictions: Iterable[Prediction], stream: TextIO) -> Iterator[Prediction]:
    """A count on the terminal, unless the lines themselves go there."""
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("images"), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = stream.isatty() or not console.is_terminal
    with Progress(*columns, console=console, disable=hidden, redirect_stdout=False) as progress:
        task = progress.add_task("images", total=None)
        for one in predictions:
            progress.advance(task)
            yield one


def _show_counts(classified: int, unreadable: int, form: str, out: Path | None) -> None:
    """For people on standard error, for programs as the last line."""
    if form == "json":
        counts = {"images": classified, "unreadable": unreadable, "out": out and str(out)}
        sys.stdout.write(json.dumps(counts) + "\n")
        return
    words = f"{classified:,} images classified"
    words += f", {unreadable:,} could not be read" if unreadable else ""
    console.print(words + (f": {out}" if out else ""), highlight=False, markup=False)
