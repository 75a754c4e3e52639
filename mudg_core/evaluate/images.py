"""Evaluation images: read from where the user has them, kept as one WebDataset shard a domain; or used where
they are, for a look that leaves nothing behind."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from mudg_core.corpus.decode import DEFAULT_LIMITS, Refused, decode
from mudg_core.corpus.demo.targets import TARGET_BY_NAME, evaluation_images
from mudg_core.corpus.shards import ShardSample, encode_jpeg, read_shard, write_shard
from mudg_core.errors import InputError
from mudg_core.evaluate.layouts import Layout, Part, open_layout
from mudg_core.evaluate.match import Matching, match
from mudg_core.settings import EvaluateSettings
from mudg_core.target.spec import Target

Int64 = NDArray[np.int64]
DEMO = "demo:"
LABELS = "labels.parquet"
DEMO_SEEDS: dict[Part, int] = {"test": 7, "train": 1007}
MAX_IMAGES = 2_000_000


@dataclass(frozen=True)
class Labelled:
    """An image that is read when somebody asks for it; `name` tells it apart within its source."""

    domain: str
    label: int
    name: str
    encoded: Callable[[], bytes]

    def read(self) -> bytes:
        """Its bytes. One that cannot be decoded is reported here by its name, not later by its number."""
        data = self.encoded()
        self._decoded(data)
        return data

    def decoded(self) -> Image.Image:
        return self._decoded(self.encoded())

    def _decoded(self, data: bytes) -> Image.Image:
        try:
            return decode(data)
        except Refused as error:
            raise InputError(
                what=f"an image cannot be used: {error.reason}",
                where=self.name,
                fix="repair it, or take it out of the dataset",
            ) from error


@dataclass(frozen=True)
class Source:
    """Where the images of a target come from: `demo:TARGET`, a folder, or `LAYOUT:PATH`."""

    location: str
    classes: list[str]
    demo_per_class: int
    synonyms: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, target: Target, settings: EvaluateSettings) -> Source:
        """The images that a target says it is evaluated on."""
        own = target.evaluation or ""
        return cls(own, list(target.classes), settings.demo_images, target.synonyms)

    def read(self) -> Iterator[tuple[str, int, bytes]]:
        """(domain, label, encoded image) of what is evaluated on, domain by domain."""
        for image in self.listed("test"):
            yield image.domain, image.label, image.read()

    def listed(self, part: Part) -> Iterator[Labelled]:
        """Images of the target's classes, in a fixed order."""
        images = self._demo(part) if self.location.startswith(DEMO) else self._files(part)
        count = 0
        for count, image in enumerate(images, 1):
            if count > MAX_IMAGES:
                raise InputError(what=f"more than {MAX_IMAGES} labelled images", where=self.location)
            yield image
        if not count:
            what = "no evaluation image found" if part == "test" else "no labelled training image found"
            raise InputError(what=what, where=self.location, fix=open_layout(self.location).tree)

    def matching(self) -> Matching:
        """How the dataset's classes meet the target's."""
        if self.location.startswith(DEMO):
            return Matching(tuple(range(len(self.classes))), ())
        return self._match(open_layout(self.location))

    def has(self, part: Part) -> bool:
        """Whether there are images of this part; not every dataset comes with labelled training images."""
        try:
            return next(self.listed(part), None) is not None
        except InputError:
            return False

    def fingerprint(self, part: Part = "test") -> str:
        """Hash of a part's images, so that a changed folder is read anew."""
        if self.location.startswith(DEMO):
            return self.location
        digest = hashlib.sha256()
        for image in self.listed(part):
            content = hashlib.sha256(image.encoded()).hexdigest()
            digest.update(f"{image.domain}\0{image.label}\0{content}\n".encode())
        return digest.hexdigest()

    def synonym_lists(self) -> dict[str, list[str]]:
        return {name: list(more) for name, more in self.synonyms.items()}

    def _files(self, part: Part) -> Iterator[Labelled]:
        layout = open_layout(self.location)
        labels = self._match(layout).labels
        for domain, number, file in layout.images(part):
            if (label := labels[number]) is not None:
                yield Labelled(domain, label, str(file), partial(read_file, file))

    def _match(self, layout: Layout) -> Matching:
        return match(layout.names, self.classes, self.synonyms, self.location, layout.tree)

    def _demo(self, part: Part) -> Iterator[Labelled]:
        target = TARGET_BY_NAME.get(self.location.removeprefix(DEMO))
        if target is None or list(target.classes) != self.classes:
            raise InputError(
                what="no demo target has these name and classes",
                where=self.location,
                fix=f"demo targets: {', '.join(TARGET_BY_NAME)}; keep their classes, or give a folder",
            )
        for domain in target.domains:
            drawn = evaluation_images(target, domain, self.demo_per_class, DEMO_SEEDS[part])
            for number, (image, label) in enumerate(drawn):
                yield Labelled(domain, label, f"{domain}-{number}", partial(encode_jpeg, image))


