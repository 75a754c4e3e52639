"""Token ids are open_clip's own, whatever a caption is made of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mudg_core.corpus.demo.world import DemoWorld
from mudg_core.encode.models import open_clip
from mudg_core.encode.open_clip_support import WORDS, tokenised

ODD = [
    "",
    " ",
    "A photo of a CAT.",
    "two  spaces\tand\na line",
    "tom &amp; jerry &lt;b&gt;",
    "caf\u00e9 na\u00efve \u201cquoted\u201d \ufb01ne",
    "mojibake: cafÃ©",
    "<start_of_text> inside <end_of_text>",
    "it's we'll don't 123 4.5% $#@!",
    "猫の写真 🐈 ё",
    "bell \x07 and \x1b[31mred",
    "word " * 200,
    "nul \0 byte",
    "x" * 3000,
]


@pytest.fixture(scope="module")
def theirs() -> open_clip.SimpleTokenizer:
    return open_clip.SimpleTokenizer(context_length=24)


def test_the_same_ids(theirs: open_clip.SimpleTokenizer) -> None:
    world = DemoWorld(seed=3)
    texts = ODD + [world.row(i).caption for i in range(300)]
    assert torch.equal(tokenised(theirs)(texts), theirs(texts))


def test_random_ascii(theirs: open_clip.SimpleTokenizer) -> None:
    """Nothing between space and tilde needs mending, ampersands apart."""
    random = np.random.default_rng(0)
    texts = [bytes(random.integers(32, 127, random.integers(0, 60)).tolist()).decode() for _ in range(500)]
    assert torch.equal(tokenised(theirs)(texts), theirs(texts))


def test_words_of_the_web_do_not_pile_up() -> None:
    own = open_clip.SimpleTokenizer(context_length=24)
    before, quick = len(own.cache), tokenised(own)
    for start in range(0, WORDS + 500, 500):
        quick([" ".join(f"w{chr(97 + n % 26)}{n:x}q" for n in range(start, start + 500, 10))])
    assert len(own.cache) == before


def test_other_tokenizers_are_used_as_they_are() -> None:
    whole = open_clip.SimpleTokenizer(context_length=24, clean="canonicalize")
    assert torch.equal(tokenised(whole)(ODD), whole(ODD))
    assert not torch.equal(tokenised(whole)(ODD), open_clip.SimpleTokenizer(context_length=24)(ODD))
    assert tokenised(lambda texts: torch.ones(len(texts), 3))(["a", "b"]).shape == (2, 3)


def test_no_texts(theirs: open_clip.SimpleTokenizer) -> None:
    assert tokenised(theirs)([]).shape == (0, 24)
