"""A small training set in a store, with the ancestors that an export asks; its words are hostile."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from mudg_core.dataset.fetch_filter_refill import CHOSEN, DEAD, FetchResult
from mudg_core.dataset.training_set import write_training_set
from mudg_core.settings import StorageSettings
from mudg_core.storage import ArtifactRef, ArtifactStore, Facts, Recipe

CLASSES = ("cat", "../../x", '<script>alert("1")</script> | *b*: &amp;', "犬", "nothing here")
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
SUFFIXES = ("jpg", "png", "webp", "gif", "bmp")
CAPTIONS = ('=HYPERLINK("http://evil.example")', "two\nlines, and a \x00 \u202e", "  +1", "", "plain")
IMAGES = 10


def picture(number: int, side: int = 8) -> bytes:
    stored = io.BytesIO()
    Image.new("RGB", (side, side), (number * 20, 100, 50)).save(stored, FORMATS[number % 5])
    return stored.getvalue()


def store_at(folder: Path) -> ArtifactStore:
    return ArtifactStore(StorageSettings(url=f"file://{folder}/store", cache_dir=str(folder / "cache")))


def labels(images: int = IMAGES) -> list[int]:
    """The last class gets none, and the order is not that of labels."""
    return [(7 * number) % (len(CLASSES) - 1) for number in range(images)]


def make_dataset(
    store: ArtifactStore, *, seed: int = 0, images: int = IMAGES, classes: Sequence[str] = CLASSES
) -> ArtifactRef:
    """Rows are 40, 41 and so on; row 39 is a dead link of the first class."""
    spec = {
        "classes": list(classes),
        "template": "a photo of a {}.",
        "descriptors": [None],
        "prompts": [f"a photo of a {name}." for name in classes],
        "scored": [],
    }
    queries = make(store, "queries", {"inputs": {"n": len(classes)}}, {"queries.json": spec})
    index = make(store, "index", {}, {"facts.json": {}})
    picks = make(store, "picks", {"inputs": {"seed": seed}, "dataset.per_class": 4}, {"x": {}}, index=index)
    recipe = Recipe(
        stage="dataset",
        algorithm=1,
        settings={"inputs": {}, "dataset.min_cosine": 0.25},
        parents={"queries": queries, "picks": picks},
    )
    filled = _filled(images)
    links = {
        row: {"url": f"https://x.example/{row}.jpg?a=1&b=2", "caption": CAPTIONS[row % 5]}
        for row in range(39, 40 + images)
    }

    def write(folder: Path) -> Facts:
        write_training_set(filled, links, folder)
        counts = np.bincount(labels(images), minlength=len(classes)).tolist()
        return Facts(
            {"images": images, "per_label": counts, "outcomes": {CHOSEN: images, DEAD: 1}},
        )

    return store.build(recipe, write)


def make_report(store: ArtifactStore, datasets: list[ArtifactRef], names: list[str]) -> ArtifactRef:
    """A report over targets of one seed each."""
    targets = [{"name": name, "seeds": [0]} for name in names]
    settings = {"inputs": {"targets": targets}}
    recipe = Recipe(stage="report", algorithm=1, settings=settings, parents={"datasets": tuple(datasets)})
    return store.build(recipe, _maker({"report.html": {}}))


def _filled(images: int) -> FetchResult:
    rows = list(range(39, 40 + images))
    table = pa.table(
        {
            "row": rows,
            "label": [0, *labels(images)],
            "query": [0, *labels(images)],
            "rank": [1] * len(rows),
            "cosine": pa.array([0.3] * len(rows), pa.float32()),
            "group": rows,
            "quota": [1] * len(rows),
            "turn": [0] * len(rows),
            "outcome": [DEAD] + [CHOSEN] * images,
            "fresh_cosine": pa.array([float("nan")] + [0.31] * images, pa.float32()),
        }
    )
    pictures = {40 + number: picture(number) for number in range(images)}
    return FetchResult(table, pictures, tried=len(rows), dead={"HTTP 404": 1}, rounds=2)


def make(
    store: ArtifactStore,
    stage: str,
    settings: Any,
    files: dict[str, Any],
    facts: dict[str, Any] | None = None,
    **parents: ArtifactRef,
) -> ArtifactRef:
    """An artifact of JSON files."""
    recipe = Recipe(stage=stage, algorithm=1, settings=settings, parents=dict(parents))
    return store.build(recipe, _maker(files, facts))


def _maker(files: dict[str, Any], facts: dict[str, Any] | None = None) -> Any:
    def write(folder: Path) -> Facts:
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content))
        return Facts(facts or {})

    return write
