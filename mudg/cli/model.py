"""`mudg model …`: list classifiers, export one, and write its ONNX graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from mudg.cli.command import Output, command, group
from mudg.cli.output import console, say, table_of
from mudg_core.errors import InputError

if TYPE_CHECKING:
    from mudg_core.settings import Json
    from mudg_core.storage import ArtifactStore

app = group("List and export the classifiers of targets.")


@command(app, "list")
def model_list(store: ArtifactStore) -> Output:
    """List classifiers: target, number of classes and images, gate's alpha and date.

    Example: `mudg model list`
    """
    from mudg_core.corpus.takedowns import read_takedowns
    from mudg_core.storage.browse import artifacts
    from mudg_core.train.classifiers import STAGE, target_of

    takedowns = read_takedowns(store)
    models: list[Json] = [
        {
            "model": str(manifest.ref),
            "target": target_of(manifest),
            **manifest.facts,
            "created": manifest.circumstances.created,
            "uri": store.uri(manifest.ref),
            "note": takedowns.note(manifest.ref.place),
        }
        for manifest in artifacts(store, STAGE)
    ]
    rows = [
        [m[name] for name in ("model", "target", "classes", "images")]
        + [f"{m['alpha']:.2f}", m["created"][:16], m["note"]]
        for m in models
    ]
    text = table_of(rows, ("model", "target", "classes", "images", "alpha", "created", ""))
    return Output({"models": models}, text if rows else "no classifier was made yet: `mudg target run`")


@command(app, "export")
def model_export(
    model: Annotated[str, Argument(help="A target's name, or `classifier/beginning-of-key`.")],
    out: Annotated[Path, Argument(help="A new or empty folder.")],
    store: ArtifactStore,
    force: Annotated[bool, Option("--force", help="Replace an earlier export.")] = False,
) -> Output:
    """Copy a target's latest classifier out of the store: weights for open_clip, classes, and a model card.

    Example: `mudg model export animals ./animals`
    """
    from mudg.names import CLASSIFIER, find
    from mudg_core.corpus.takedowns import read_takedowns
    from mudg_core.train.classifiers import copy_out

    ref = find(store, model, CLASSIFIER)
    note = read_takedowns(store).note(ref.place)
    result = copy_out(store, ref, out, force=force) | {"out": str(out.expanduser().resolve()), "note": note}
    if note:
        say(f"{ref} {note}: build its target again, and do not hand this one on", "bold yellow")
    words = f"{ref}, a classifier for {result['classes']:,} classes ({result['target']})"
    return Output(result, f"{words}\n{result['out']}\nread its README.md before you share it")


@command(app, "onnx")
def model_onnx(
    folder: Annotated[Path, Argument(help="A folder that `mudg model export` wrote.")],
) -> Output:
    """Write both towers of an exported model as ONNX graphs beside its weights, checked against torch.

    Needs the extra onnx: `pip install -e '.[cpu,onnx]'` in the checkout (`make setup` has it). Takes half a
    minute and about four times the memory of the weights.

    Example: `mudg model onnx ./animals` writes `visual.onnx` and `text.onnx`.
    """
    folder = folder.expanduser().resolve()
    if folder.parent.name == "attempts":
        raise InputError(
            what="this folder is inside the store, which is read-only",
            where=str(folder),
            fix="copy the model out first: `mudg model export`",
        )
    from mudg_core.encode.weights import local_files
    from mudg_core.train.onnx import check_installed, export_onnx

    name = f"local-dir:{folder}"
    local_files(name, name)
    check_installed()
    from mudg_core.encode.models import load_clip

    with console.status("writing graphs, and running them beside torch …"):
        written = export_onnx(load_clip(name), folder)
    graphs = [{"file": str(one.file), "difference": one.difference} for one in written]
    lines = [f"{one.file}  (differs from torch by {one.difference:.1g} at most)" for one in written]
    return Output({"graphs": graphs}, "\n".join(lines))
