"""The Python API: what a target has become, and models that stand in folders."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mudg.pictures import gallery
from mudg_core.dataset.export import Source as ExportSource
from mudg_core.dataset.export import export
from mudg_core.dataset.warning import WARNINGS
from mudg_core.errors import InputError
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactRef, ArtifactStore
from tasks.report import REPORT
from tasks.results import accuracies

if TYPE_CHECKING:
    from flows.build_classifier import ClassifierBuild
    from mudg_core.predict.model import Model as OpenModel

Images = str | Path | Iterable[str | Path]


@dataclass(frozen=True)
class Prediction:
    """The likeliest classes of an image with their probabilities, best first; or the reason why there are
    none."""

    file: Path
    classes: dict[str, float]
    error: str = ""

    @property
    def label(self) -> str | None:
        return next(iter(self.classes), None)


class Model:
    """A classifier in a folder, as `mudg model export` writes it."""

    def __init__(self, folder: str | Path, device: str = "cpu") -> None:
        self.folder, self.device = Path(folder).expanduser().resolve(), device
        if not self.folder.is_dir():
            raise InputError(
                what="there is no such folder",
                where=str(folder),
                fix="export a classifier there: `mudg model export`",
            )

    def __repr__(self) -> str:
        return f"Model({str(self.folder)!r})"

    @cached_property
    def _opened(self) -> OpenModel:
        from mudg_core.predict.model import open_model

        return open_model(self.folder, device=self.device)

    @property
    def classes(self) -> tuple[str, ...]:
        return self._opened.classes

    def predict(self, images: Images, top: int = 1) -> list[Prediction]:
        """Classes of files, of folders of them, or of patterns. One that cannot be read costs that one."""
        from mudg_core.predict.files import image_files
        from mudg_core.predict.model import predict

        words = [images] if isinstance(images, str | Path) else images
        found = predict(self._opened, image_files([str(word) for word in words]), top=top)
        return [
            Prediction(
                one.file, {self.classes[guess.label]: guess.probability for guess in one.guesses}, one.error
            )
            for one in found
        ]


def load(folder: str | Path, device: str = "cpu") -> Model:
    """A classifier from the folder that `mudg model export` or `Classifier.export` has written."""
    return Model(folder, device)


@dataclass(frozen=True)
class Dataset:
    """A training set; a notebook shows some of its images."""

    store: ArtifactStore = field(repr=False)
    ref: ArtifactRef
    target: str

    @cached_property
    def _source(self) -> ExportSource:
        return ExportSource.open(self.store, self.ref, (self.target,))

    def __len__(self) -> int:
        return self._source.size

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self._source.classes)

    def to_imagefolder(self, out: str | Path, *, force: bool = False) -> Path:
        return self._export(out, "imagefolder", force)

    def to_huggingface(self, out: str | Path, *, force: bool = False) -> Path:
        return self._export(out, "huggingface", force)

    def to_webdataset(self, out: str | Path, *, force: bool = False) -> Path:
        return self._export(out, "webdataset", force)

    def _export(self, out: str | Path, form: str, force: bool) -> Path:
        path = Path(out).expanduser().resolve()
        export(self._source, path, form, force=force)
        return path

    def _repr_html_(self, most: int = 48) -> str:
        items = list(self._source.items())
        chosen = random.Random(0).sample(items, min(most, len(items)))
        title = f"{self.ref}: {len(items):,} images of {len(self.classes):,} classes"
        return gallery(title, ((item.image, self.classes[item.label]) for item in chosen))


class Classifier(Model):
    """A target's classifier: of its first seed, as far finetuned as the gate allows."""

    def __init__(self, store: ArtifactStore, settings: Settings, build: ClassifierBuild) -> None:
        super().__init__(store.folder(build.classifier), settings.compute.device)
        self.store, self.build = store, build

    def __repr__(self) -> str:
        return f"Classifier({self.build.target.name!r}, {str(self.build.classifier)!r})"

    @property
    def report(self) -> Path:
        """The page that says how it came about: open it in a browser."""
        return self.store.file(self.build.report, REPORT)

    @property
    def dataset(self) -> Dataset:
        """The training set of the first seed."""
        return Dataset(self.store, self.build.mudg.data.by_seed[0], self.build.target.name)

    @property
    def accuracy(self) -> Json:
        """Of each arm (`zero_shot`, `nearest_neighbours`, `mudg`), in percent; empty without evaluation
        images."""
        found = accuracies(self.store, [self.build])
        return {arm: figures for arm, figures in found.items() if arm != "targets"}

    @property
    def warnings(self) -> list[str]:
        """What may be wrong, in words."""
        found: Sequence[Any] = json.loads(self.store.file(self.build.warnings, WARNINGS).read_text())
        return [one["message"] for one in found]

    def export(self, out: str | Path, *, force: bool = False) -> Path:
        """A folder with the model, its classes and its card, which open_clip and `mudg.load` read."""
        from mudg_core.train.classifiers import copy_out

        path = Path(out).expanduser()
        copy_out(self.store, self.build.classifier, path, force=force)
        return path.resolve()

    def _repr_html_(self) -> str:
        means = ", ".join(f"{arm} {found['mean']:.1f} %" for arm, found in self.accuracy.items())
        return f"<p>{self!r}: {means or 'no evaluation images'}</p>" + self.dataset._repr_html_()
