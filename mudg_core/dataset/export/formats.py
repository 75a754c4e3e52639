"""The layouts of an export.

imagefolder   One folder a class, as torchvision's ImageFolder and most other tools read images. Folders are
              named by number first, so that their order is that of the labels. A class without images has
              none: readers refuse an empty folder.
webdataset    Tars of `.jpg`, `.txt`, `.json` and `.cls`, as the artifact itself is one, of bounded size.
              Pictures are called `.jpg` whatever they are, as img2dataset does it: readers ask for one name
              and look at the content.
huggingface   Parquet that `datasets.load_dataset` and the Hub take as it is. The library itself is not
              needed: it reads the types of the columns from the schema's metadata.

`classes.json` has the names of all classes as they are, `provenance.csv` a line for each image.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.corpus.shards import ShardSample, write_shard
from mudg_core.dataset.export.source import COLUMNS, Item, Source, in_parts
from mudg_core.settings import Json
from mudg_core.target.spec import slug

CLASSES = "classes.json"
PROVENANCE = "provenance.csv"
DATA = "data"
MAX_SHARD_BYTES = 500_000_000
MAX_GROUP_BYTES, MAX_GROUP_ROWS = 16_000_000, 100  # of a row group: what is in memory here and in a reader
HEADER = ("file", "class", *COLUMNS)
AddLine = Callable[[str, Item], None]
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_FIELDS: dict[str, Any] = {
    "image": pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
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


def write_imagefolder(source: Source, out: Path) -> None:
    folders = _write_classes(source, out)
    with _provenance(source, out) as add_line:
        for item in source.items():
            folder = out / folders[item.label]
            folder.mkdir(exist_ok=True)
            name = f"{item.row:09d}.{item.suffix}"
            (folder / name).write_bytes(item.image)
            add_line(f"{folder.name}/{name}", item)


def write_webdataset(source: Source, out: Path, max_bytes: int = MAX_SHARD_BYTES) -> None:
    _write_classes(source, out)
    with _provenance(source, out) as add_line:
        for number, part in enumerate(in_parts(source.items(), max_bytes)):
            tar = out / f"train-{number:05d}.tar"
            write_shard(_samples(part, tar.name, add_line), tar, tar.with_suffix(".parquet"))


def _samples(items: Iterator[Item], file: str, add_line: AddLine) -> Iterator[ShardSample]:
    for item in items:
        add_line(file, item)
        yield ShardSample(
            key=f"{item.row:09d}",
            url=item.facts["url"],
            caption=item.facts["caption"],
            image=item.image,
            label=item.label,
        )


def _write_classes(source: Source, out: Path) -> list[str]:
    """The folder of each class, also of those that have no image."""
    folders = [slug(name, label) for label, name in enumerate(source.classes)]
    names = dict(zip(folders, source.classes, strict=True))
    (out / CLASSES).write_text(json.dumps(names, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return folders


@contextmanager
def _provenance(source: Source, out: Path) -> Iterator[AddLine]:
    """Provenance as CSV, for people with a spreadsheet: one line an image, in the order they are added."""
    with (out / PROVENANCE).open("w", encoding="utf-8", newline="") as stream:
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(HEADER)

        def add_line(file: str, item: Item) -> None:
            values = item.facts | {"label": item.label}
            cells = [file, source.classes[item.label], *(values.get(name) for name in COLUMNS)]
            lines.writerow([cell(value) for value in cells])

        yield add_line


def cell(value: object) -> object:
    """Numbers as they are; words on one line, and with a quote in front where they would be a formula.

    Captions are strangers' words. A cell that begins with `=` is a formula to a spreadsheet, and may send
    what is in the other cells to somebody; a line break or a NUL breaks simple readers. The parquet of the
    artifact has the words as they were.
    """
    if value is None or value != value:
        return ""
    if not isinstance(value, str):
        return round(value, 6) if isinstance(value, float) else value
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in value).split())
    return f"'{line}" if line.startswith(_FORMULA) else line


def write_huggingface(source: Source, out: Path, max_bytes: int = MAX_SHARD_BYTES) -> None:
    (out / DATA).mkdir()
    files = []
    for number, part in enumerate(in_parts(source.items(), max_bytes)):
        files.append(out / DATA / f"{number}.parquet")
        _write_parquet(files[-1], _schema(source.classes), part)
    for number, path in enumerate(files):  # how many there are is in each name, and known only now
        path.rename(path.with_name(f"train-{number:05d}-of-{len(files):05d}.parquet"))


def _schema(classes: tuple[str, ...]) -> pa.Schema:
    """The types of the columns also in the words of `datasets`."""
    features: Json = {name: {"dtype": str(kind), "_type": "Value"} for name, kind in _FIELDS.items()}
    features["cosine"]["dtype"] = features["fresh_cosine"]["dtype"] = "float32"
    features["image"] = {"_type": "Image"}
    features["label"] = {"names": list(classes), "_type": "ClassLabel"}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.schema(_FIELDS.items(), metadata=metadata)


def _write_parquet(path: Path, schema: pa.Schema, items: Iterator[Item]) -> None:
    group: list[Json] = []
    size = 0
    with pq.ParquetWriter(path, schema, use_dictionary=False, write_statistics=False) as file:
        for item in items:
            group.append(_line(item))
            size += len(item.image)
            if size >= MAX_GROUP_BYTES or len(group) == MAX_GROUP_ROWS:
                file.write_table(pa.Table.from_pylist(group, schema))
                group, size = [], 0
        if group:
            file.write_table(pa.Table.from_pylist(group, schema))


def _line(item: Item) -> Json:
    image = {"bytes": item.image, "path": f"{item.row:09d}.{item.suffix}"}
    return {name: item.facts.get(name) for name in _FIELDS} | {"image": image, "label": item.label}
