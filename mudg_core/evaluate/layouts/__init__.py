"""Labelled images as users have them on disk; the layout is seen from the folder, or said before its path."""

from __future__ import annotations

from pathlib import Path

from mudg_core.errors import InputError
from mudg_core.evaluate.layouts.base import Found, Layout, Part
from mudg_core.evaluate.layouts.fgvc import Fgvc
from mudg_core.evaluate.layouts.folder import Folders
from mudg_core.evaluate.layouts.imagenet import ImageNet, Numbered
from mudg_core.evaluate.layouts.zhou import Zhou

__all__ = ["LAYOUTS", "Found", "Layout", "Part", "open_layout"]

# In the order in which they are tried: a folder of class folders is what remains.
LAYOUTS: dict[str, type[Layout]] = {
    "zhou": Zhou,
    "fgvc": Fgvc,
    "imagenet": ImageNet,
    "wordnet": Numbered,
    "folder": Folders,
}


def open_layout(location: str) -> Layout:
    """The dataset at `PATH`, or at `LAYOUT:PATH` where the folder could be read in two ways."""
    kind, _, path = location.partition(":")
    if kind not in LAYOUTS:
        kind, path = "", location
    root = Path(path).expanduser()
    if not root.exists():
        raise InputError(what="the evaluation folder does not exist", where=str(root), fix="check the path")
    for layout in [LAYOUTS[kind]] if kind else LAYOUTS.values():
        if found := layout.find(root):
            return found
    known = "; ".join(f"{name}: {layout.tree}" for name, layout in LAYOUTS.items())
    raise InputError(what="no labelled images are laid out like this", where=location, fix=f"use {known}")
