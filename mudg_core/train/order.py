"""In which order images are shown."""

from __future__ import annotations

import torch
from torch import Tensor


class Order:
    """Endless batches of row numbers, each epoch in a new order; a small dataset fills a batch repeatedly."""

    def __init__(self, rows: int, random: torch.Generator) -> None:
        self.rows, self.random = rows, random
        self.waiting = torch.empty(0, dtype=torch.long)  # drawn already, and not shown yet

    def take(self, size: int) -> Tensor:
        while len(self.waiting) < size:
            self.waiting = torch.cat([self.waiting, torch.randperm(self.rows, generator=self.random)])
        taken, self.waiting = self.waiting[:size], self.waiting[size:]
        return taken
