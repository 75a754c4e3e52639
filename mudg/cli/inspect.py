"""`mudg show`: what an artifact is and where it came from."""

from __future__ import annotations

import json

from mudg.cli.output import show, table_of
from mudg_core.corpus.takedowns import read_takedowns
from mudg_core.settings import Settings
from mudg_core.storage import ArtifactStore, Manifest


def show_manifest(artifact: str, verify: bool, as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    ref = store.resolve(artifact)
    if verify:
        store.verify(ref)
    lineage = list(store.lineage(ref))
    result = lineage[-1].model_dump(mode="json") | {
        "digest": ref.digest,
        "uri": store.uri(ref),
        "lineage": [str(manifest.ref) for manifest in lineage],
        "note": read_takedowns(store).note(ref.place),
    }
    text = _text(lineage[-1], lineage, store.uri(ref))
    show(result, f"{text}\n\n{result['note']}", as_json)


def _text(manifest: Manifest, lineage: list[Manifest], uri: str) -> str:
    files = [(entry.name, entry.size, entry.sha256[:16]) for entry in manifest.files]
    made = manifest.circumstances
    parts = [
        f"{manifest.ref}\n{uri}\ndigest {manifest.digest}",
        f"made {made.created} in {made.seconds:.1f} s by mudg {made.mudg_version}",
        table_of(files, ("file", "bytes", "sha256")),
        f"facts     {json.dumps(manifest.facts)[:2000]}",
        f"settings  {json.dumps(manifest.recipe.settings)[:2000]}",
        f"lineage\n{_tree(lineage)}",
    ]
    return "\n\n".join(parts)


def _tree(lineage: list[Manifest]) -> str:
    """One line a stage, in the order of making; many artifacts of one stage (shards) share a line."""
    stages: dict[str, list[str]] = {}
    for manifest in lineage:
        stages.setdefault(manifest.recipe.stage, []).append(manifest.key[:12])
    lines = [
        f"  {stage}/{keys[0]}" + (f"  and {len(keys) - 1} more" if len(keys) > 1 else "")
        for stage, keys in stages.items()
    ]
    return "\n".join(lines)
