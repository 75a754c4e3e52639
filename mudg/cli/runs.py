"""Commands that compute. Imported only when one is called: torch and Prefect take seconds to load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from flows.build_classifier import build_classifier
from mudg.cli.output import console, settings_from, show, table_of
from flows.demo import DEMO_SETTINGS, demo
from mudg.cli.progress import Terminal
from flows.results import accuracies, counts, publish
from tasks.executors.session import call, session
from mudg_core.corpus.decode import decode
from mudg_core.corpus.forgotten import read_forgotten
from mudg_core.corpus.images import ShardImages
from mudg_core.corpus.opened import open_images
from mudg_core.encode.shard import EmbeddingShard, gather_metadata
from mudg_core.encode.weights import weights_digest
from mudg_core.errors import DataError
from mudg_core.evaluate.gate import VERDICT
from mudg_core.index.opened import check_model, open_searcher
from mudg_core.index.version import current_version
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactStore
from mudg_core.target.spec import Target
from mudg_core.train.classifiers import copy_out
from tasks.run import WATCHER
from tasks.search import probing

Changes = list[str] | None
ONE_SEED = (
    "One seed: another may differ by some points, and close rows may change places. Quote a mean "
    "over several (of the demo: mudg demo --full)."
)


@contextmanager
def watched(settings: Settings) -> Iterator[Settings]:
    """A session whose stages are shown in the terminal."""
    with ExitStack() as stack:
        with console.status("starting Prefect and Dask …"):
            ready = stack.enter_context(session(settings))
        token = WATCHER.set(Terminal(console))
        stack.callback(WATCHER.reset, token)
        yield ready


def run_demo(full: bool, as_json: bool, file: Path | None, changes: Changes) -> None:
    with watched(settings_from(file, changes, DEMO_SETTINGS)) as settings:
        made = call(demo, settings, full)
        store = ArtifactStore(settings.storage)
        path = publish(store, made.report, "demo-full" if full else "demo", settings)
        result = accuracies(store, made.builds) | counts(made.records) | {"report": str(path)}
        result["seeds"] = max(len(build.scores) for build in made.builds)
    show(result, accuracy_text(result), as_json)


def run_target(target: Target, out: Path | None, as_json: bool, file: Path | None, changes: Changes) -> None:
    with watched(settings_from(file, changes)) as settings:
        built = call(build_classifier, settings, target)
        store = ArtifactStore(settings.storage)
        path = publish(store, built.report, target.name, settings)
        models = [str(store.folder(ref)) for ref in built.mudg.models]
        classifier = store.folder(built.classifier)
        if out is not None:
            copy_out(store, built.classifier, out)
            classifier = out.expanduser().resolve()
        told: Any = store.manifest(built.report).facts
        result = accuracies(store, [built]) | counts(built.records) | {"seeds": len(built.scores)}
        result |= {"models": models, "datasets": [str(ref) for ref in built.mudg.data.by_seed]}
        result |= {"classifier": str(built.classifier), "folder": str(classifier)}
        result |= {"verdicts": [json.loads(store.file(ref, VERDICT).read_text()) for ref in built.verdicts]}
        result |= {"notes": told["notes"], "warnings": told["warnings"][target.name], "report": str(path)}
    show(result, accuracy_text(result) + target_text(target.name, result), as_json)


def target_text(name: str, result: Json) -> str:
    """What a person is told beside accuracy: warnings first."""
    lines = [f"warning: {warning['message']}" for warning in result["warnings"]]
    lines += [f"training set: {ref}" for ref in result["datasets"]]
    lines += [f"model: {result['folder']}", f"try it: mudg predict {name} IMAGES"]
    lines += [f"estimated without labels: {verdict['reasons'][0]}" for verdict in result["verdicts"]]
    return "".join(f"{line}\n" for line in lines)


def run_search(
    text: str,
    neighbors: int,
    probes: int | None,
    save: Path | None,
    as_json: bool,
    file: Path | None,
    changes: Changes,
) -> None:
    from mudg_core.encode.models import load_clip  # torch: the other commands leave it to the workers

    settings = settings_from(file, changes)
    store = ArtifactStore(settings.storage)
    version = current_version(store)
    check_model(store, version, weights_digest(settings.encode.model))
    how = probing(settings.index)
    if probes:
        how = replace(how, probes=probes)
    query = load_clip(settings.encode.model).encode_texts([text])
    found = open_searcher(store, version).search(query, neighbors, how, settings.index.rerank).hits
    rows = found.rows[0][found.rows[0] >= 0]
    shards = [EmbeddingShard.open(store.folder(ref)) for ref in version.embeddings]
    metadata = gather_metadata(shards, rows)
    hits: list[Json] = metadata.to_pylist()
    for hit, cosine in zip(hits, found.cosines[0], strict=False):
        hit["cosine"] = round(float(cosine), 4)
    gone = read_forgotten(store).matches(metadata)  # a version from before may have them
    hits = [hit for hit, forgotten in zip(hits, gone, strict=True) if not forgotten]
    if save is not None:
        links = {hit["row"]: hit for hit in hits}
        images = ShardImages(lambda number: open_images(store, version.shards[number]), links).read(links)
        if not images:
            raise DataError(
                what="no image of these results lies in the corpus",
                fix="look at them by their links: published embeddings come without images",
            )
        _contact_sheet([images[row] for row in links if row in images]).save(save)
    lines = [(i, f"{hit['cosine']:.3f}", hit["caption"][:60], hit["url"]) for i, hit in enumerate(hits, 1)]
    show({"query": text, "hits": hits}, table_of(lines, ("rank", "cosine", "caption", "url")), as_json)


def _contact_sheet(images: list[bytes], side: int = 128, columns: int = 8) -> Image.Image:
    """The images found, best first, line by line."""
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (min(columns, len(images)) * side, rows * side), "white")
    for place, data in enumerate(images):
        picture = decode(data).resize((side, side))
        sheet.paste(picture, (place % columns * side, place // columns * side))
    return sheet


def accuracy_text(result: dict[str, Any]) -> str:
    """Of one seed no deviation is known, so none is printed; a line says what that means."""
    arms = [arm for arm in ("zero_shot", "nearest_neighbours", "mudg") if arm in result]
    text = ""
    if arms:
        several, domains = result["seeds"] > 1, list(result[arms[0]]["domains"])
        means = {arm: f"{result[arm]['mean']:.1f}" for arm in arms}
        if several:
            means = {arm: f"{mean} ± {result[arm]['std']:.1f}" for arm, mean in means.items()}
        rows = [(arm, means[arm], *(f"{result[arm]['domains'][d]:.1f}" for d in domains)) for arm in arms]
        seeds = f"Mean and standard deviation over {result['seeds']} seeds." if several else ONE_SEED
        text = f"{table_of(rows, ('accuracy, %', 'mean', *domains))}\n{seeds}\n\n"
    return f"{text}{result['computed']} computed, {result['cached']} cached\nreport: {result['report']}\n"
