"""Commands that compute. Imported only when one is called: torch and Prefect take seconds to load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from flows.build_classifier import build_classifier
from flows.demo import DEMO_SETTINGS, demo
from mudg.cli.output import console, settings_from, show, table_of
from mudg.cli.progress import Terminal
from mudg.execution import call, session, uses_prefect
from mudg_core.evaluate.gate import VERDICT
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactStore
from mudg_core.target.spec import Target
from mudg_core.train.classifiers import copy_out
from tasks.results import accuracies, counts, publish
from tasks.run import WATCHER

Changes = list[str] | None
ONE_SEED = (
    "One seed: another may differ by some points, and close rows may change places. Quote a mean "
    "over several (of the demo: mudg demo --full)."
)


@contextmanager
def watched(settings: Settings) -> Iterator[Settings]:
    """A session whose stages are shown in the terminal."""
    starting = console.status("starting Prefect and Dask …") if uses_prefect(settings) else nullcontext()
    with ExitStack() as stack:
        with starting:
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
