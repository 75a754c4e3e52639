"""A CLIP model small enough to train in a test, as a folder that open_clip reads."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from mudg_core.encode.models import Clip, load_clip, open_clip
from mudg_core.encode.weights import CONFIG_FILE, WEIGHTS_FILE

MODEL = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 64, "patch_size": 16, "width": 32, "layers": 4, "head_width": 16},
    "text_cfg": {"context_length": 24, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 4},
}
PREPROCESS = {"mean": [0.48, 0.46, 0.41], "std": [0.27, 0.26, 0.28]}


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = open_clip.CLIP(**MODEL)
    save_file(network.state_dict(), folder / WEIGHTS_FILE)
    (folder / CONFIG_FILE).write_text(json.dumps({"model_cfg": MODEL, "preprocess_cfg": PREPROCESS}))
    return folder


@pytest.fixture(scope="session")
def loaded(tiny_folder: Path) -> Clip:
    return load_clip(f"local-dir:{tiny_folder}")


@pytest.fixture
def tiny(loaded: Clip) -> Clip:
    """A copy for each test, because training works in place."""
    return another(loaded)


def another(clip: Clip) -> Clip:
    return dataclasses.replace(clip, network=copy.deepcopy(clip.network))
