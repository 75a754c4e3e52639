"""Finished classifiers in a store: found by what a person calls them, and copied out for others to use."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from mudg_core import __version__
from mudg_core.dataset.export import MARK, new_folder
from mudg_core.errors import InputError, MissingArtifactError
from mudg_core.settings import Json
from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest
from mudg_core.storage.browse import artifacts

STAGE = "classifier"
FIX = "`mudg model list` shows what there is"


def find_classifier(store: ArtifactStore, name: str) -> ArtifactRef:
    """The classifier of a target, the latest if there are several; or one by the beginning of its key."""
    if "/" not in name:
        return _of_target(store, name)
    ref = store.resolve(name)
    if ref.stage != STAGE:
        raise InputError(what=f"{ref} is no classifier", where=store.url, fix=FIX)
    return ref


def target_of(manifest: Manifest) -> str:
    inputs: Any = manifest.recipe.settings.get("inputs", {})
    return str(inputs.get("target", "?"))


def copy_out(store: ArtifactStore, ref: ArtifactRef, out: Path, *, force: bool = False) -> Json:
    """All files of a classifier in a folder of the user's own, all of them or nothing; says what was written.
    `mudg.json` tells programs what the card tells people."""
    manifest = store.manifest(ref)
    told: Json = {
        "mudg": __version__,
        "classifier": f"{ref.stage}/{ref.key}",
        "digest": ref.digest,
        "created": manifest.circumstances.created,
        "target": target_of(manifest),
        **manifest.facts,
    }
    with new_folder(out, force=force) as folder:
        for name, file in store.files(ref).items():
            shutil.copyfile(file, folder / name)
        (folder / MARK).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return told


def _of_target(store: ArtifactStore, name: str) -> ArtifactRef:
    found = [manifest for manifest in artifacts(store, STAGE) if target_of(manifest) == name]
    if not found:
        raise MissingArtifactError(
            what=f"no classifier was made for a target {name[:100]!r}", where=store.url, fix=FIX
        )
    return found[-1].ref
