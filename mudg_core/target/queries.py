"""The queries of a target on disk: its classes, the chosen descriptors, and the features of their prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mudg_core.target.augment import Encoder, Scored
from mudg_core.target.spec import Target

QUERIES = "queries.npy"  # one row a query, label by label
LABELS = "labels.npy"  # one row a label: its plain prompt
SPEC = "queries.json"


@dataclass(frozen=True)
class Queries:
    """Which texts stand for a target. A descriptor that is None leaves the plain prompt."""

    target: Target
    descriptors: tuple[str | None, ...]

    def prompts(self) -> list[list[str]]:
        """`prompts()[j][i]` says class i with augmentation j."""
        labels = range(len(self.target.classes))
        return [[self.target.prompt(label, phrase) for label in labels] for phrase in self.descriptors]

    def in_order(self) -> list[str]:
        """All queries as they are searched: label by label."""
        return [prompt for label in zip(*self.prompts(), strict=True) for prompt in label]

    def write(self, out: Path, scored: Sequence[Scored], encode: Encoder) -> None:
        np.save(out / QUERIES, encode(self.in_order()))
        np.save(out / LABELS, encode(self.target.prompts()))
        body = {
            "classes": self.target.classes,
            "template": self.target.template,
            "descriptors": self.descriptors,
            "prompts": self.in_order(),
            "scored": [asdict(item) for item in scored],
        }
        (out / SPEC).write_text(json.dumps(body, indent=1))


def read_queries(folder: Path) -> Queries:
    body = json.loads((folder / SPEC).read_text())
    target = Target(name="target", classes=tuple(body["classes"]), template=body["template"])
    return Queries(target, tuple(body["descriptors"]))


def read_features(folder: Path, name: str) -> NDArray[np.float32]:
    return np.asarray(np.load(folder / name, allow_pickle=False), dtype=np.float32)
