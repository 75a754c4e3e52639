"""Model folders from anywhere: no request, no memory beyond that of the weights that are there."""

from __future__ import annotations

import json
import resource
import shutil
import socket
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any, NoReturn

import pytest
from safetensors.torch import load_file, save_file

from mudg_core.encode import check_model
from mudg_core.encode.check_model import check_folder
from mudg_core.encode.models import load_clip, open_clip
from mudg_core.encode.weights import CONFIG_FILE, WEIGHTS_FILE
from mudg_core.errors import ModelError

Change = dict[str, Any]
HUB: list[tuple[str, Change]] = [
    ("vision_cfg", {"timm_model_name": "hf-hub:x/y"}),
    ("vision_cfg", {"timm_model_name": "hf_hub:x/y"}),
    ("vision_cfg", {"timm_model_name": "local-dir:/etc"}),
    ("vision_cfg", {"timm_model_name": "../../x"}),
    ("vision_cfg", {"timm_model_name": ["hf-hub:x/y"]}),
    ("vision_cfg", {"timm_model_name": "test_vit", "timm_model_pretrained": True}),
    ("text_cfg", {"hf_model_name": "roberta-base"}),
    ("text_cfg", {"hf_model_name": "x/y", "hf_model_pretrained": False}),
    ("text_cfg", {"hf_tokenizer_name": "x/y"}),
    ("text_cfg", {"tokenizer_kwargs": {"trust_remote_code": True}}),
    ("text_cfg", {"pretrained": "https://example.org/x"}),
    ("", {"pretrained_hf": "x/y"}),
    ("", {"cache_dir": "/tmp"}),
]
SIZES: list[tuple[str, Change]] = [
    ("vision_cfg", {"layers": 100_000}),
    ("vision_cfg", {"layers": [100_000, 1, 1, 1]}),
    ("vision_cfg", {"layers": [20_000, -20_000, 1, 1]}),
    ("vision_cfg", {"layers": [0.5, 1, 1, 1]}),
    ("text_cfg", {"layers": -1}),
    ("vision_cfg", {"width": 1 << 20}),
    ("vision_cfg", {"width": 10**30}),
    ("vision_cfg", {"width": -32}),
    ("vision_cfg", {"image_size": 1 << 20}),
    ("vision_cfg", {"image_size": 128}),
    ("vision_cfg", {"patch_size": 1}),
    ("vision_cfg", {"mlp_ratio": 1e6}),
    ("vision_cfg", {"mlp_ratio": float("nan")}),
    ("vision_cfg", {"timm_model_name": "vit_giant_patch14_clip_224"}),
    ("text_cfg", {"layers": 100_000}),
    ("text_cfg", {"context_length": 1 << 22}),
    ("text_cfg", {"vocab_size": 1 << 23}),
    ("text_cfg", {"width": 1 << 16}),
    ("text_cfg", {"heads": 0}),
    ("text_cfg", {"context_length": 30_000}),
    ("vision_cfg", {"image_size": 4000, "patch_size": 2, "pos_embed_type": "sin_cos_2d"}),
    ("vision_cfg", {"timm_model_name": "resnet18", "image_size": 16_000_000}),
    ("vision_cfg", {"width": 10**400}),
    ("", {"embed_dim": 1 << 22}),
    ("", {"custom_text": True, "multimodal_cfg": {"layers": 100_000}}),
]


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_folder, tmp_path / "model")


def change(folder: Path, part: str, values: Change) -> None:
    config = json.loads((folder / CONFIG_FILE).read_text())
    model = config["model_cfg"]
    (model[part] if part else model).update(values)
    (folder / CONFIG_FILE).write_text(json.dumps(config))