def read_file(file: Path) -> bytes:
    """At most one byte more than is taken: a wrong file may be larger than memory."""
    try:
        with file.open("rb") as stream:
            return stream.read(DEFAULT_LIMITS.max_bytes + 1)
    except OSError as error:
        raise InputError(what=f"an image cannot be read: {error.strerror}", where=str(file)) from error


def write_evaluation(images: Iterable[tuple[str, int, bytes]], out: Path) -> dict[str, int]:
    """One tar a domain and one table of labels; returns how many images each domain has.

    Images must come domain by domain, as `Source.read` gives them: then only one is in memory at a time.
    """
    table: list[dict[str, str | int]] = []

    def samples(group: Iterable[tuple[str, int, bytes]]) -> Iterator[ShardSample]:
        for domain, label, data in group:
            key = f"{len(table):09d}"
            table.append({"domain": domain, "key": key, "label": label})
            yield ShardSample(key=key, image=data, caption="", url="")

    counts: dict[str, int] = {}
    for number, (domain, group) in enumerate(groupby(images, key=itemgetter(0))):
        counts[domain] = write_shard(samples(group), out / f"{number:04d}.tar", out / f"{number:04d}.parquet")
    pq.write_table(pa.Table.from_pylist(table), out / LABELS)
    return counts


class LabelledImages(Protocol):
    """What can be evaluated on: labels by domain, and images that are decoded as they are asked for."""

    @property
    def labels(self) -> Mapping[str, Int64]: ...

    def images(self, domain: str, chosen: Collection[int] | None = None) -> Iterator[Image.Image]:
        """In the order of the labels: all of them, or those whose places are chosen."""


@dataclass(frozen=True)
class EvaluationSet:
    """What `write_evaluation` wrote: labels by domain, and images that are decoded as they are asked for."""

    folder: Path
    labels: dict[str, Int64]

    @classmethod
    def open(cls, folder: Path) -> EvaluationSet:
        table = pq.read_table(folder / LABELS)
        labels: dict[str, list[int]] = {}
        for domain, label in zip(table["domain"].to_pylist(), table["label"].to_pylist(), strict=True):
            labels.setdefault(domain, []).append(label)
        return cls(folder, {domain: np.array(own, dtype=np.int64) for domain, own in labels.items()})

    def images(self, domain: str, chosen: Collection[int] | None = None) -> Iterator[Image.Image]:
        number = list(self.labels).index(domain)
        for place, sample in enumerate(read_shard(self.folder / f"{number:04d}.tar")):
            if chosen is None or place in chosen:
                yield decode(sample.image or b"")


def encoded_images(folder: Path) -> Iterator[ShardSample]:
    """The images that `write_evaluation` wrote, as they are stored and without their labels."""
    for tar in sorted(folder.glob("*.tar")):
        yield from read_shard(tar)


@dataclass(frozen=True)
class ListedImages:
    """What `EvaluationSet` is, without a copy."""

    listed: Mapping[str, Sequence[Labelled]]
    labels: Mapping[str, Int64]

    @classmethod
    def of(cls, source: Source) -> ListedImages:
        listed: dict[str, list[Labelled]] = {}
        for image in source.listed("test"):
            listed.setdefault(image.domain, []).append(image)
        labels = {domain: np.array([image.label for image in own]) for domain, own in listed.items()}
        return cls(listed, labels)

    def images(self, domain: str, chosen: Collection[int] | None = None) -> Iterator[Image.Image]:
        for place, image in enumerate(self.listed[domain]):
            if chosen is None or place in chosen:
                yield image.decoded()
