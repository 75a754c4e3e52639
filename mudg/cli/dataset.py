"""`mudg dataset …`: list training sets, and export one for other tools."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mudg.cli.command import Output, command, group
from mudg.cli.output import console, table_of
from mudg_core.errors import MissingArtifactError

if TYPE_CHECKING:
    from mudg_core.settings import Json
    from mudg_core.storage import ArtifactRef, ArtifactStore, Manifest

app = group("List and export the training sets of targets.")
SHOWN_NAMES = 4


class Format(StrEnum):
    """Layouts that a training set can be exported to."""

    imagefolder = "imagefolder"
    huggingface = "huggingface"
    webdataset = "webdataset"


@command(app, "list")
def dataset_list(store: ArtifactStore) -> Output:
    """List training sets: target, seed, number of images, classes and date.

    One without a target is a baseline, or its report is not written yet. Example: `mudg dataset list`
    """
    from mudg_core.dataset.export.source import STAGE
    from mudg_core.storage.browse import artifacts

    targets = targets_of_datasets(store)
    datasets = [_described(store, manifest, targets) for manifest in artifacts(store, STAGE)]
    rows = [
        (d["dataset"], ", ".join(d["targets"]) or "-", d["seed"], d["images"], _names(d), d["created"][:16])
        for d in datasets
    ]
    text = table_of(rows, ("dataset", "target", "seed", "images", "classes", "created"))
    return Output({"datasets": datasets}, text if rows else "no dataset was made yet: `mudg target run`")


@command(app, "export")
def dataset_export(
    dataset: Annotated[str, Argument(help="A target's name, or `dataset/beginning-of-key`.")],
    out: Annotated[Path, Argument(help="A new or empty folder.")],
    to: Annotated[Format, Option(help="The layout.")],
    store: ArtifactStore,
    force: Annotated[bool, Option("--force", help="Replace an earlier export.")] = False,
) -> Output:
    """Write a training set for other tools, with the source of every image and a README.

    Images are copied byte by byte. Their labels are pseudo-labels, and they belong to their owners.

    Example: `mudg dataset export animals ./animals --to imagefolder`
    """
    from rich.markup import escape

    from mudg.names import DATASET, find
    from mudg_core.dataset.export import Source, export

    ref = find(store, dataset, DATASET)
    source = Source.open(store, ref, targets_of_datasets(store).get(ref, ()))
    with console.status(f"writing {source.size:,} images to {escape(str(out))} …"):
        exported = export(source, out, to, force=force)
    result = exported | {"out": str(out.expanduser().resolve())}
    words = f"{source.size:,} images of {len(source.classes):,} classes from {ref} as {to}"
    if source.without:
        words += f" ({len(source.without):,} left out: taken down)"
    return Output(result, f"{words}\n{result['out']}\nread its README.md before you share it")


def targets_of_datasets(store: ArtifactStore) -> dict[ArtifactRef, tuple[str, ...]]:
    """Which targets a dataset was made for. Only reports know: a dataset depends on classes, not on names."""
    from mudg_core.storage.browse import artifacts

    targets: dict[ArtifactRef, tuple[str, ...]] = {}
    for manifest in artifacts(store, "report"):
        datasets: Any = manifest.recipe.parents.get("datasets", ())
        inputs: Any = manifest.recipe.settings.get("inputs", {})
        owners = [target["name"] for target in inputs.get("targets", ()) for _ in target["seeds"]]
        for ref, name in zip(datasets, owners, strict=False):
            targets[ref] = tuple(dict.fromkeys((*targets.get(ref, ()), name)))
    return targets


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
    """Class names; none if the artifact that has them was deleted since."""
    from mudg_core.target.queries import SPEC

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
