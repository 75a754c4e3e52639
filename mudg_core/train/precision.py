"""Half precision in the towers, full precision in weights, features and loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Precision:
    """`name` is fp32, bf16 or fp16, as `TrainSettings.precision_on` has it."""

    def __init__(self, name: str, device: torch.device) -> None:
        self.name, self.device = name, device
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.name == "fp16")

    def of(self, encode: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """The same function with its insides in this precision; what it returns is always float32."""

        def run(*inputs: Tensor) -> Tensor:
            half = HALF.get(self.name)
            with torch.autocast(self.device.type, dtype=half, enabled=half is not None):
                return encode(*inputs).float()

        return run
