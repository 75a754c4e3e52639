"""Whether a folder with a model may be built: what it asks for is looked at before anything is made of it.

A folder comes from anywhere. Its configuration may name a repository on a hub, which open_clip and timm would
ask, or sizes that fill the memory before the weights are found not to fit. So only keys that open_clip knows
are taken, none whose value reaches the network, and the network is first built without memory (torch's `meta`
device): each of its tensors must be in the file of weights, in the same shape.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch.overrides import TorchFunctionMode

from mudg_core.encode.open_clip_support import load_timm
from mudg_core.encode.weights import CONFIG_FILE, WEIGHTS_FILE
from mudg_core.errors import ModelError

CONFIG_BYTES = 1 << 20
LARGEST = 1 << 24  # any number of a configuration; vocabularies of a million exist
MAX_SIDE, MAX_CONTEXT = 4096, 4096  # pixels and tokens: masks and positions grow with their squares
MAX_POSITIONS = 1 << 24  # patches times width: some kinds are computed by numpy, which `meta` does not stop
MAX_BUFFERS = 1 << 26  # numbers that a network makes by itself, and no file has
PARTS = ("vision_cfg", "text_cfg", "multimodal_cfg")
SIGNED = frozenset(["init_logit_scale", "init_logit_bias"])  # no sizes; the bias of a SigLIP is -10
OTHER_KEYS = ("embed_dim", "custom_text", "quick_gelu", "nonscalar_logit_scale", "output_dict")
MODEL_KEYS = SIGNED.union(PARTS, OTHER_KEYS)
PREPROCESS_KEYS = frozenset(["size", "mode", "mean", "std", "interpolation", "resize_mode", "fill_color"])
FROM_HUB = frozenset(["hf_model_name", "hf_model_pretrained", "hf_proj_type", "hf_pooler_type"])
TOKENIZER_KEYS = frozenset(["clean", "strip_sep_token"])
TOKENIZER_FILE = "tokenizer.json"
ARCHITECTURE = re.compile(r"[A-Za-z0-9_]+")  # of timm: no `hf-hub:`, no path, no tag
DTYPES = frozenset(("F64", "F32", "F16", "BF16", "I64"))
MADE_BY_OPEN_CLIP = ("logit_scale", "logit_bias", "num_batches_tracked")  # where a file may leave them out

DRAWS = ("normal_", "uniform_", "trunc_normal_", "triu_")  # and other values that change no shape

Shapes = dict[str, tuple[int, ...]]


def check_folder(name: str, folder: Path) -> None:
    """ModelError unless its configuration is plain and describes the network whose weights are there."""
    try:
        config = _config(folder)
        shapes = _shapes(folder / WEIGHTS_FILE)
        _check_layers(config, len(shapes))
        _compare(_blank_shapes(config), shapes)
    except ModelError as error:
        raise ModelError(what=error.what, where=name, fix=error.fix) from error
    except (OSError, ValueError, TypeError, RecursionError, SafetensorError) as error:
        raise _refused(f"the CLIP model cannot be loaded: {str(error)[:500]}", where=name) from error


def _config(folder: Path) -> dict[str, Any]:
    """`model_cfg`, all of whose keys and values are allowed."""
    file = folder / CONFIG_FILE
    if file.stat().st_size > CONFIG_BYTES:
        raise _refused(f"{CONFIG_FILE} is larger than {CONFIG_BYTES} bytes")
    whole = json.loads(file.read_text(encoding="utf-8"))
    _check_keys(whole, {"model_cfg", "preprocess_cfg"}, CONFIG_FILE)
    _check_keys(whole.get("preprocess_cfg", {}), PREPROCESS_KEYS, "preprocess_cfg")
    config: dict[str, Any] = whole.get("model_cfg")
    _check_keys(config, MODEL_KEYS, "model_cfg")
    for part, known in _parts().items():
        if part in config:
            _check_keys(config[part], known, part)
    _check_numbers(whole)
    _check_sides(config.get("vision_cfg", {}), whole.get("preprocess_cfg", {}))
    for part in ("text_cfg", "multimodal_cfg"):
        if _number(config.get(part, {}).get("context_length", 0)) > MAX_CONTEXT:
            raise _refused(f"{part} asks for a context of more than {MAX_CONTEXT} tokens")
    _check_names(config.get("vision_cfg", {}), config.get("text_cfg", {}), folder)
    return config


def _parts() -> dict[str, frozenset[str]]:
    from open_clip.coca_model import MultimodalCfg
    from open_clip.model import CLIPTextCfg, CLIPVisionCfg

    parts = {"vision_cfg": CLIPVisionCfg, "text_cfg": CLIPTextCfg, "multimodal_cfg": MultimodalCfg}
    return {part: frozenset(entry.name for entry in fields(kind)) - FROM_HUB for part, kind in parts.items()}


def _check_keys(part: Any, known: set[str] | frozenset[str], where: str) -> None:
    if not isinstance(part, dict):
        raise _refused(f"{where} is not a set of keys and values")
    if strange := sorted(set(part) - known):
        raise _refused(f"{where} has keys that a local model may not have: {', '.join(strange)[:200]}")


def _check_numbers(value: Any, key: str = "") -> None:
    """Of sizes none is negative: it would make up for another that is too large, wherever both are added."""
    if isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else ((key, item) for item in value):
            _check_numbers(item, name)
    elif isinstance(value, int | float):
        least = -LARGEST if key in SIGNED else 0
        if not least <= value <= LARGEST:
            raise _refused(f"a size of {str(value)[:20]} in {CONFIG_FILE}")


def _check_sides(vision: dict[str, Any], preprocess: dict[str, Any]) -> None:
    """Of images: a file of weights need not have a tensor that grows with them."""
    sides = [_largest(vision.get("image_size", 1)), _largest(preprocess.get("size", 1))]
    if max(sides) > MAX_SIDE:
        raise _refused(f"{CONFIG_FILE} asks for images of {max(sides):.0f} pixels a side")
    patches = (sides[0] / max(1.0, _number(vision.get("patch_size", 16)))) ** 2
    if patches * _number(vision.get("width", 1)) > MAX_POSITIONS:
        raise _refused(f"vision_cfg asks for {patches:.0f} patches of {vision.get('width')} numbers")


def _largest(value: Any) -> float:
    return max((_number(one) for one in value), default=0.0) if isinstance(value, list) else _number(value)


def _number(value: Any) -> float:
    return float(value or 0)


def _check_names(vision: dict[str, Any], text: dict[str, Any], folder: Path) -> None:
    """Of what is kept elsewhere: an architecture of timm is code that is installed; its weights are not."""
    architecture = vision.get("timm_model_name")
    if architecture is not None and not ARCHITECTURE.fullmatch(str(architecture)):
        raise _refused(
            f"timm_model_name {str(architecture)[:200]!r} is not the plain name of an architecture"
        )
    if vision.get("timm_model_pretrained"):
        raise _refused("timm_model_pretrained asks for weights from a hub")
    if text.get("hf_tokenizer_name") and not (folder / TOKENIZER_FILE).is_file():
        raise _refused(f"hf_tokenizer_name without {TOKENIZER_FILE} in the folder asks a hub")
    _check_keys(text.get("tokenizer_kwargs") or {}, TOKENIZER_KEYS, "tokenizer_kwargs")


def _check_layers(config: dict[str, Any], tensors: int) -> None:
    """Even without memory for its weights, a layer is objects: no more of them than tensors in the file."""
    for part in PARTS:
        layers = config.get(part, {}).get("layers", 0)
        each = layers if isinstance(layers, list) else [layers]
        if not all(isinstance(one, int) and 0 <= one <= tensors for one in each) or sum(each) > tensors:
            what = f"{part} asks for {str(layers)[:100]} layers, but {WEIGHTS_FILE} has {tensors} tensors"
            raise _refused(what)


def _shapes(file: Path) -> Shapes:
    """From the header, which safetensors holds against the size of the file; no weights are read."""
    with safe_open(file, "pt") as weights:
        slices = {name: weights.get_slice(name) for name in weights.keys()}  # noqa: SIM118 (no mapping)
    if strange := {part.get_dtype() for part in slices.values()} - DTYPES:
        raise _refused(f"{WEIGHTS_FILE} has numbers of type {', '.join(sorted(strange))}")
    return {name: tuple(part.get_shape()) for name, part in slices.items()}


def _blank_shapes(config: dict[str, Any]) -> Shapes:
    import open_clip

    load_timm(config)
    build = dict(config)
    custom = build.pop("custom_text", False)
    kind = open_clip.CLIP
    if custom:
        kind = open_clip.CoCa if "multimodal_cfg" in build else open_clip.CustomTextCLIP
    try:
        with torch.device("meta"), _ShapesOnly():
            network = kind(**build)
    except Exception as error:  # whatever a constructor makes of values that make no sense
        raise _refused(f"the CLIP model cannot be loaded: {str(error)[:500]}") from error
    if sum(buffer.numel() for buffer in network.buffers()) > MAX_BUFFERS:
        raise _refused(f"{CONFIG_FILE} describes buffers of more than {MAX_BUFFERS} numbers")
    return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}


class _ShapesOnly(TorchFunctionMode):
    """On `meta` there are no values to draw or to scale, yet both bring torch's compiler and sympy along,
    which takes longer than a prediction."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func in (torch.randn, torch.rand):
            func = torch.empty
        name, is_scaled = func.__name__, func.__name__ == "mul" and isinstance(args[1], float)
        if is_scaled or name in DRAWS or getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else named["tensor"]
        return func(*args, **named)


def _compare(wanted: Shapes, shapes: Shapes) -> None:
    for name, shape in wanted.items():
        if name.endswith(MADE_BY_OPEN_CLIP):
            continue
        if shapes.get(name) != shape:
            stored = shapes.get(name, "missing")
            raise _refused(f"{CONFIG_FILE} describes {name} as {shape}, in {WEIGHTS_FILE} it is {stored}")


def _refused(what: str, where: str = "") -> ModelError:
    return ModelError(
        what=what, where=where, fix="give a folder as open_clip writes it, with all that it needs"
    )
