"""Evaluation images: read from where the user has them, kept as one WebDataset shard a domain."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

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
    """One tar a domain and one table of labels; returns how many images each domain has."""
    table: list[dict[str, str | int]] = []
    domains: dict[str, list[ShardSample]] = {}
    for number, (domain, label, data) in enumerate(images):
        samples = domains.setdefault(domain, [])
        samples.append(ShardSample(key=f"{number:09d}", image=data, caption="", url=""))
        table.append({"domain": domain, "key": samples[-1].key, "label": label})
    for number, samples in enumerate(domains.values()):
        write_shard(samples, out / f"{number:04d}.tar", out / f"{number:04d}.parquet")
    pq.write_table(pa.Table.from_pylist(table), out / LABELS)
    return {domain: len(samples) for domain, samples in domains.items()}


def read_evaluation(folder: Path) -> tuple[dict[str, list[Image.Image]], dict[str, Int64]]:
    """Images and labels by domain, in the order they were written."""
    table = pq.read_table(folder / LABELS)
    domains = list(dict.fromkeys(table.column("domain").to_pylist()))
    images: dict[str, list[Image.Image]] = {}
    labels: dict[str, Int64] = {}
    for number, domain in enumerate(domains):
        samples = read_shard(folder / f"{number:04d}.tar")
        images[domain] = [Image.open(io.BytesIO(sample.image or b"")).convert("RGB") for sample in samples]
        chosen = table.filter(pa.compute.equal(table.column("domain"), domain))
        labels[domain] = chosen.column("label").to_numpy()
    return images, labels