@pytest.mark.parametrize(("part", "values"), HUB, ids=str)
def test_f85_a_folder_that_names_a_hub_is_refused_before_any_request(
    part: str, values: Change, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[object] = []

    def refuse(*address: object, **_: object) -> NoReturn:
        reached.append(address)
        raise OSError("no network in this test")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(open_clip, "create_model", refuse)
    change(folder, part, values)
    with pytest.raises(ModelError) as caught:
        load_clip(f"local-dir:{folder}")
    assert not reached and caught.value.where == f"local-dir:{folder}" and caught.value.fix


@pytest.mark.parametrize(("part", "values"), SIZES, ids=str)
def test_f85_absurd_sizes_are_refused_before_they_are_built(
    part: str, values: Change, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[object] = []
    monkeypatch.setattr(open_clip, "create_model", lambda *args, **_: built.append(args))
    change(folder, part, values)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError) as caught:
            load_clip(f"local-dir:{folder}")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not built and peak < 200e6
    assert caught.value.where == f"local-dir:{folder}"


@pytest.mark.parametrize("values", [{"layers": 100_000}, {"width": 1 << 20}], ids=str)
def test_f85_absurd_sizes_fit_into_little_memory(values: Change, folder: Path) -> None:
    """In a process that may have 2 GB more than torch has taken by itself: what is refused is not allocated,
    which is counted outside of Python's own memory too."""
    change(folder, "vision_cfg", values)
    code = (
        "import resource, sys\n"
        "from mudg_core.encode.models import load_clip\n"
        "from mudg_core.errors import ModelError\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size + (2 << 30),) * 2)\n"
        "try:\n    load_clip(sys.argv[1])\n"
        "except ModelError as error:\n    sys.exit(0 if 'cannot be loaded' not in error.what else 3)\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [sys.executable, "-c", code, f"local-dir:{folder}"]
    assert subprocess.run(command, check=False, timeout=120).returncode == 0
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 60


@pytest.mark.parametrize("content", ["[" * 100_000, '{"model_cfg": 3}', '{"x": 1}', " " * (1 << 21)], ids=len)
def test_f85_configurations_that_are_none(content: str, folder: Path) -> None:
    (folder / CONFIG_FILE).write_text(content)
    with pytest.raises(ModelError):
        load_clip(f"local-dir:{folder}")


def test_f85_negative_layers_do_not_make_up_for_absurd_ones(folder: Path) -> None:
    """20,000 layers are half a minute and a gigabyte, even without memory for their weights."""
    change(folder, "vision_cfg", {"layers": [20_000, -20_000, 1, 1]})
    started = time.process_time()
    with pytest.raises(ModelError):
        check_folder("here", folder)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "layers", [[20_000, -20_000, 1, 1], -1, 1.5, "1", [[1], 1, 1, 1], [200, 200, 200, 200]], ids=str
)
def test_f85_each_entry_of_the_layers_is_judged_by_itself(layers: object) -> None:
    """Whatever the other checks of a configuration say."""
    with pytest.raises(ModelError, match="layers"):
        check_model._check_layers({"vision_cfg": {"layers": layers}}, 300)


def test_a_bias_may_be_negative_and_a_size_may_not() -> None:
    """SigLIP's is -10."""
    check_model._check_numbers({"model_cfg": {"init_logit_bias": -10, "vision_cfg": {"width": 64}}})
    for value in (-1, [1, -1], {"depth": -0.5}):
        with pytest.raises(ModelError, match="a size of -"):
            check_model._check_numbers({"model_cfg": {"vision_cfg": value}})


def test_f85_a_tensor_of_another_shape_or_type_is_refused(folder: Path) -> None:
    weights = load_file(folder / WEIGHTS_FILE)
    for changed in (weights["visual.proj"][:-1], weights["visual.proj"].bool()):
        save_file(weights | {"visual.proj": changed.contiguous()}, folder / WEIGHTS_FILE)
        with pytest.raises(ModelError, match=WEIGHTS_FILE):
            check_folder("here", folder)


def test_f85_a_plain_folder_is_taken(folder: Path) -> None:
    change(folder, "vision_cfg", {"patch_dropout": 0.0, "timm_model_name": None})
    change(folder, "", {"quick_gelu": True})
    check_folder("here", folder)


def test_f72_a_pickle_beside_the_weights_is_never_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    monkeypatch.setattr("torch.load", lambda *args, **_: opened.append(args))
    for name in ("open_clip_pytorch_model.bin", "aaa.pth", "pytorch_model.bin"):
        (folder / name).write_bytes(b"\x80\x04cposix\nsystem\n.")
    load_clip(f"local-dir:{folder}")
    (folder / WEIGHTS_FILE).unlink()
    with pytest.raises(ModelError, match=WEIGHTS_FILE):
        load_clip(f"local-dir:{folder}")
    assert not opened
