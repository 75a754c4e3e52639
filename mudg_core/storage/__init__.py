"""Artifacts: written once, found by content, verified before use. Start reading at `store.py`."""

from mudg_core.storage.checkpoints import Checkpoint, Checkpoints
from mudg_core.storage.manifest import ArtifactRef, BuildInfo, Facts, FileEntry, Manifest, Recipe
from mudg_core.storage.pointers import Pointer
from mudg_core.storage.store import ArtifactStore

__all__ = [
    "ArtifactRef",
    "ArtifactStore",
    "BuildInfo",
    "Checkpoint",
    "Checkpoints",
    "Facts",
    "FileEntry",
    "Manifest",
    "Pointer",
    "Recipe",
]
