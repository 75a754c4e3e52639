"""What a step of training changes, kept in the store, so that a stopped run goes on as if it had not.

Not everything is: the network as it was comes from its own files, and the teacher from that.
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
from mudg_core.train.order import Order

LOWER = "lower train.learning_rate"
MOMENTUM = "momentum_buffer"  # torch's name


@dataclass
class State:
    """Everything that a step changes; `random` is the one source of chance, for order and crops."""

    parameters: dict[str, nn.Parameter]
    optimiser: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    random: torch.Generator
    order: Order
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.average = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}

    @property
    def step(self) -> int:
        """Steps that are done."""
        return len(self.losses)

    def check(self) -> None:
        """The loss was finite, but its update need not have been."""
        for name, parameter in self.parameters.items():
            if not (parameter.isfinite().all() and self.average[name].isfinite().all()):
                raise TrainingError(what=f"{name} is not finite after step {self.step}", fix=LOWER)

    def arrays(self) -> dict[str, NDArray[Any]]:
        groups: dict[str, Mapping[str, Tensor]] = {
            "weights": self.parameters,
            "average": self.average,
            "momentum": self._momentum(),
        }
        found = {
            f"{kind}/{name}": tensor.detach().cpu().numpy()
            for kind, tensors in groups.items()
            for name, tensor in tensors.items()
        }
        places = {"random": self.random.get_state().numpy(), "order": self.order.waiting.numpy()}
        return found | places | {"losses": np.array(self.losses)}

    @torch.no_grad()
    def load(self, found: Checkpoint) -> None:
        device = next(iter(self.parameters.values())).device
        tensors = {name: torch.from_numpy(array) for name, array in found.arrays.items()}
        for name, parameter in self.parameters.items():
            parameter.copy_(tensors[f"weights/{name}"])
            self.average[name].copy_(tensors[f"average/{name}"])
            if (momentum := tensors.get(f"momentum/{name}")) is not None:
                self.optimiser.state[parameter][MOMENTUM] = momentum.to(device)
        self.random.set_state(tensors["random"])
        self.order.waiting = tensors["order"]
        self.losses[:] = tensors["losses"].tolist()
        scaler: Any = found.facts["scaler"]
        self.scaler.load_state_dict(scaler)

    def _momentum(self) -> dict[str, Tensor]:
        kept = {name: self.optimiser.state[p].get(MOMENTUM) for name, p in self.parameters.items()}
        return {name: tensor for name, tensor in kept.items() if tensor is not None}


class Keeper:
    """Saves a state every so many steps or seconds, and when the process is told to end."""

    def __init__(
        self,
        checkpoints: Checkpoints | None,
        settings: TrainSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.checkpoints, self.settings, self.clock = checkpoints, settings, clock
        self.kept, self.when = 0, clock()

    def resume(self, state: State) -> None:
        found = self.checkpoints.latest() if self.checkpoints else None
        if found is not None:
            state.load(found)
            self.kept = state.step

    def after_step(self, state: State, interrupted: bool) -> None:
        if interrupted or self._due(state):
            self._save(state)
        if interrupted:
            kept = (
                "run again: it goes on from there" if self.checkpoints else "give it a store for checkpoints"
            )
            what = f"training was told to stop, and did after step {state.step} of {self.settings.iterations}"
            raise TrainingError(what=what, fix=kept)

    def check_loss(self, loss: float, state: State) -> None:
        """Stops before a loss that is not finite reaches weights; what was saved before stays."""
        if not math.isfinite(loss):
            what = f"the loss became {loss} at step {state.step + 1}"
            kept = f"; the state after step {self.kept} is kept" if self.checkpoints and self.kept else ""
            raise TrainingError(what=what + kept, fix=LOWER)

    def _due(self, state: State) -> bool:
        late = self.clock() - self.when >= self.settings.checkpoint_seconds
        return late or state.step - self.kept >= self.settings.checkpoint_every

    def _save(self, state: State) -> None:
        if self.checkpoints is None:
            return
        state.check()
        self.checkpoints.save(state.step, state.arrays(), {"scaler": state.scaler.state_dict()})
        self.kept, self.when = state.step, self.clock()
