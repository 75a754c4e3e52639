"""How well the absent-concept test tells what a corpus has from what it lacks, where the truth is known.

Each kind is asked for twice: in the whole gallery, and in the gallery without it. That is the hard case: the
model knows the kind, and all that is confusable with it is still there. Thresholds are chosen on one half of
the kinds and judged on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mudg_core.dataset.absent_classes import HITS, Presence, background_support, presence
from mudg_core.index.vectors import Float32, Int64, normalised

BACKGROUND = 500


@dataclass(frozen=True)
class AbsentConcepts:
    """`halves`: the same on either half of the kinds. `found` and `false`: absent and present kinds of the
    second half that a threshold of the first takes for absent; `strangers`: the same of what never was
    there."""

    auc: float
    halves: tuple[float, float]
    threshold: float
    found: float
    false: float
    strangers: float | None


@dataclass(frozen=True)
class Gallery:
    images: Float32
    texts: Float32
    kinds: NDArray[Any]

    def search(self, queries: Float32, neighbors: int, hidden: Any = None) -> Int64:
        """Exact hits, best first; of one kind, if given, nothing is found."""
        cosines = queries @ self.images.T
        if hidden is not None:
            cosines[:, self.kinds == hidden] = -np.inf
        best: Int64 = np.argsort(-cosines, axis=1, kind="stable")[:, :neighbors]
        return best

    def background(self, centre: Float32, seed: int) -> Float32:
        """Support of random captions. The whole gallery serves for every hidden kind: a few captions of the
        kind itself move its shares by less than their share of the corpus."""
        count = min(BACKGROUND, len(self.texts) // 10)
        rows = np.random.default_rng(seed).choice(len(self.texts), count, replace=False)
        captions = self.texts[rows]
        hits = self.search(captions, 2 * HITS)
        gather = self.images.__getitem__, self.texts.__getitem__
        return background_support(captions, rows, hits, HITS, *gather, centre)


def absent_concept_auc(
    images: Float32,
    texts: Float32,
    kinds: NDArray[Any],
    names: Sequence[str],
    prompts: Float32,
    strangers: Float32 | None = None,
    *,
    seed: int = 0,
) -> AbsentConcepts:
    """`kinds` are the true kinds of the gallery's rows, `prompts` the plain prompts of `names`, and
    `strangers` those of things that no row shows."""
    gallery = Gallery(normalised(images), normalised(texts), kinds)
    centre = gallery.texts.mean(axis=0)
    known = gallery.background(centre, seed)

    def judged(queries: Float32, hidden: Any = None) -> Presence:
        hits = gallery.search(queries, HITS, hidden)
        return presence(queries, hits, known, centre, gallery.texts.__getitem__)

    there = judged(prompts).share
    gone = np.array([judged(prompts[[i]], name).share[0] for i, name in enumerate(names)])
    first, second = slice(0, None, 2), slice(1, None, 2)
    threshold = _between(there[first], gone[first])
    return AbsentConcepts(
        auc=_auc(there, gone),
        halves=(_auc(there[first], gone[first]), _auc(there[second], gone[second])),
        threshold=threshold,
        found=float((gone[second] < threshold).mean()),
        false=float((there[second] < threshold).mean()),
        strangers=None if strangers is None else float((judged(strangers).share < threshold).mean()),
    )


def _between(there: Any, gone: Any) -> float:
    """The threshold that is wrong about fewest; of equals, the lowest, as a false alarm is worse."""
    tried = np.nextafter(np.unique(np.concatenate([there, gone])), np.float32(2))
    wrong = [(there < value).sum() + (gone >= value).sum() for value in tried]
    return float(tried[int(np.argmin(wrong))])


def _auc(there: Any, gone: Any) -> float:
    """How often what is there has the higher share; a draw counts half."""
    more, same = there[:, None] > gone[None], there[:, None] == gone[None]
    return float(more.mean() + 0.5 * same.mean())
