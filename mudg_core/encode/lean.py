"""Imports open_clip without what few models need: a third of the time that it takes by itself.

torchvision has a question to torch's compiler, and timm a use for one of its decorators. Either brings the
whole compiler along, and sympy with it, though we compile nothing; and timm itself is there for towers that
few models have. So torchvision asks its question when it needs the answer, and timm waits for such a tower.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

COMPILER, QUESTIONS, TOWERS = "torch._dynamo", "torch._dynamo.utils", "timm"


@contextmanager
def waiting() -> Iterator[None]:
    """While torchvision and open_clip are imported. What is loaded already stays as it is."""
    stand_ins: dict[str, Any] = {} if TOWERS in sys.modules else {TOWERS: None}  # which cannot be imported
    if COMPILER not in sys.modules:
        stand_ins |= _compiler()
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)


def _compiler() -> dict[str, ModuleType]:
    found = {name: ModuleType(name) for name in (COMPILER, QUESTIONS)}
    vars(found[QUESTIONS])["is_compile_supported"] = _is_compile_supported
    return found


def _is_compile_supported(device: str) -> Any:
    return importlib.import_module(QUESTIONS).is_compile_supported(device)


def load_timm(config: Any) -> None:
    """If a model of this configuration has a tower from there."""
    if not (isinstance(config, dict) and config.get("vision_cfg", {}).get("timm_model_name")):
        return
    module = importlib.import_module("open_clip.timm_model")
    if module.timm is None:
        importlib.reload(module)  # in place: its class finds timm now
