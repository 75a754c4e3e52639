"""`mudg show` and `mudg lineage`: what an artifact is, what it was made from, and what was made from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from mudg.cli.command import Output, command
from mudg.cli.output import size, table_of
from mudg_core.errors import InputError

if TYPE_CHECKING:
    from rich.tree import Tree

    from mudg_core.settings import Json
    from mudg_core.storage import ArtifactStore, Manifest
    from mudg_core.storage.browse import Lineage

app = typer.Typer()
SHOWN = 3  # artifacts of one stage below one other: shards are many, and much like each other
SETTINGS = 160  # characters
WIDTH = 240
Name = Annotated[str, Argument(help="A target's name, `stage/beginning-of-key`, a URI, or `index-current`.")]


@command(app, "show")
def show_artifact(
    artifact: Name,
    store: ArtifactStore,
    verify: Annotated[bool, Option("--verify", help="Read every byte and compare checksums.")] = False,
) -> Output:
    """Show an artifact: its files, facts, settings, and the artifacts it was made from.

    Example: `mudg show animals`
    """
    from mudg.names import find
    from mudg_core.corpus.takedowns import read_takedowns

    ref = find(store, artifact)
    if verify:
        store.verify(ref)
    lineage = list(store.lineage(ref))
    result = lineage[-1].model_dump(mode="json") | {
        "digest": ref.digest,
        "uri": store.uri(ref),
        "lineage": [str(manifest.ref) for manifest in lineage],
        "note": read_takedowns(store).note(ref.place),
    }
    return Output(result, f"{_manifest_text(lineage, store.uri(ref))}\n\n{result['note']}")


def _manifest_text(lineage: list[Manifest], uri: str) -> str:
    """Artifacts of one stage (shards) share a line of the lineage."""
    manifest, stages = lineage[-1], dict[str, list[str]]()
    for one in lineage:
        stages.setdefault(one.recipe.stage, []).append(one.key[:12])
    lines = [
        f"  {stage}/{keys[0]}" + (f"  and {len(keys) - 1} more" if len(keys) > 1 else "")
        for stage, keys in stages.items()
    ]
    build = manifest.circumstances
    files = [(entry.name, entry.size, entry.sha256[:16]) for entry in manifest.files]
    parts = [
        f"{manifest.ref}\n{uri}\ndigest {manifest.digest}",
        f"made {build.created} in {build.seconds:.1f} s by mudg {build.mudg_version}",
        table_of(files, ("file", "bytes", "sha256")),
        f"facts     {json.dumps(manifest.facts)[:2000]}",
        f"settings  {json.dumps(manifest.recipe.settings)[:2000]}",
        "\n".join(["lineage", *lines]),
    ]
    return "\n\n".join(parts)


@command(app, "lineage")
def show_lineage(
    artifact: Name,
    store: ArtifactStore,
    children: Annotated[
        bool, Option("--children", help="Also show what was made from the artifact.")
    ] = False,
    picture: Annotated[Path | None, Option(help="Also draw the graph (SVG).")] = None,
) -> Output:
    """Show what an artifact was made from, back to the corpus: when, how large, by which settings.

    Example: `mudg lineage model/3fa9 --children --picture model.svg`
    """
    from mudg.names import find
    from mudg_core.corpus.takedowns import read_takedowns
    from mudg_core.storage.browse import describe, lineage_of

    graph = lineage_of(store, find(store, artifact), children=children)
    if picture is not None:
        _draw(graph, picture)
    takedowns = read_takedowns(store)
    notes = {str(one.ref): note for name, one in graph.manifests.items() if (note := takedowns.note(name))}
    result: Json = {"artifact": str(graph.root.ref), "digest": graph.root.digest}
    result |= {"lineage": [describe(one) for one in graph.ancestors()]}
    result |= {"children": [describe(one) for one in graph.descendants()[1:]]} if children else {}
    result |= {"notes": notes, "picture": str(picture) if picture else None}
    parts = [_render(_tree(graph, graph.parents))]
    if children:
        below = _tree(graph, graph.made_from)
        parts.append(f"made from it\n{_render(below)}" if below.children else "nothing was made from it")
    return Output(result, "\n\n".join([*parts, *(f"{name} {note}" for name, note in notes.items())]))


def _tree(graph: Lineage, following: Callable[[str], list[str]]) -> Tree:
    """Each artifact is unfolded where it is met first; after that it is only named."""
    from rich.text import Text
    from rich.tree import Tree

    seen: set[str] = set()

    def grow(branch: Tree, name: str) -> None:
        by_stage: dict[str, list[str]] = {}
        for other in dict.fromkeys(following(name)):
            by_stage.setdefault(other.partition("/")[0], []).append(other)
        for stage, names in by_stage.items():
            for other in names[:SHOWN]:
                known = other in seen
                seen.add(other)
                twig = branch.add(Text(_line(graph, other, known)))
                if not known:
                    grow(twig, other)
            if len(names) > SHOWN:
                branch.add(Text(f"and {len(names) - SHOWN:,} more {stage}"))

    root = graph.root.ref.place
    tree = Tree(Text(_line(graph, root, False)))
    grow(tree, root)
    return tree


def _line(graph: Lineage, name: str, known: bool) -> str:
    stage, _, key = name.partition("/")
    short = f"{stage}/{key[:12]}"
    manifest = graph.manifests.get(name)
    if manifest is None:
        return f"{short}  not in the store any more"
    return f"{short}  (above)" if known else f"{short}  {_facts(manifest)}"


def _facts(manifest: Manifest) -> str:
    from mudg_core.storage.browse import extent, settings_that_matter

    created = manifest.circumstances.created[:16].replace("T", " ")
    settings = ", ".join(f"{name} {_short(value)}" for name, value in settings_that_matter(manifest).items())
    if len(settings) > SETTINGS:
        settings = f"{settings[:SETTINGS]}…"
    return "  ".join(word for word in (created, extent(manifest), size(manifest.size), settings) if word)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= 40 else f"{text[:39]}…"


def _render(tree: Tree) -> str:
    """Plain text, whatever the terminal: it goes to files and mails as well."""
    import io

    from rich.console import Console

    console = Console(
        file=io.StringIO(), width=WIDTH, force_terminal=False, color_system=None, highlight=False
    )
    with console.capture() as capture:
        console.print(tree, soft_wrap=True)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _draw(graph: Lineage, path: Path) -> None:
    from mudg_core.report.charts.lineage import lineage_picture
    from mudg_core.report.gather import lineage_node

    shown = [*reversed(graph.ancestors()), *graph.descendants()[1:]]
    try:
        path.write_text(lineage_picture([lineage_node(one) for one in shown], f"around {graph.root.ref}"))
    except OSError as error:
        what = f"the picture cannot be written: {error.strerror}"
        raise InputError(what=what, where=str(path), fix="name another file") from error
