"""Evaluation images: read from where the user has them, kept as one WebDataset shard a domain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from mudg_core.corpus.decode import decode
from mudg_core.corpus.demo.targets import TARGET_BY_NAME, evaluation_images
from mudg_core.corpus.shards import ShardSample, encode_jpeg, read_shard, write_shard
from mudg_core.errors import InputError
from mudg_core.evaluate.folder import read_folder

Int64 = NDArray[np.int64]
DEMO = "demo:"
LABELS = "labels.parquet"
DEMO_SEED = 7


@dataclass(frozen=True)
class Source:
    """Where the images of a target come from: `demo:TARGET`, or a folder."""

    location: str
    classes: list[str]
    demo_per_class: int

    def read(self) -> Iterator[tuple[str, int, bytes]]:
        """(domain, label, encoded image), domain by domain."""
        if self.location.startswith(DEMO):
            yield from self._demo()
            return
        for domain, label, file in read_folder(self.location, self.classes):
            yield domain, label, file.read_bytes()

    def fingerprint(self) -> str:
        """Hash of what `read` will give, so that a changed folder is evaluated anew."""
        if self.location.startswith(DEMO):
            return self.location
        digest = hashlib.sha256()
        for domain, label, file in read_folder(self.location, self.classes):
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{domain}\0{label}\0{content}\n".encode())
        return digest.hexdigest()

    def _demo(self) -> Iterator[tuple[str, int, bytes]]:
        target = TARGET_BY_NAME.get(self.location.removeprefix(DEMO))
        if target is None or list(target.classes) != self.classes:
            raise InputError(
                what="no demo target has these name and classes",
                where=self.location,
                fix=f"demo targets: {', '.join(TARGET_BY_NAME)}; keep their classes, or give a folder",
            )
        for domain in target.domains:
            for image, label in evaluation_images(target, domain, self.demo_per_class, DEMO_SEED):
                yield domain, label, encode_jpeg(image)


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
        return cls(folder, {domain: np.array(found, dtype=np.int64) for domain, found in labels.items()})

    def images(self, domain: str) -> Iterator[Image.Image]:
        """In the order of the labels."""
        number = list(self.labels).index(domain)
        for sample in read_shard(self.folder / f"{number:04d}.tar"):
            yield decode(sample.image or b"")


def encoded_images(folder: Path) -> Iterator[ShardSample]:
    """The images that `write_evaluation` wrote, as they are stored and without their labels."""
    for tar in sorted(folder.glob("*.tar")):
        yield from read_shard(tar)
