"""What the paper's authors measured, to hold against an estimate. Theirs, not ours."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = 'the paper, appendix "Hardware and Computational Cost" (A40, A100 and L40S, one GPU at a time)'
QUERIES = 16_000  # ImageNet-1K: 1000 classes, 16 augmentations
POOL = 4_227
TESTED = 50_000  # ImageNet-1K's validation images


@dataclass(frozen=True)
class Figure:
    """A figure of the paper for one stage."""

    stage: str
    short: str
    what: str
    seconds: float
    stored_bytes: float | None = None


FIGURES = (
    Figure("train", "1 h", "paired k-means on the 20M subset of LAION", 3_600),
    Figure("populate", "about 1 d, 850 GB", "adding all of LAION-2B to the 4-bit index", 86_400, 850e9),
    Figure("search", "30 s", "retrieval for the 16,000 queries of ImageNet-1K", 30),
    Figure("label", "55 s", "rank labelling for ImageNet-1K", 55),
    Figure("select", "9 min 20 s", "clustering for ImageNet-1K, on one CPU", 560),
    Figure("fetch", "158 s", "download of the 96,000 selected images", 158),
)
BY_STAGE = {figure.stage: figure for figure in FIGURES}
