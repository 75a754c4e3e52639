"""Features of more images or prompts than fit in memory at once, with their gradient (gradient caching)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Encode = Callable[[Tensor], Tensor]


class Encoded:
    """Features of chunks, one after the other.

    A single chunk keeps its graph. Of several only the features stay; once the loss has told their gradient,
    each chunk is encoded again for its own. So memory holds one chunk's graph, however many there are.
    """

    def __init__(self, encode: Encode, chunks: Sequence[Tensor]) -> None:
        self._encode, self._chunks = encode, chunks
        self._graph = encode(chunks[0]) if len(chunks) == 1 else None
        found = self._graph if self._graph is not None else encoded(encode, chunks)
        self.features = found.detach().requires_grad_()

    def backward(self) -> None:
        """From the features' gradient to that of the weights, where it is added to what is there."""
        assert self.features.grad is not None
        if self._graph is not None:
            self._graph.backward(self.features.grad)  # type: ignore[no-untyped-call]
            return
        parts = torch.split(self.features.grad, [len(chunk) for chunk in self._chunks])
        for chunk, gradient in zip(self._chunks, parts, strict=True):
            self._encode(chunk).backward(gradient)  # type: ignore[no-untyped-call]


@torch.no_grad()
def encoded(encode: Encode, chunks: Sequence[Tensor]) -> Tensor:
    """Features without a graph."""
    return torch.cat([encode(chunk) for chunk in chunks])


@dataclass(frozen=True)
class Prompts:
    """The prompts of a step as chunks of tokens, of like length together: a chunk costs what its longest
    does."""

    chunks: list[Tensor]
    places: Tensor  # of each prompt among the chunks' rows
    augmentations: int

    @classmethod
    def of(cls, tokens: Sequence[Tensor], ends: Encode, size: int) -> Prompts:
        """`tokens` of each augmentation, a row a class."""
        rows = torch.cat(list(tokens))
        order = torch.argsort(ends(rows), stable=True)
        return cls(list(torch.split(rows[order], size)), torch.argsort(order), len(tokens))

    def arranged(self, features: Tensor) -> Tensor:
        """(augmentations, classes, dim), from features in the order of the chunks."""
        return features[self.places].view(self.augmentations, -1, features.shape[-1])
