"""The best few of very many scores, without sorting them.

After the first block hardly a score beats its text's worst kept one. So a block costs a comparison for each
chunk's maximum, and more only where that is good enough.

A cosine and the place of its image are kept as one integer, the better the larger. So no two are equal, and
what is kept cannot depend on the order in which scores came.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mudg_core.index.scoring import CHUNK, Scores

SHARE = 64  # only this part of a block's scores is looked at closely at a time, for the memory that it takes
PLACES = 2**32 - 1


class TopK:
    """The `keep` best places of each text, over blocks of scores whose places ascend."""

    def __init__(self, texts: int, keep: int, device: str) -> None:
        nothing = _pack(torch.tensor([-torch.inf]), torch.tensor([PLACES])).item()
        self._keys = torch.full((texts, keep), int(nothing), dtype=torch.int64, device=device)

    def absorb(self, first_text: int, scores: Scores, first_place: int) -> None:
        """Scores of texts from `first_text` on, with images from `first_place` on."""
        keys = self._keys[first_text : first_text + len(scores.tops)]
        _absorb(keys, scores, first_place, most=scores.tops.numel() // SHARE)

    def result(self) -> tuple[Tensor, Tensor]:
        """Places and cosines, best first; place -1 and cosine -inf where there were no more."""
        places, cosines = PLACES - (self._keys & PLACES), _cosines(self._keys)
        return places.where(cosines > -torch.inf, -1), cosines


def _absorb(keys: Tensor, scores: Scores, first_place: int, most: int) -> None:
    """Puts what is good enough among the keys; by halves of the texts if that is more than `most` chunks."""
    floor, promising = _promising(scores.tops, keys)
    if len(keys) > 1 and int(promising.sum()) > most:
        for half in (slice(len(keys) // 2), slice(len(keys) // 2, None)):
            _absorb(keys[half], scores.of(half), first_place, most)
        return
    text, chunk = promising.nonzero(as_tuple=True)
    values = scores.at(text, chunk)
    which, column = (values > floor[text, None]).nonzero(as_tuple=True)
    places = first_place + chunk[which] * CHUNK + column
    _insert(keys, text[which], _pack(values[which, column], places))


def _promising(tops: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """What a score must exceed to be worth keeping, and which chunks hold such scores.

    It must beat the worst kept score of its text (an equal one loses: its place is higher). Where that says
    little, as in the first block, it must also be no worse than the `keep`-th best of the chunks' maxima.
    """
    keep = keys.shape[1]
    floor = _cosines(keys[:, -1])
    promising = tops > floor[:, None]
    if tops.shape[1] >= keep and int(promising.sum()) > len(keys) * keep:
        reached = tops.topk(keep).values[:, -1]
        floor = floor.maximum(reached.nextafter(torch.full_like(reached, -torch.inf)))
        promising = tops > floor[:, None]
    return floor, promising


def _insert(keys: Tensor, texts: Tensor, found: Tensor) -> None:
    """Keeps the best of each text's old keys and those found for it; `texts` ascend."""
    keep = keys.shape[1]
    counts = texts.bincount(minlength=len(keys))
    changed = counts.nonzero()[:, 0]
    counts = counts[changed]
    owners = torch.cat([changed.repeat_interleave(keep), texts])
    ranked, order = torch.cat([keys[changed].flatten(), found]).sort(descending=True)
    ranked = ranked[owners[order].argsort(stable=True)]
    ends = (counts + keep).cumsum(0)
    firsts = (ends - counts - keep)[:, None] + torch.arange(keep, device=keys.device)
    keys[changed] = ranked[firsts]


def _pack(cosines: Tensor, places: Tensor) -> Tensor:
    """Adding zero makes -0.0 equal to 0.0; the bits of floats sort as integers once negatives are flipped."""
    bits = (cosines + 0.0).view(torch.int32)
    return (_flip_negatives(bits).long() << 32) | (PLACES - places)


def _cosines(keys: Tensor) -> Tensor:
    return _flip_negatives((keys >> 32).int()).view(torch.float32)


def _flip_negatives(bits: Tensor) -> Tensor:
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)
