"""Which lines of the plan run on a GPU. A test holds it against the stages that ask for one (`gpu=True`).

Without GPU code are: k-means, the assignment to cells, the router, spilling, searches (faiss on CPUs),
labels, selection, the search for leaks, and the copy of evaluation images.
"""

from __future__ import annotations

GPU_STAGES = frozenset(
    {
        "embed",
        "pair",
        "augment",
        "fetch",
        "finetune",
        "held-out",
        "gate",
        "prints",
        "zero-shot",
        "scores",
        "classifier",
    }
)
SINGLE_ONLY = frozenset({"pair"})  # on a GPU too, as the nearest must be the nearest
