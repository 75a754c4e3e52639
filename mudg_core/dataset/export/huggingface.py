"""A folder that `datasets.load_dataset` and the Hugging Face Hub take as it is: parquet, typed by its schema.

The library itself is not needed: it finds the types of the columns in the schema's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mudg_core.dataset.export.source import Item, Source, in_parts
from mudg_core.settings import Json

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
