"""`mudg dataset list` and `mudg dataset export`: training sets that were made, and their way out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.markup import escape

from mudg.cli.output import console, show, table_of
from mudg_core.dataset.export import Source, export
from mudg_core.dataset.export.source import STAGE
from mudg_core.errors import MissingArtifactError
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest
from mudg_core.storage.browse import artifacts
from mudg_core.target.queries import SPEC

SHOWN_NAMES = 4


def run_list(as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    targets = targets_of_datasets(store)
    found = [_described(store, manifest, targets) for manifest in artifacts(store, STAGE)]
    rows = [
        (d["dataset"], ", ".join(d["targets"]) or "-", d["seed"], d["images"], _names(d), d["created"][:16])
        for d in found
    ]
    text = table_of(rows, ("dataset", "target", "seed", "images", "classes", "made"))
    show({"datasets": found}, text if rows else "no dataset was made yet: `mudg target run`", as_json)


def run_export(name: str, out: Path, to: str, force: bool, as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    ref = store.resolve(name)
    source = Source.open(store, ref, targets_of_datasets(store).get(ref, ()))
    with console.status(f"writing {source.size:,} images to {escape(str(out))} …"):
        told = export(source, out, to, force=force)
    result: Json = told | {"out": str(out.expanduser().resolve())}
    words = f"{source.size:,} images of {len(source.classes):,} classes from {ref} as {to}"
    if source.without:
        words += f" ({len(source.without):,} left out: they are to be forgotten)"
    show(result, f"{words}\n{result['out']}\nread its README.md before you share it", as_json)


def targets_of_datasets(store: ArtifactStore) -> dict[ArtifactRef, tuple[str, ...]]:
    """Which targets a dataset was made for. Only reports know: a dataset depends on classes, not on names."""
    found: dict[ArtifactRef, tuple[str, ...]] = {}
    for manifest in artifacts(store, "report"):
        datasets: Any = manifest.recipe.parents.get("datasets", ())
        inputs: Any = manifest.recipe.settings.get("inputs", {})
        owners = [target["name"] for target in inputs.get("targets", ()) for _ in target["seeds"]]
        for ref, name in zip(datasets, owners, strict=False):
            found[ref] = tuple(dict.fromkeys((*found.get(ref, ()), name)))
    return found


def _described(store: ArtifactStore, manifest: Manifest, targets: dict[ArtifactRef, tuple[str, ...]]) -> Json:
    parents = manifest.recipe.parents
    return {
        "dataset": str(manifest.ref),
        "targets": list(targets.get(manifest.ref, ())),
        "seed": _seed(store, parents.get("picks")),
        "images": manifest.facts.get("images"),
        "classes": _classes(store, parents.get("queries")),
        "created": manifest.circumstances.created,
        "uri": store.uri(manifest.ref),
    }


def _classes(store: ArtifactStore, queries: Any) -> list[str]:
    """Class names; none if what they stand in was removed since."""
    try:
        return list(json.loads(store.file(queries, SPEC).read_text())["classes"]) if queries else []
    except MissingArtifactError:
        return []


def _seed(store: ArtifactStore, picks: Any) -> Any:
    try:
        inputs: Any = store.manifest(picks).recipe.settings.get("inputs", {}) if picks else {}
    except MissingArtifactError:
        return None
    return inputs.get("seed")


def _names(described: Json) -> str:
    names = described["classes"]
    few = ", ".join(name[:20] for name in names[:SHOWN_NAMES])
    return f"{len(names)}: {few}{', …' if len(names) > SHOWN_NAMES else ''}" if names else "?"
