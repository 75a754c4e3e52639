"""Evaluation images where the user has them, for a look that leaves nothing behind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mudg_core.evaluate.images import Labelled, Source

Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class ListedImages:
    """What `EvaluationSet` is, without a copy; each image is decoded when it is asked for."""

    listed: Mapping[str, Sequence[Labelled]]
    labels: Mapping[str, Int64]

    @classmethod
    def of(cls, source: Source) -> ListedImages:
        listed: dict[str, list[Labelled]] = {}
        for image in source.listed("test"):
            listed.setdefault(image.domain, []).append(image)
        labels = {domain: np.array([image.label for image in found]) for domain, found in listed.items()}
        return cls(listed, labels)

    def images(self, domain: str, chosen: Collection[int] | None = None) -> Iterator[Image.Image]:
        for place, image in enumerate(self.listed[domain]):
            if chosen is None or place in chosen:
                yield image.decoded()
