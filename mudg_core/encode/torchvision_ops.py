"""Lets torchvision be imported beside a CPU build of torch.

The torchvision wheel on PyPI links CUDA. Beside a CPU-only torch its C++ library does not load, and the
import then dies because two operators that torchvision describes do not exist. We never call them; they
only have to be defined. `models` imports this module before it imports open_clip.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import torch


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
