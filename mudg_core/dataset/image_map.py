"""A map of a target's images: near on the map is alike to the index model.

It shows at a glance what selection does. The nearest neighbours of a plain prompt sit close together; the
candidates of augmented queries spread over the class; the chosen ones cover it. Only images are placed: texts
live apart from images in the space of CLIP, and would all end up in one corner.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mudg_core.dataset.candidates import Features
from mudg_core.index.exact import exact_cosines_by_row
from mudg_core.index.vectors import Bool, Float32, Int64, normalised

MAP = "map.json"
MAX_POINTS = 2000
DIGITS = 4
CHUNK = 16_384
_PERPLEXITY, _DIMENSIONS, _ROUNDS = 30.0, 50, 500


@dataclass(frozen=True)
class ClassMap:
    """Points with coordinates in 0..1. Each is a candidate, and may be near its prompt, chosen, or both.

    `images` says how many candidates there are in truth.
    """

    x: Float32
    y: Float32
    row: Int64
    label: Int64
    nearest: Bool
    chosen: Bool
    images: int

    def write(self, path: Path) -> None:
        columns = {name: getattr(self, name) for name in ("nearest", "chosen", "row", "label")}
        body = {name: np.round(getattr(self, name).astype(float), DIGITS).tolist() for name in "xy"}
        body |= {name: column.astype(int).tolist() for name, column in columns.items()}
        path.write_text(json.dumps(body | {"images": self.images}))

    @classmethod
    def read(cls, path: Path) -> ClassMap:
        body: Any = json.loads(path.read_text())
        return cls(
            x=np.array(body["x"], np.float32),
            y=np.array(body["y"], np.float32),
            row=np.array(body["row"], np.int64),
            label=np.array(body["label"], np.int64),
            nearest=np.array(body["nearest"], np.bool_),
            chosen=np.array(body["chosen"], np.bool_),
            images=int(body["images"]),
        )


def nearest_to_prompts(
    rows: Int64, labels: Int64, features: Features, prompts: Float32, per_class: int
) -> Bool:
    """Which images are among the `per_class` of their label that are nearest to its plain prompt."""
    cosines = np.empty(len(rows))
    for first in range(0, len(rows), CHUNK):
        part = slice(first, first + CHUNK)
        cosines[part] = exact_cosines_by_row(normalised(features(rows[part])), prompts[labels[part]])
    near = np.zeros(len(labels), dtype=np.bool_)
    order = np.lexsort((rows, -cosines, labels))
    near[order] = _places(labels[order]) < per_class
    return near


def sample(labels: Int64, nearest: Bool, chosen: Bool, limit: int, seed: int) -> Int64:
    """At most `limit` points: as many of each class, where it has them, and of each kind in turn.

    Which kind comes first changes from class to class, so that of a thousand classes with two points each all
    kinds are seen.
    """
    kind = np.where(chosen, 0, np.where(nearest, 1, 2)).astype(np.int64)
    coin = np.random.default_rng(seed).random(len(labels))
    by_kind = np.lexsort((coin, kind, labels))
    turn = np.empty(len(labels), dtype=np.int64)
    turn[by_kind] = _places(labels[by_kind] * 3 + kind[by_kind])
    by_class = np.lexsort(((kind + labels) % 3, turn, labels))
    place = np.empty(len(labels), dtype=np.int64)
    place[by_class] = _places(labels[by_class])
    return np.sort(np.lexsort((coin, place))[:limit])


def _places(keys: Int64) -> Int64:
    """0, 1, 2 … within each run of equal keys."""
    starts = np.ones(len(keys), dtype=np.bool_)
    starts[1:] = keys[1:] != keys[:-1]
    at = np.arange(len(keys), dtype=np.int64)
    return at - np.maximum.accumulate(np.where(starts, at, 0)) if len(keys) else at


def project(features: Float32, seed: int) -> Float32:
    """Two coordinates in 0..1 for each image, by t-SNE from a PCA start; in one thread: always the same on
    one CPU. On another, t-SNE may make much of a last bit; nothing but the report's picture hangs on it."""
    count, dim = features.shape
    unit = normalised(features)
    if count < 3 or np.ptp(unit, axis=0).max() < 1e-6:  # nothing to tell images apart by
        return np.stack([np.linspace(0.25, 0.75, count), np.full(count, 0.5)], axis=1).astype(np.float32)
    from sklearn.decomposition import PCA  # here: it takes seconds to load
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    tsne = {"init": "pca", "max_iter": _ROUNDS, "random_state": seed % 2**31, "n_jobs": 1}
    with threadpool_limits(1):
        flat = PCA(min(_DIMENSIONS, count, dim), svd_solver="full").fit_transform(unit)
        flat = TSNE(2, perplexity=min(_PERPLEXITY, (count - 1) / 3), **tsne).fit_transform(flat)
    low, high = flat.min(axis=0), flat.max(axis=0)
    return np.asarray((flat - low) / np.maximum(high - low, 1e-9), dtype=np.float32)


def draw_map(
    rows: Int64,
    labels: Int64,
    chosen: Sequence[int] | Int64,
    features: Features,
    prompts: Float32,
    *,
    seed: int = 0,
    limit: int = MAX_POINTS,
) -> ClassMap:
    """The map of a target's candidates: `rows` with their pseudo-labels; `features` reads index features.

    `chosen` are rows; `prompts` has the feature of each label's plain prompt, of which as many neighbours are
    told as the largest class has chosen images. Features are read in parts, so memory stays bounded.
    """
    taken = np.isin(rows, np.asarray(chosen, np.int64))
    per_class = int(np.bincount(labels[taken]).max(initial=0))
    near = nearest_to_prompts(rows, labels, features, normalised(prompts), per_class)
    kept = sample(labels, near, taken, limit, seed)
    places = project(features(rows[kept]), seed)
    return ClassMap(
        places[:, 0], places[:, 1], rows[kept], labels[kept], near[kept], taken[kept], images=len(rows)
    )
