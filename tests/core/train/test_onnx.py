"""ONNX graphs of both towers, run by onnxruntime beside torch."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mudg_core.encode.models import Clip
from mudg_core.errors import InputError, ModelError
from mudg_core.train import onnx as module
from mudg_core.train.onnx import TEXT_FILE, VISUAL_FILE, Written, check_installed, export_onnx


@pytest.fixture(scope="module")
def folder(loaded: Clip, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("onnx")
    written = export_onnx(loaded, out)
    assert [one.file.name for one in written] == [VISUAL_FILE, TEXT_FILE]
    assert all(one.difference < 1e-4 for one in written)
    return out


def run(file: Path, **inputs: Any) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    assert [(one.name, one.shape[0]) for one in session.get_inputs()] == [(name, "batch") for name in inputs]
    (found,) = session.run(None, inputs)
    return found


@pytest.mark.parametrize("size", [1, 2, 7])
def test_images(folder: Path, loaded: Clip, size: int) -> None:
    pixels = np.random.default_rng(size).integers(0, 256, (size, 64, 64, 3), dtype=np.uint8)
    found = run(folder / VISUAL_FILE, pixels=loaded.normalise(pixels).numpy())
    assert found == pytest.approx(loaded.encode_images(pixels), abs=1e-5)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_texts(folder: Path, loaded: Clip, size: int) -> None:
    texts = [f"a photo of {'a very ' * n}old cat" for n in range(size)]
    found = run(folder / TEXT_FILE, tokens=loaded.tokens(texts).numpy())
    assert found == pytest.approx(loaded.encode_texts(texts), abs=1e-5)


def test_nothing_but_the_graphs_is_left(folder: Path) -> None:
    assert sorted(file.name for file in folder.iterdir()) == [TEXT_FILE, VISUAL_FILE]


@pytest.mark.parametrize("wrong", [2e-3, float("nan"), float("inf")])
def test_a_graph_that_differs_is_not_written(
    loaded: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    monkeypatch.setattr(module, "_trace", lambda file, *_: file.write_bytes(b"graph"))
    monkeypatch.setattr(module, "compare", lambda *_: wrong)
    with pytest.raises(ModelError, match="differs from torch"):
        export_onnx(loaded, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_difference_is_seen(folder: Path, loaded: Clip) -> None:
    pixels = torch.randn(3, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    tower = module.VisualTower(loaded.network).eval()
    assert module.compare(folder / VISUAL_FILE, tower, "pixels", pixels) < 1e-5

    class Off(module.VisualTower):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return super().forward(pixels) + 0.01 * (len(pixels) > 1)

    found = module.compare(folder / VISUAL_FILE, Off(loaded.network).eval(), "pixels", pixels)
    assert found == pytest.approx(0.01, abs=1e-4)


def test_what_is_not_installed_is_told_with_its_cure(
    loaded: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "onnxruntime" else real(name, *rest)
    )
    with pytest.raises(InputError, match="onnxruntime, which is not installed") as caught:
        check_installed()
    assert "pip install -e '.[cpu,onnx]'" in str(caught.value.fix)


def test_large_weights_go_beside_the_graph(
    loaded: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def export(tower: Any, inputs: Any, file: Path, **options: Any) -> None:
        asked.append(options["external_data"])
        file.write_bytes(b"graph")
        file.with_name(f"{file.name}.data").write_bytes(b"weights")

    monkeypatch.setattr(torch.onnx, "export", export)
    monkeypatch.setattr(module, "compare", lambda *_: 0.0)
    monkeypatch.setattr(module, "LARGEST", 10)
    assert export_onnx(loaded, tmp_path) == [
        Written(tmp_path / name, 0.0) for name in (VISUAL_FILE, TEXT_FILE)
    ]
    assert asked == [True, True]
    assert (tmp_path / f"{VISUAL_FILE}.data").read_bytes() == b"weights"
