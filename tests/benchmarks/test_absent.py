"""The measurement of the absent-concept test, on generated embeddings whose truth is known."""

from __future__ import annotations

import numpy as np

from benchmarks.dataset.absent import absent_concept_auc
from mudg_core.index.vectors import normalised

KINDS, EACH, DIM = 20, 60, 32


def measured(*, lying: bool) -> float:
    """Images and captions lie around their kind, each modality with an offset; captions may be dealt anew."""
    random = np.random.default_rng(0)
    centres = normalised(random.standard_normal((KINDS, DIM)))
    kinds = np.repeat(np.arange(KINDS), EACH)
    images, texts = (
        normalised(centres[kinds] + 0.15 * random.standard_normal((len(kinds), DIM)) + offset)
        for offset in normalised(random.standard_normal((2, DIM)))
    )
    prompts = normalised(centres + normalised(random.standard_normal((2, DIM)))[0] / 10)
    if lying:
        texts = random.permutation(texts)
    names = [str(kind) for kind in range(KINDS)]
    found = absent_concept_auc(images, texts, kinds.astype(str), names, prompts)
    return found.auc


def test_captions_tell_what_is_there_unless_they_lie() -> None:
    assert measured(lying=False) >= 0.95
    assert 0.2 < measured(lying=True) < 0.8
