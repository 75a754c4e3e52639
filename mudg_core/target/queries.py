"""The queries of a target on disk: its classes, how they are said and why, and the features of the texts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mudg_core.settings import Json
from mudg_core.target.descriptor_selection import Encoder, Scored
from mudg_core.target.prompts import Augmentations
from mudg_core.target.spec import Target

QUERIES = "queries.npy"  # one row a query, label by label
LABELS = "labels.npy"  # one row a label: its plain prompt
SPEC = "queries.json"
EXPLAINED = 300  # of the best and of the worst descriptors, told with the clusters that they collapse


@dataclass(frozen=True)
class Queries:
    """Which texts stand for a target: the prompts of its classes, and what is searched for.

    `matrix[j][i]` says class i with augmentation j: what is trained and evaluated with. `texts` are searched
    for, and `labels` says which class each of them is of: a class that has synonyms has more of them.
    """

    target: Target
    method: str
    descriptors: tuple[str | None, ...]
    matrix: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]
    labels: tuple[int, ...]

    @classmethod
    def of(cls, target: Target, made: Augmentations) -> Queries:
        labels, texts = zip(*made.texts(target), strict=True)
        matrix = tuple(tuple(row) for row in made.prompts(target))
        return cls(target, made.method, made.descriptors, matrix, texts, labels)

    def prompts(self) -> list[list[str]]:
        return [list(row) for row in self.matrix]


def write_queries(queries: Queries, made: Augmentations, out: Path, encode: Encoder) -> None:
    target = queries.target
    np.save(out / QUERIES, encode(queries.texts))
    np.save(out / LABELS, encode(target.prompts()))
    body: Json = {
        "classes": target.classes,
        "template": target.template,
        "synonyms": target.synonyms,
        "method": queries.method,
        "descriptors": queries.descriptors,
        "matrix": queries.matrix,
        "prompts": queries.texts,
        "labels": queries.labels,
        "clusters": made.clusters,
        "scored": explained(made.scored),
    }
    (out / SPEC).write_text(json.dumps(body, indent=1))


def explained(scored: tuple[Scored, ...]) -> list[Json]:
    """Every descriptor with its score, best first; the clusters only where somebody will look."""
    listed: list[Json] = []
    for place, item in enumerate(scored):
        line: Json = {"descriptor": item.descriptor, "loss": item.loss, "rise": item.rise}
        if place < EXPLAINED or place >= len(scored) - EXPLAINED:
            line["collapsed"] = item.collapsed
        listed.append(line)
    return listed


def read_queries(folder: Path) -> Queries:
    body = json.loads((folder / SPEC).read_text())
    target = Target(
        name="target", classes=body["classes"], template=body["template"], synonyms=body["synonyms"]
    )
    return Queries(
        target,
        body["method"],
        tuple(body["descriptors"]),
        tuple(tuple(row) for row in body["matrix"]),
        tuple(body["prompts"]),
        tuple(body["labels"]),
    )


def read_ranked(folder: Path) -> tuple[str, ...]:
    """The whole pool that was scored: what was chosen, then the rest, best first."""
    body = json.loads((folder / SPEC).read_text())
    scored = (item["descriptor"] for item in body["scored"])
    return tuple(dict.fromkeys([*body["descriptors"], *scored]))


def read_features(folder: Path, name: str) -> NDArray[np.float32]:
    return np.asarray(np.load(folder / name, allow_pickle=False), dtype=np.float32)
