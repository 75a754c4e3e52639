"""The embed stage beside a bare loop of forward passes, in the same processes, taking turns.

The stage does all that a user gets: it reads tars, decodes, tokenises, runs both towers, writes and commits.
The loop has its tensors in memory and does nothing but forward passes, captions at full length. Loading the
model is measured apart and taken off the stage's time; imports happen before either begins.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.embed import pipeline
from benchmarks.embed.crew import Crew, crew
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactRef

LOADS = 3


@dataclass(frozen=True)
class Share:
    """What one process is given."""

    settings: Settings
    shards: tuple[ArtifactRef, ...]


@dataclass(frozen=True)
class Round:
    """Wall seconds of both sides, one after the other."""

    stage: float
    loading: float  # part of the above
    bare: float

    @property
    def ratio(self) -> float:
        """Rows a second of the stage over those of the loop: both have the same rows."""
        return self.bare / (self.stage - self.loading)


def measure(settings: Settings, shards: Sequence[ArtifactRef], rounds: int) -> tuple[float, dict[str, Any]]:
    processes = settings.compute.workers
    with crew(processes, pipeline.worker_environment()) as members:
        shares = [Share(settings, dealt) for dealt in deal(shards, processes)]
        ready = members.do(prepare, shares).results
        loading = max(members.do(load_seconds, shares).results)
        take_turn(members, shares, loading)  # the first of everything is slower
        taken = [take_turn(members, shares, loading) for _ in range(rounds)]
    ratios = [one.ratio for one in taken]
    rows = sum(one["rows"] for one in ready)
    detail = {
        "rows": rows,
        "processes": processes,
        "in_each": ready,
        "model_loading_seconds": loading,
        "stage_rows_per_second": [rows / (one.stage - one.loading) for one in taken],
        "bare_rows_per_second": [rows / one.bare for one in taken],
        "ratios": ratios,
    }
    return statistics.median(ratios), detail


def deal(shards: Sequence[ArtifactRef], processes: int) -> list[tuple[ArtifactRef, ...]]:
    """As many to each: who has less would wait, and make the other side look slow."""
    if len(shards) % processes:
        raise ValueError(f"{len(shards)} shards do not go evenly to {processes} processes")
    return [tuple(shards[first::processes]) for first in range(processes)]


def take_turn(members: Crew, shares: Sequence[Share], loading: float) -> Round:
    with pipeline.fresh_store(shares[0].settings) as fresh:
        stage = members.do(through_stage, [Share(fresh, share.shards) for share in shares]).wall
    loads = pipeline.models_loaded(shares[0].settings, shares[0].shards)
    return Round(stage, loads * loading, members.do(bare, shares).wall)


# -- what happens in the processes ------------------------------------------------------------------------


def prepare(share: Share) -> dict[str, Any]:
    import torch

    clip, inputs = _inputs(share)
    rows = sum(len(pixels) for pixels, _ in inputs)
    return {
        "rows": rows,
        "threads": torch.get_num_threads(),
        "batch": pipeline.batch_size(share.settings, clip),
    }


def load_seconds(share: Share) -> float:
    return statistics.median(_seconds_to_load(share.settings) for _ in range(LOADS))


def through_stage(share: Share) -> None:
    pipeline.embed_here(share.settings, share.shards)


def bare(share: Share) -> None:
    import torch

    clip, inputs = _inputs(share)
    size = pipeline.batch_size(share.settings, clip)
    with torch.inference_mode():
        for pixels, tokens in inputs:
            for first in range(0, len(pixels), size):
                clip.network.encode_image(pixels[first : first + size], normalize=True)
                clip.network.encode_text(tokens[first : first + size], normalize=True)


@cache
def _inputs(share: Share) -> tuple[Any, list[Any]]:
    clip = pipeline.load(share.settings)
    return clip, [pipeline.tensors(share.settings, clip, shard) for shard in share.shards]


def _seconds_to_load(settings: Settings) -> float:
    begin = time.monotonic()
    pipeline.load(settings)
    return time.monotonic() - begin


# -- a model of the usual size ----------------------------------------------------------------------------


def untrained(folder: Path, architecture: str) -> str:
    """A model with random weights, as a name that settings take. What it computes is of no use, and takes as
    long as if it were."""
    import torch
    from safetensors.torch import save_file

    from mudg_core.encode.models import open_clip
    from mudg_core.encode.weights import CONFIG_FILE, WEIGHTS_FILE

    if not (folder / CONFIG_FILE).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(0)
        network = open_clip.create_model(architecture, pretrained=None)
        weights = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
        save_file(weights, folder / WEIGHTS_FILE)
        preprocess = open_clip.get_model_preprocess_cfg(network)
        config = {"model_cfg": open_clip.get_model_config(architecture), "preprocess_cfg": preprocess}
        (folder / CONFIG_FILE).write_text(json.dumps(config))  # last: without it there is no model
    return f"local-dir:{folder.absolute()}"
