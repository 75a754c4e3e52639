"""The learned router: from a text to the cells that hold its nearest images.

One linear layer, started at the centroids, so that it costs a query nothing extra. It is fitted to where the
nearest images of training texts really are, and stops when held-out texts no longer gain: with few texts
a cell it would otherwise learn them by heart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn.functional import log_softmax

from mudg_core.index.coarse import Coarse, probabilities
from mudg_core.index.pairs import held_out
from mudg_core.index.vectors import Float32, Int64

SCALE = 20.0  # of cosines, so that the first probabilities are neither flat nor certain
RATE, BATCH, EPOCHS, PATIENCE = 2e-2, 512, 12, 2
BLOCK = 8192


@dataclass(frozen=True)
class RouterFit:
    coarse: Coarse
    losses: tuple[float, ...]  # on held-out texts: before, and after each epoch


def fit(
    coarse: Coarse,
    texts: Float32,
    homes: Int64,
    seed: int,
    watch: Callable[[int, float], None] = lambda epoch, loss: None,
) -> RouterFit:
    """Fits the query side. `homes[text, neighbour, copy]` are the cells of a text's nearest images; -1 pads.

    An image that lies in several cells is found in any of them, so it asks for the sum of their probability.
    """
    inputs = torch.from_numpy(coarse.centring.texts(texts))
    targets = torch.from_numpy(homes)
    weights = torch.tensor(coarse.weights * (1.0 if coarse.routed else SCALE), requires_grad=True)
    bias = torch.tensor(coarse.bias, requires_grad=True)
    optimiser = torch.optim.Adam([weights, bias], lr=RATE)
    random = torch.Generator().manual_seed(seed)
    training = len(inputs) - held_out(len(inputs))
    steps = EPOCHS * max(1, -(-training // BATCH))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _cosine(step / steps))
    check = inputs[training:], targets[training:]
    best = (_mean_loss(*check, weights, bias), weights.detach().clone(), bias.detach().clone())
    losses = [best[0]]
    for epoch in range(EPOCHS):
        for batch in torch.randperm(training, generator=random).split(BATCH):  # type: ignore[no-untyped-call]
            loss = _loss(inputs[batch], targets[batch], weights, bias)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        losses.append(_mean_loss(*check, weights, bias))
        watch(epoch, losses[-1])
        if losses[-1] < best[0]:
            best = (losses[-1], weights.detach().clone(), bias.detach().clone())
        elif min(losses[-PATIENCE:]) > best[0]:
            break
    routed = replace(coarse, weights=best[1].numpy(), bias=best[2].numpy(), routed=True)
    return RouterFit(routed, tuple(losses))


def _cosine(done: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def _loss(
    inputs: torch.Tensor, homes: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    scores = log_softmax(inputs @ weights.T + bias, dim=1)
    each = scores.gather(1, homes.clamp(min=0).flatten(1)).view(homes.shape)
    found = each.masked_fill(homes < 0, -math.inf).logsumexp(dim=2)
    there = (homes >= 0).any(dim=2)
    return -found[there].sum() / there.sum().clamp(min=1)


@torch.no_grad()
def _mean_loss(inputs: torch.Tensor, homes: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> float:
    parts = [slice(first, first + BLOCK) for first in range(0, len(inputs), BLOCK)]
    losses = [float(_loss(inputs[p], homes[p], weights, bias)) * len(inputs[p]) for p in parts]
    return sum(losses) / len(inputs)


def first_cells(coarse: Coarse, texts: Float32) -> tuple[Int64, Float32]:
    """The router's first cell for each text and how sure it is of it: what spilling goes by."""
    cells, sure = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for first in range(0, len(texts), BLOCK):
        found = probabilities(coarse.scores(texts[first : first + BLOCK]))
        cells.append(found.argmax(axis=1))
        sure.append(found.max(axis=1))
    return np.concatenate(cells), np.concatenate(sure)
