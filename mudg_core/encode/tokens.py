"""Texts as token ids, as open_clip gives them, for captions by the million.

Its own tokenizer mends the encoding of every text, which plain ASCII never needs, and remembers every word
that it has met, of which the web has no end. The first is nine tenths of what a caption takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

WORDS = 1 << 16  # remembered, the least recent forgotten first
Ids = tuple[int, ...]


def tokenised(tokenizer: Any) -> Callable[[Sequence[str]], torch.Tensor]:
    """A function with the result of `tokenizer(texts)`. Tokenizers of another build are used as they are."""
    from open_clip.tokenizer import SimpleTokenizer, _clean_lower

    plain = type(tokenizer) is SimpleTokenizer and tokenizer.reduction_fn is None
    if not plain or tokenizer.clean_fn is not _clean_lower or not tokenizer.context_length:
        return lambda texts: torch.as_tensor(tokenizer(list(texts)))
    ids = lru_cache(WORDS)(lambda word: _ids(tokenizer, word))
    return lambda texts: _tokens(tokenizer, ids, texts)


def _tokens(tokenizer: Any, ids: Callable[[str], Ids], texts: Sequence[str]) -> torch.Tensor:
    room = tokenizer.context_length - 2
    found = np.zeros((len(texts), tokenizer.context_length), np.int64)
    found[:, 0] = tokenizer.sot_token_id
    for line, text in zip(found, texts, strict=True):
        own = [number for word in tokenizer.pat.findall(_clean(tokenizer, text)) for number in ids(word)]
        end = min(len(own), room)
        line[1 : end + 1] = own[:end]
        line[end + 1] = tokenizer.eot_token_id
    return torch.from_numpy(found)


def _clean(tokenizer: Any, text: str) -> str:
    """Mending changes nothing in printable ASCII without HTML's entities."""
    if text.isascii() and text.isprintable() and "&" not in text:
        return " ".join(text.split()).lower()
    return str(tokenizer.clean_fn(text))


def _ids(tokenizer: Any, word: str) -> Ids:
    token = "".join(tokenizer.byte_encoder[byte] for byte in word.encode())
    known = token in tokenizer.cache
    found = tuple(tokenizer.encoder[part] for part in tokenizer.bpe(token).split(" "))
    if not known:
        tokenizer.cache.pop(token, None)
    return found
