"""What a step of training changes, saved in the store, so that a stopped run resumes with the same bits.

The initial network is not saved: it comes from its own files, and the teacher from that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mudg_core.errors import TrainingError
from mudg_core.settings import TrainSettings
from mudg_core.storage import Checkpoint, Checkpoints
from mudg_core.train.batches import Order

LOWER = "lower train.learning_rate"
MOMENTUM = "momentum_buffer"  # torch's name


@dataclass
class TrainState:
    """Everything that a step changes; `random` is the one source of chance, for order and crops."""

    parameters: dict[str, nn.Parameter]
    optimiser: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    random: torch.Generator
    order: Order
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ema = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def update_ema(self, decay: float) -> None:
        """The exponential moving average of the weights, which is what training returns."""
        for name, parameter in self.parameters.items():
            self.ema[name].lerp_(parameter, 1 - decay)

    @property
    def step(self) -> int:
        """Steps that are done."""
        return len(self.losses)

    def check(self) -> None:
        """The loss was finite, but its update need not have been."""
        for name, parameter in self.parameters.items():
            if not (parameter.isfinite().all() and self.ema[name].isfinite().all()):
                raise TrainingError(what=f"{name} is not finite after step {self.step}", fix=LOWER)

    def arrays(self) -> dict[str, NDArray[Any]]:
        groups: dict[str, Mapping[str, Tensor]] = {
            "weights": self.parameters,
            "average": self.ema,
            "momentum": self._momentum(),
        }
        arrays = {
            f"{kind}/{name}": tensor.detach().cpu().numpy()
            for kind, tensors in groups.items()
            for name, tensor in tensors.items()
        }
        places = {"random": self.random.get_state().numpy(), "order": self.order.waiting.numpy()}
        return arrays | places | {"losses": np.array(self.losses)}

    @torch.no_grad()
    def load(self, checkpoint: Checkpoint) -> None:
        device = next(iter(self.parameters.values())).device
        tensors = {name: torch.from_numpy(array) for name, array in checkpoint.arrays.items()}
        for name, parameter in self.parameters.items():
            parameter.copy_(tensors[f"weights/{name}"])
            self.ema[name].copy_(tensors[f"average/{name}"])
            if (momentum := tensors.get(f"momentum/{name}")) is not None:
                self.optimiser.state[parameter][MOMENTUM] = momentum.to(device)
        self.random.set_state(tensors["random"])
        self.order.waiting = tensors["order"]
        self.losses[:] = tensors["losses"].tolist()
        scaler: Any = checkpoint.facts["scaler"]
        self.scaler.load_state_dict(scaler)

    def _momentum(self) -> dict[str, Tensor]:
        kept = {name: self.optimiser.state[p].get(MOMENTUM) for name, p in self.parameters.items()}
        return {name: tensor for name, tensor in kept.items() if tensor is not None}


class Checkpointer:
    """Saves a state every so many steps or seconds, and when the process is asked to end."""

    def __init__(
        self,
        checkpoints: Checkpoints | None,
        settings: TrainSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.checkpoints, self.settings, self.clock = checkpoints, settings, clock
        self.saved_step, self.saved_at = 0, clock()

    def resume(self, state: TrainState) -> None:
        checkpoint = self.checkpoints.latest() if self.checkpoints else None
        if checkpoint is not None:
            state.load(checkpoint)
            self.saved_step = state.step

    def after_step(self, state: TrainState, interrupted: bool) -> None:
        if interrupted or self._due(state):
            self._save(state)
        if interrupted:
            what = (
                f"training was asked to stop, and did after step {state.step} of {self.settings.iterations}"
            )
            fix = "run again to resume from there" if self.checkpoints else "give it a store for checkpoints"
            raise TrainingError(what=what, fix=fix)

    def check_loss(self, loss: float, state: TrainState) -> None:
        """Stops before a loss that is not finite reaches weights; what was saved before stays."""
        if not math.isfinite(loss):
            what = f"the loss became {loss} at step {state.step + 1}"
            if self.checkpoints and self.saved_step:
                what += f"; the state after step {self.saved_step} is kept"
            raise TrainingError(what=what, fix=LOWER)

    def _due(self, state: TrainState) -> bool:
        late = self.clock() - self.saved_at >= self.settings.checkpoint_seconds
        return late or state.step - self.saved_step >= self.settings.checkpoint_every

    def _save(self, state: TrainState) -> None:
        if self.checkpoints is None:
            return
        state.check()
        self.checkpoints.save(state.step, state.arrays(), {"scaler": state.scaler.state_dict()})
        self.saved_step, self.saved_at = state.step, self.clock()
