"""The learned router: from a text to the cells that hold its nearest images.

One linear layer, started at the centroids, so that it costs a query nothing extra. It is fitted to where the
nearest images of training texts really are, and stops when held-out texts no longer gain: with few texts
a cell it would otherwise learn them by heart.

Everything in an index hangs on its weights, so they are the same bits on every CPU: forward products are
exact (`routing.py`), residuals lie on a grid on which the sums of a gradient are exact, and the rest is
arithmetic of single numbers, which IEEE 754 defines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from mudg_core.index.coarse import Coarse
from mudg_core.index.exact import same_cos, same_log, sums_in_order
from mudg_core.index.routing import (
    POWER_BYTES,
    limit,
    probabilities,
    rounded_queries,
    rounded_weights,
    routing_scores,
)
from mudg_core.index.training_data import held_out
from mudg_core.index.vectors import Float32, Float64, Int64, blocks

SCALE = 20.0  # of cosines, so that the first probabilities are neither flat nor certain
RATE, BATCH, EPOCHS, PATIENCE = 2e-2, 512, 12, 2
BLOCK = 1024
RESIDUAL_GRID = 2.0**28  # a batch of 512 texts with 16 neighbours sums to less than 2^53 steps
LOSS_GRID = 2.0**30
TERMS = 8  # of the exponential series in training
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8


@dataclass(frozen=True)
class RouterFit:
    coarse: Coarse
    losses: tuple[float, ...]  # on held-out texts: before, and after each epoch


@dataclass(frozen=True)
class Layer:
    """Weights and biases as they score: rounded."""

    weights: Float32
    bias: Float32

    def probabilities(self, inputs: Float32, terms: int = TERMS) -> Float64:
        return probabilities(routing_scores(inputs, self.weights, self.bias), terms)


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
    inputs = rounded_queries(coarse.centring.texts(texts))
    training = len(inputs) - held_out(len(inputs))
    check = inputs[training:], homes[training:]
    steps = _epochs(coarse, inputs[:training], homes[:training], seed)
    best = next(steps)
    losses = [_mean_loss(*check, best)]
    lowest = losses[0]
    for epoch, layer in enumerate(steps):
        losses.append(_mean_loss(*check, layer))
        watch(epoch, losses[-1])
        if losses[-1] < lowest:
            lowest, best = losses[-1], layer
        elif min(losses[-PATIENCE:]) > lowest:
            break
    return RouterFit(replace(coarse, weights=best.weights, bias=best.bias, routed=True), tuple(losses))


def _epochs(coarse: Coarse, inputs: Float32, homes: Int64, seed: int) -> Iterator[Layer]:
    """The layer as it starts, and after each epoch."""
    weights = coarse.weights.astype(np.float64) * (1.0 if coarse.routed else SCALE)
    bias = coarse.bias.astype(np.float64)
    optimisers, random = (Adam(weights), Adam(bias)), np.random.default_rng(seed)
    steps = EPOCHS * max(1, -(-len(inputs) // BATCH))
    limit(weights, bias)
    yield (layer := Layer(rounded_weights(weights), rounded_weights(bias)))
    for _ in range(EPOCHS):
        order = random.permutation(len(inputs))
        for first in range(0, len(order), BATCH):
            batch = np.sort(order[first : first + BATCH])
            rate = RATE * _cosine(optimisers[0].steps / steps)
            for optimiser, gradient in zip(
                optimisers, _gradients(inputs[batch], homes[batch], layer), strict=True
            ):
                optimiser.step(gradient, rate)
            limit(weights, bias)
            layer = Layer(rounded_weights(weights), rounded_weights(bias))
        yield layer


def _cosine(done: float) -> float:
    return 0.5 * (1 + same_cos(math.pi * min(1.0, done)))


def _gradients(inputs: Float32, homes: Int64, layer: Layer) -> tuple[Float64, Float64]:
    """Of the mean loss, by weights and by biases."""
    residuals = layer.probabilities(inputs)
    there = (homes >= 0).any(axis=2)
    wanted = _wanted(residuals, homes)
    residuals *= there.sum(axis=1)[:, None]
    residuals -= wanted
    residuals *= RESIDUAL_GRID
    np.rint(residuals, out=residuals)
    scale = 1 / (RESIDUAL_GRID * max(1, int(there.sum())))
    return (residuals.T @ inputs.astype(np.float64)) * scale, residuals.sum(axis=0) * scale


def _wanted(probability: Float64, homes: Int64) -> Float64:
    """How often each cell is asked for: an image asks once, for its cells in proportion to what they have."""
    picked = _picked(probability, homes)
    shares = picked / np.maximum(sums_in_order(picked), np.finfo(np.float64).tiny)[..., None]
    flat = (np.arange(len(homes))[:, None, None] * probability.shape[1] + homes)[homes >= 0]
    sums = np.bincount(flat, shares[homes >= 0], minlength=probability.size)
    return np.asarray(sums.reshape(probability.shape), dtype=np.float64)


def _picked(probability: Float64, homes: Int64) -> Float64:
    flat = np.maximum(homes, 0).reshape(len(homes), -1)
    picked = np.take_along_axis(probability, flat, axis=1).reshape(homes.shape)
    return np.where(homes >= 0, picked, 0.0)


def _mean_loss(inputs: Float32, homes: Int64, layer: Layer) -> float:
    """In whole steps of a grid, so that blocks add up exactly: what stops training must not hang on a bit."""
    total = count = 0
    for first in range(0, len(inputs), BLOCK):
        part = slice(first, first + BLOCK)
        probability = sums_in_order(_picked(layer.probabilities(inputs[part], 13), homes[part]))
        probability = probability[(homes[part] >= 0).any(axis=2)]
        total += int(np.rint(-same_log(probability) * LOSS_GRID).astype(np.int64).sum())
        count += len(probability)
    return total / LOSS_GRID / max(1, count)


def first_cells(coarse: Coarse, texts: Float32) -> tuple[Int64, Float32]:
    """The router's first cell for each text and how sure it is of it: what spilling goes by."""
    cells, sure = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for part in blocks(len(texts), POWER_BYTES * coarse.cells):
        scores = coarse.scores(texts[part])
        cells.append(scores.argmax(axis=1))
        sure.append(probabilities(scores).max(axis=1).astype(np.float32))
    return np.concatenate(cells), np.concatenate(sure)


class Adam:
    """Changes `values` in place. One numpy call for each operation, so that no compiler can join two."""

    def __init__(self, values: Float64) -> None:
        self.values, self.steps = values, 0
        self._mean, self._square = np.zeros_like(values), np.zeros_like(values)
        self._beta_powers = [1.0, 1.0]  # what is left of the zeros that both began with
        self._buffer = np.empty_like(values)

    def step(self, gradient: Float64, rate: float) -> None:
        self.steps += 1
        self._beta_powers = [self._beta_powers[0] * FIRST, self._beta_powers[1] * SECOND]
        self._mean *= FIRST
        self._mean += np.multiply(gradient, 1 - FIRST, out=self._buffer)
        np.square(gradient, out=self._buffer)
        self._buffer *= 1 - SECOND
        self._square *= SECOND
        self._square += self._buffer
        np.multiply(self._square, 1 / (1 - self._beta_powers[1]), out=self._buffer)
        np.sqrt(self._buffer, out=self._buffer)
        self._buffer += TINY
        np.divide(self._mean, self._buffer, out=self._buffer)
        self._buffer *= rate / (1 - self._beta_powers[0])
        self.values -= self._buffer
