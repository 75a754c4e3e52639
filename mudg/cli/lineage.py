"""`mudg lineage`: what an artifact was made from, and what was made from it, as a tree and as a picture."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from mudg.cli.output import show
from mudg.cli.units import size
from mudg_core.errors import InputError
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactStore, Manifest
from mudg_core.storage.browse import (
    Lineage,
    describe,
    extent,
    lineage_of,
    settings_that_matter,
)

SHOWN = 3  # artifacts of one stage below one other: shards are many, and much like each other
SETTINGS = 160  # characters
WIDTH = 240


def run_lineage(name: str, children: bool, picture: Path | None, as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    found = lineage_of(store, store.resolve(name), children=children)
    if picture is not None:
        _draw(found, picture)
    result: Json = {"artifact": str(found.root.ref), "digest": found.root.digest}
    result["lineage"] = [describe(one) for one in found.ancestors()]
    if children:
        result["children"] = [describe(one) for one in found.descendants()[1:]]
    result["notes"] = _notes(store, found)
    text = "\n\n".join(
        [_text(found, children), *(f"{name} {note}" for name, note in result["notes"].items())]
    )
    show(result | {"picture": str(picture) if picture else None}, text, as_json)


def _notes(store: ArtifactStore, found: Lineage) -> dict[str, str]:
    """What is to be said of artifacts of the graph, by what they are called."""
    from mudg_core.corpus.takedowns import read_takedowns  # pyarrow

    forgotten = read_takedowns(store)
    told = {str(one.ref): forgotten.note(name) for name, one in found.manifests.items()}
    return {name: note for name, note in told.items() if note}


def _text(found: Lineage, children: bool) -> str:
    parts = [_render(_tree(found, found.parents))]
    if children:
        below = _render(_tree(found, found.made_from))
        parts.append(
            f"made from it\n{below}" if found.made_from(found.root.ref.place) else "nothing was made from it"
        )
    return "\n\n".join(parts)


def _tree(found: Lineage, following: Callable[[str], list[str]]) -> Tree:
    """Each artifact is unfolded where it is met first; after that it is only named."""
    seen: set[str] = set()

    def grow(branch: Tree, name: str) -> None:
        by_stage: dict[str, list[str]] = {}
        for other in dict.fromkeys(following(name)):
            by_stage.setdefault(other.partition("/")[0], []).append(other)
        for stage, names in by_stage.items():
            for other in names[:SHOWN]:
                known = other in seen
                seen.add(other)
                twig = branch.add(Text(_line(found, other, known)))
                if not known:
                    grow(twig, other)
            if len(names) > SHOWN:
                branch.add(Text(f"and {len(names) - SHOWN:,} more {stage}"))

    root = found.root.ref.place
    tree = Tree(Text(_line(found, root, False)))
    grow(tree, root)
    return tree


def _line(found: Lineage, name: str, known: bool) -> str:
    stage, _, key = name.partition("/")
    short = f"{stage}/{key[:12]}"
    one = found.manifests.get(name)
    if one is None:
        return f"{short}  not in the store any more"
    return f"{short}  (above)" if known else f"{short}  {_facts(one)}"


def _facts(one: Manifest) -> str:
    made = one.circumstances.created[:16].replace("T", " ")
    words = [made, extent(one), size(one.size)]
    settings = ", ".join(f"{name} {_short(value)}" for name, value in settings_that_matter(one).items())
    if len(settings) > SETTINGS:
        settings = f"{settings[:SETTINGS]}…"
    return "  ".join(word for word in (*words, settings) if word)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= 40 else f"{text[:39]}…"


def _render(tree: Tree) -> str:
    """Plain text, whatever the terminal: it goes to files and mails as well."""
    console = Console(
        file=io.StringIO(), width=WIDTH, force_terminal=False, color_system=None, highlight=False
    )
    with console.capture() as capture:
        console.print(tree, soft_wrap=True)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _draw(found: Lineage, path: Path) -> None:
    from mudg_core.report.charts import lineage_picture  # pyarrow and more, which the text does without
    from mudg_core.report.gather import lineage_node

    shown = [*reversed(found.ancestors()), *found.descendants()[1:]]
    try:
        path.write_text(lineage_picture([lineage_node(one) for one in shown], f"around {found.root.ref}"))
    except OSError as error:
        what = f"the picture cannot be written: {error.strerror}"
        raise InputError(what=what, where=str(path), fix="name another file") from error
