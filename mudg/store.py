"""The Python API: a store of images and of all that is made from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mudg.classifier import Classifier
from mudg.execution import call, session
from mudg.search import Hits, search
from mudg_core.corpus.sources import registry
from mudg_core.encode.weights import absolute
from mudg_core.index.version import IndexVersion, current_version
from mudg_core.settings import Json, Settings, load_settings
from mudg_core.storage import ArtifactStore
from mudg_core.target.spec import parse_target

DEFAULT_NAME = "target"


def open(url: str | Path = ".mudg", settings: str | Path | None = None, **areas: Mapping[str, Any]) -> Store:
    """A store: a folder (made when it is first written to), or `s3://BUCKET/PREFIX`.

    `settings` is a settings file; areas go on top of it: `mudg.open(index={"cells": 64})`. This machine
    computes, unless settings or environment name servers (`compute={"dask_address": ...}`).
    """
    place = str(url)
    if "://" not in place:
        folder = Path(place).expanduser().absolute()
        storage: Json = {"url": f"file://{folder}", "cache_dir": str(folder / "cache")}
    else:
        storage = {"url": place}
    tree = {name: dict(values) for name, values in areas.items()}
    tree["storage"] = storage | tree.get("storage", {})
    return Store(load_settings([Path(settings)] if settings else [], tree))


@dataclass(frozen=True)
class Source:
    """Something that was added to the corpus."""

    url: str
    kind: str
    new_shards: int
    rows_at_most: int


class Store:
    """Images, indexes and classifiers under one address. What was made is found again by any process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.artifacts = ArtifactStore(settings.storage)

    def __repr__(self) -> str:
        return f"Store({self.artifacts.url!r})"

    def add(self, source: str | Path) -> Source:
        """Registers images: a folder of them, WebDataset tars, a list of links, or published embeddings. They
        are embedded by the next `build_index`."""
        self.artifacts.check()
        per_shard = self.settings.corpus.rows_per_shard
        found = registry.inspect(str(source), self.artifacts, per_shard)
        added = registry.add(self.artifacts, found, per_shard)
        return Source(found.url, found.kind, len(added.new), added.rows)

    def build_index(self, model: str | None = None) -> Index:
        """Embeds what is new and makes the index that is searched from now on. `model` is an open_clip model
        (`ViT-B-32/laion2b_s34b_b79k`, `local-dir:FOLDER`), and stays that of this store object."""
        from flows.build_index import build_index

        if model is not None:
            self.settings = self.settings.replace({"encode": {"model": absolute(model)}})
        with session(self.settings) as settings:
            built = call(build_index, settings)
        return Index(self, built.version)

    @property
    def index(self) -> Index:
        """The current index."""
        return Index(self, current_version(self.artifacts))

    def classify(
        self,
        classes: Sequence[str],
        *,
        name: str = DEFAULT_NAME,
        evaluation: str | Path | None = None,
        seeds: Sequence[int] = (0,),
        **more: Any,
    ) -> Classifier:
        """A classifier of these classes, trained on images that the index finds for them. `evaluation` is a
        folder of labelled images (docs/evaluate.md) to measure it on; `more` are the other fields of a target
        (docs/target.md): `template`, `synonyms`, `settings`."""
        from flows.build_classifier import build_classifier

        fields: Json = {"name": name, "classes": list(classes), "seeds": list(seeds), **more}
        if evaluation is not None:
            fields["evaluation"] = str(evaluation)
        target = parse_target(json.dumps(fields, default=str).encode(), "Store.classify").located()
        with session(self.settings) as settings:
            built = call(build_classifier, settings, target)
        return Classifier(self.artifacts, settings, built)


@dataclass(frozen=True)
class Index:
    """One version of an index."""

    store: Store
    version: IndexVersion

    def __repr__(self) -> str:
        return f"Index({str(self.version.index)!r}, {len(self):,} images)"

    def __len__(self) -> int:
        return int(str(self.store.artifacts.manifest(self.version.index).facts["rows"]))

    def search(self, text: str, neighbors: int = 10) -> Hits:
        """The nearest images of a sentence, best first."""
        return search(self.store.artifacts, self.version, self.store.settings, text, neighbors)
