"""`mudg model …`: classifiers that were made, their way out, and their ONNX graphs."""

from __future__ import annotations

from pathlib import Path

from mudg.cli.output import console, show, table_of
from mudg_core.corpus.takedowns import read_takedowns
from mudg_core.encode.weights import local_files
from mudg_core.errors import InputError
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactStore
from mudg_core.storage.browse import artifacts
from mudg_core.train.classifiers import STAGE, copy_out, find_classifier, target_of


def run_list(as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    forgotten = read_takedowns(store)
    found: list[Json] = [
        {
            "model": str(manifest.ref),
            "target": target_of(manifest),
            **manifest.facts,
            "created": manifest.circumstances.created,
            "uri": store.uri(manifest.ref),
            "note": forgotten.note(manifest.ref.place),
        }
        for manifest in artifacts(store, STAGE)
    ]
    rows = [
        (
            m["model"],
            m["target"],
            m["classes"],
            m["images"],
            f"{m['alpha']:.2f}",
            m["created"][:16],
            m["note"],
        )
        for m in found
    ]
    text = table_of(rows, ("model", "target", "classes", "images", "alpha", "made", ""))
    show({"models": found}, text if rows else "no classifier was made yet: `mudg target run`", as_json)


def run_export(name: str, out: Path, force: bool, as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    ref = find_classifier(store, name)
    note = read_takedowns(store).note(ref.place)
    told = copy_out(store, ref, out, force=force) | {"out": str(out.expanduser().resolve()), "note": note}
    if note:
        said = f"{ref} {note}: build its target again, and do not hand this one on"
        console.print(said, style="bold yellow", markup=False, highlight=False, soft_wrap=True)
    words = f"{ref}, a classifier for {told['classes']:,} classes ({told['target']})"
    show(told, f"{words}\n{told['out']}\nread its README.md before you share it", as_json)


def run_onnx(folder: Path, as_json: bool) -> None:
    folder = folder.expanduser().resolve()
    if folder.parent.name == "attempts":
        raise InputError(
            what="this folder belongs to the store, in which nothing is changed",
            where=str(folder),
            fix="copy the model out first: `mudg model export`",
        )
    name = f"local-dir:{folder}"
    local_files(name, name)
    from mudg_core.train.onnx import check_installed, export_onnx

    check_installed()
    from mudg_core.encode.models import load_clip

    with console.status("writing graphs, and running them beside torch …"):
        written = export_onnx(load_clip(name), folder)
    told = [{"file": str(one.file), "difference": one.difference} for one in written]
    lines = [f"{one.file}  (differs from torch by {one.difference:.1g} at most)" for one in written]
    show({"graphs": told}, "\n".join(lines), as_json)
