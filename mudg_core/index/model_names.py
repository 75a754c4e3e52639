"""The model of an index, by the name that it was built under: asked for once, known to all later commands.

Keys and manifests know a model by the digest of its weights, whatever it was called. The name lies beside
them, as a note that any build writes again.
"""

from __future__ import annotations

import json
from contextlib import suppress

from mudg_core.encode.weights import path_in, weights_digest
from mudg_core.errors import ConflictError, DataError, InputError, MissingArtifactError
from mudg_core.index.version import IndexVersion, current_version
from mudg_core.settings import DEMO_MODEL, INDEX_MODEL
from mudg_core.storage import ArtifactStore, layout

DRAWN = "corpus-shard"  # the demo world's
BUILT_IN = (DEMO_MODEL, "demo:student")


def remember_model(store: ArtifactStore, name: str) -> None:
    """Where another name is noted for these weights, the latest wins: that file is there."""
    path = layout.model(weights_digest(name))
    data = json.dumps({"name": name}).encode()
    stored = store.objects.read(path)
    if stored is None or stored.data != data:
        with suppress(ConflictError):  # somebody else has noted it in this moment
            store.objects.replace(path, data, stored.etag if stored else None)


def model_of(store: ArtifactStore, version: IndexVersion) -> str | None:
    """The name of a version's model; none if it was built before names were noted."""
    for digest in store.manifest(version.embeddings[0]).recipe.weights.values():
        stored = store.objects.read(layout.model(digest))
        if stored is not None:
            with suppress(ValueError, KeyError, TypeError):
                return str(json.loads(stored.data)["name"])
        for name in BUILT_IN:
            if weights_digest(name) == digest:
                return name
    return None


def resolved_model(store: ArtifactStore, name: str) -> str:
    """A model's name as settings have it, with that of the current index for `index`, if it is known. Before
    there is an index it is the demo's: `ask_for_model` comes first."""
    if name != INDEX_MODEL:
        return name
    try:
        return model_of(store, current_version(store)) or name
    except MissingArtifactError:
        return DEMO_MODEL


def ask_for_model(store: ArtifactStore, name: str) -> None:
    """The first index of somebody's own images needs a model, and no default would be a good guess: not that
    of the demo either, where an index of drawings is the current one."""
    if name == INDEX_MODEL and not _has_own_images(store):
        raise InputError(
            what="which model embeds the images? It is asked for at the first build only",
            where="encode.model",
            fix="for example `mudg index build --set encode.model=ViT-B-32/laion2b_s34b_b79k` (downloads "
            "605 MB), or local-dir:FOLDER as open_clip writes it; demo:index is a toy for the demo world",
        )


def _has_own_images(store: ArtifactStore) -> bool:
    try:
        return any(shard.stage != DRAWN for shard in current_version(store).shards)
    except MissingArtifactError:
        return False


def check_named_model(store: ArtifactStore, version: IndexVersion, name: str) -> None:
    """`check_model` by a name: where names tell enough, before weights are read and torch is imported."""
    known = model_of(store, version)
    if name == known and path_in(name) is None:
        return
    built = store.manifest(version.embeddings[0]).recipe.weights.values()
    differs = known is not None and _from_hub(known) and _from_hub(name)
    if built and (differs or weights_digest(name) not in built):
        raise DataError(
            what=f"the index was built with {known or 'another CLIP model'}, and encode.model names another "
            f"CLIP model, {name}",
            where=store.uri(version.index),
            fix="leave encode.model out to search with the model of the index, or build an index with the "
            f"other one: `mudg index build --set encode.model={name}`",
        )


def _from_hub(name: str) -> bool:
    """Two such names are two models, so nothing need be read to tell them apart."""
    return path_in(name) is None and not name.startswith("demo:")
