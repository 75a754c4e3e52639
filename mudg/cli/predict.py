"""`mudg predict`: images in, classes out, line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from mudg.cli.output import console
from mudg_core.corpus.decode import Limits
from mudg_core.errors import DataError, InputError
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactStore
from mudg_core.storage.objects_local import disk_errors
from mudg_core.train.classifiers import find_classifier

if TYPE_CHECKING:
    from mudg_core.predict.model import Prediction


@dataclass(frozen=True)
class Asked:
    """The command's own flags."""

    model: str
    images: tuple[str, ...]
    top: int
    prompts: str
    form: str
    out: Path | None
    batch_size: int | None


@dataclass
class Counts:
    """How it went so far."""

    images: int = 0
    unreadable: int = 0

    def add(self, found: Prediction) -> None:
        self.images += not found.error
        self.unreadable += bool(found.error)


def run_predict(asked: Asked, settings: Settings) -> None:
    folder = model_folder(asked.model, settings)
    with console.status("loading the model …"):
        from mudg_core.predict.files import image_files
        from mudg_core.predict.model import open_model, predict
        from mudg_core.predict.write import write_all

        model = open_model(folder, asked.prompts, settings.compute.device)
    limits = Limits(max_bytes=settings.corpus.max_image_bytes, max_pixels=settings.corpus.max_pixels)
    files = image_files(asked.images, sys.stdin)
    found = predict(model, files, top=asked.top, batch_size=asked.batch_size, limits=limits)
    counts = Counts()
    with _stream(asked.out) as stream:
        for one in _watched(write_all(found, stream, asked.form, model.classes, asked.top), stream):
            counts.add(one)
    _tell(counts, asked)


def model_folder(name: str, settings: Settings) -> Path:
    """What is a folder is meant as one; anything else is looked for in the store."""
    path = Path(name).expanduser()
    if path.is_dir():
        return path.resolve()
    if name.startswith((".", "/", "~")):
        raise InputError(what="there is no such folder", where=name, fix="`mudg model list` shows models")
    store = ArtifactStore(settings.storage)
    return store.folder(find_classifier(store, name))


@contextmanager
def _stream(out: Path | None) -> Iterator[TextIO]:
    if out is None:  # for programs as it is, for people without control characters
        raw: TextIO = getattr(sys.stdout, "raw", sys.stdout)
        yield sys.stdout if raw.isatty() else raw
        sys.stdout.flush()
        return
    with disk_errors(out), out.open("w", encoding="utf-8", newline="") as stream:
        yield stream


def _watched(found: Iterable[Prediction], stream: TextIO) -> Iterator[Prediction]:
    """A count on the terminal, unless the lines themselves go there."""
    columns = (SpinnerColumn(), TextColumn("images"), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = stream.isatty() or not console.is_terminal
    with Progress(*columns, console=console, disable=hidden, redirect_stdout=False) as progress:
        task = progress.add_task("images", total=None)
        for one in found:
            progress.advance(task)
            yield one


def _tell(counts: Counts, asked: Asked) -> None:
    """Counts for people on standard error, for programs as the last line; then what the exit code says."""
    if asked.form == "json":
        told = {"images": counts.images, "unreadable": counts.unreadable, "out": asked.out and str(asked.out)}
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        words = f"{counts.images:,} images classified"
        words += f", {counts.unreadable:,} could not be read" if counts.unreadable else ""
        console.print(words + (f": {asked.out}" if asked.out else ""), highlight=False, markup=False)
    if not counts.images and not counts.unreadable:
        raise InputError(
            what="no image was found", where=" ".join(asked.images)[:500], fix="name files or folders of them"
        )
    if not counts.images:
        raise DataError(
            what=f"none of {counts.unreadable:,} images could be read",
            fix="the reason of each stands beside it",
        )
