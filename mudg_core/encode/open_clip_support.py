"""What mudg changes around open_clip: it is imported beside a CPU build of torch and without what few models
need, and captions are tokenised faster.

The torchvision wheel on PyPI links CUDA. Beside a CPU-only torch its C++ library does not load, and the
import fails because two operators that torchvision describes do not exist. They are never called, and only
have to be defined before open_clip is imported.

torchvision and timm also import torch's compiler, and sympy with it, though nothing is compiled here: a third
of the import time. torchvision asks the compiler one question; it is asked when the answer is needed. timm is
only for towers that few models have; it is imported when a model has one, and the hub's client when weights
are fetched. A model that only encodes texts gets no vision tower.

open_clip's tokenizer fixes the encoding of every text, which plain ASCII never needs, and caches every word
without limit. The first is nine tenths of the time of a caption.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

COMPILER, QUESTIONS = "torch._dynamo", "torch._dynamo.utils"
LATER = ("timm", "huggingface_hub")
WORDS = 1 << 16  # remembered, the least recent forgotten first
Ids = tuple[int, ...]


def _define_missing_operators() -> Any:
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return None
    try:
        torch.ops.load_library(str(Path(spec.origin).with_name("_C.so")))  # type: ignore[no-untyped-call]
        return None
    except OSError:
        library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library


# A reference must be kept: the operators vanish with the library object.
LIBRARY = _define_missing_operators()


@contextmanager
def lean_import() -> Iterator[None]:
    """While torchvision and open_clip are imported. What is loaded already stays as it is."""
    stand_ins: dict[str, Any] = {
        name: None for name in LATER if name not in sys.modules
    }  # no import finds it
    if COMPILER not in sys.modules:
        stand_ins |= _compiler()
    sys.modules.update(stand_ins)  # what is None there cannot be imported
    try:
        yield
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)


def _compiler() -> dict[str, ModuleType]:
    modules = {name: ModuleType(name) for name in (COMPILER, QUESTIONS)}
    vars(modules[QUESTIONS])["is_compile_supported"] = _is_compile_supported
    return modules


def _is_compile_supported(device: str) -> Any:
    return importlib.import_module(QUESTIONS).is_compile_supported(device)


def load_timm(config: Any) -> None:
    """If a model of this configuration has a tower from there."""
    if not (isinstance(config, dict) and config.get("vision_cfg", {}).get("timm_model_name")):
        return
    module = importlib.import_module("open_clip.timm_model")
    if module.timm is None:
        importlib.reload(module)  # in place: its class finds timm now


def load_hub() -> None:
    """Before weights are fetched."""
    for name in ("open_clip.pretrained", "open_clip.push_to_hf_hub"):
        module = importlib.import_module(name)
        if not module._has_hf_hub:
            importlib.reload(module)  # in place, as above


TEXT_ONLY: ContextVar[bool] = ContextVar("text_only", default=False)


class NoTower(torch.nn.Module):
    """Where a vision tower would be. Its weights stay unread: a file of safetensors is mapped."""

    def _load_from_state_dict(self, *_: Any) -> None:
        pass


def tower_builder(build: Any) -> Any:
    """open_clip's function that builds a vision tower, which heeds `TEXT_ONLY`."""
    return lambda *args, **named: NoTower() if TEXT_ONLY.get() else build(*args, **named)


def tokenised(tokenizer: Any) -> Callable[[Sequence[str]], torch.Tensor]:
    """A function with the result of `tokenizer(texts)`. Tokenizers of another build are used as they are."""
    from open_clip.tokenizer import SimpleTokenizer, _clean_lower

    plain = type(tokenizer) is SimpleTokenizer and tokenizer.reduction_fn is None
    if not plain or tokenizer.clean_fn is not _clean_lower or not tokenizer.context_length:
        return lambda texts: torch.as_tensor(tokenizer(list(texts)))
    ids = lru_cache(WORDS)(lambda word: _ids(tokenizer, word))
    return lambda texts: _tokens(tokenizer, ids, texts)


def _tokens(tokenizer: Any, ids: Callable[[str], Ids], texts: Sequence[str]) -> torch.Tensor:
    room = tokenizer.context_length - 2
    tokens = np.zeros((len(texts), tokenizer.context_length), np.int64)
    tokens[:, 0] = tokenizer.sot_token_id
    for line, text in zip(tokens, texts, strict=True):
        own = [number for word in tokenizer.pat.findall(_clean(tokenizer, text)) for number in ids(word)]
        end = min(len(own), room)
        line[1 : end + 1] = own[:end]
        line[end + 1] = tokenizer.eot_token_id
    return torch.from_numpy(tokens)


def _clean(tokenizer: Any, text: str) -> str:
    """`clean_fn` changes nothing in printable ASCII without HTML's entities."""
    if text.isascii() and text.isprintable() and "&" not in text:
        return " ".join(text.split()).lower()
    return str(tokenizer.clean_fn(text))


def _ids(tokenizer: Any, word: str) -> Ids:
    token = "".join(tokenizer.byte_encoder[byte] for byte in word.encode())
    known = token in tokenizer.cache
    ids = tuple(tokenizer.encoder[part] for part in tokenizer.bpe(token).split(" "))
    if not known:
        tokenizer.cache.pop(token, None)
    return ids
