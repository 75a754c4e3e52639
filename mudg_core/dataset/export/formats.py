"""One folder a class, as torchvision's ImageFolder and most other tools read images.

Folders are named by number first, so that their order is that of the labels. A class without images has none:
readers refuse an empty folder. `classes.json` has the names as they are, of all classes.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus.shards import ShardSample, write_shard
from mudg_core.dataset.export.source import COLUMNS, Item, Source, in_parts
from mudg_core.settings import Json
from mudg_core.target.spec import slug

CLASSES = "classes.json"
PROVENANCE = "provenance.csv"


def write_imagefolder(source: Source, out: Path) -> None:
    folders = [slug(name, label) for label, name in enumerate(source.classes)]
    write_classes(source, out)
    with ProvenanceCsv(out / PROVENANCE, source.classes) as table:
        for item in source.items():
            folder = out / folders[item.label]
            folder.mkdir(exist_ok=True)
            name = f"{item.row:09d}.{item.suffix}"
            (folder / name).write_bytes(item.image)
            table.add(f"{folder.name}/{name}", item)


def write_classes(source: Source, out: Path) -> None:
    names = {slug(name, label): name for label, name in enumerate(source.classes)}
    (out / CLASSES).write_text(json.dumps(names, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


MAX_SHARD_BYTES = 500_000_000


def write_webdataset(source: Source, out: Path, max_bytes: int = MAX_SHARD_BYTES) -> None:
    write_classes(source, out)
    with ProvenanceCsv(out / PROVENANCE, source.classes) as table:
        for number, part in enumerate(in_parts(source.items(), max_bytes)):
            tar = out / f"train-{number:05d}.tar"
            write_shard(_samples(part, tar.name, table), tar, tar.with_suffix(".parquet"))


def _samples(items: Iterator[Item], file: str, table: ProvenanceCsv) -> Iterator[ShardSample]:
    for item in items:
        table.add(file, item)
        yield ShardSample(
            key=f"{item.row:09d}",
            url=item.facts["url"],
            caption=item.facts["caption"],
            image=item.image,
            label=item.label,
        )


DATA = "data"
MAX_SHARD_BYTES = 500_000_000
MAX_GROUP_BYTES, MAX_GROUP_ROWS = 16_000_000, 100  # of a row group: what is in memory here and in a reader
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_FIELDS: dict[str, Any] = {
    "image": _IMAGE,
    "label": pa.int64(),
    "row": pa.int64(),
    "url": pa.string(),
    "caption": pa.string(),
    "query": pa.string(),
    "rank": pa.int64(),
    "cosine": pa.float32(),
    "fresh_cosine": pa.float32(),
    "group": pa.int64(),
}


def write_huggingface(source: Source, out: Path, max_bytes: int = MAX_SHARD_BYTES) -> None:
    (out / DATA).mkdir()
    written = []
    for number, part in enumerate(in_parts(source.items(), max_bytes)):
        written.append(out / DATA / f"{number}.parquet")
        _write(written[-1], _schema(source.classes), part)
    for number, path in enumerate(written):  # how many there are is in each name, and known only now
        path.rename(path.with_name(f"train-{number:05d}-of-{len(written):05d}.parquet"))


def features(classes: tuple[str, ...]) -> Json:
    """The types of the columns in the words of `datasets`."""
    found: Json = {name: {"dtype": str(kind), "_type": "Value"} for name, kind in _FIELDS.items()}
    found["cosine"]["dtype"] = found["fresh_cosine"]["dtype"] = "float32"
    found["image"] = {"_type": "Image"}
    found["label"] = {"names": list(classes), "_type": "ClassLabel"}
    return found


def _schema(classes: tuple[str, ...]) -> pa.Schema:
    told = json.dumps({"info": {"features": features(classes)}})
    return pa.schema(_FIELDS.items(), metadata={"huggingface": told})


def _write(path: Path, schema: pa.Schema, items: Iterator[Item]) -> None:
    waiting: list[Json] = []
    size = 0
    with pq.ParquetWriter(path, schema, use_dictionary=False, write_statistics=False) as file:
        for item in items:
            waiting.append(_line(item))
            size += len(item.image)
            if size >= MAX_GROUP_BYTES or len(waiting) == MAX_GROUP_ROWS:
                file.write_table(pa.Table.from_pylist(waiting, schema))
                waiting, size = [], 0
        if waiting:
            file.write_table(pa.Table.from_pylist(waiting, schema))


def _line(item: Item) -> Json:
    image = {"bytes": item.image, "path": f"{item.row:09d}.{item.suffix}"}
    return {name: item.facts.get(name) for name in _FIELDS} | {"image": image, "label": item.label}


HEADER = ("file", "class", *COLUMNS)
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


class ProvenanceCsv:
    """One line an image, in the order they are added."""

    def __init__(self, path: Path, classes: Sequence[str]) -> None:
        self._stream = path.open("w", encoding="utf-8", newline="")
        self._lines = csv.writer(self._stream, lineterminator="\n")
        self._classes = classes
        self._lines.writerow(HEADER)

    def __enter__(self) -> ProvenanceCsv:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def add(self, file: str, item: Item) -> None:
        values = item.facts | {"label": item.label}
        cells = [file, self._classes[item.label], *(values.get(name) for name in COLUMNS)]
        self._lines.writerow([cell(value) for value in cells])


def cell(value: object) -> object:
    """Numbers as they are; words on one line, and with a quote in front where they would be a formula."""
    if value is None or value != value:
        return ""
    if not isinstance(value, str):
        return round(value, 6) if isinstance(value, float) else value
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in value).split())
    return f"'{line}" if line.startswith(_FORMULA) else line
