"""`mudg demo` and `mudg search`: the first commands of most people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

import flows
from mudg.cli.command import Flags, Output, command
from mudg.cli.output import table_of
from mudg_core.errors import InputError

if TYPE_CHECKING:
    from mudg_core.settings import Json, Settings
    from mudg_core.storage import ArtifactStore

app = typer.Typer()
DEMO_SETTINGS = Path(str(flows.__file__)).with_name("demo.yaml")
ONE_SEED = (
    "One seed: another may differ by some points, and close rows may change places. Quote a mean "
    "over several: `seeds: [0, 1, 2]` in a spec, `mudg demo --full` for the demo."
)


@command(app, "demo")
def run_demo(
    flags: Flags,
    full: Annotated[
        bool, Option("--full", help="Three targets with three seeds each (up to 40 minutes).")
    ] = False,
) -> Output:
    """Run the whole pipeline on the built-in demo world: no server, account or download.

    The first run takes a few minutes; the second finds every stage in the store and takes seconds. Results go
    to `.mudg/` (change it with `--set storage.url=file:///other/place`).

    Example: `mudg demo`
    """
    settings = flags.settings(DEMO_SETTINGS)
    from flows.demo import demo
    from mudg.cli.progress import watched
    from mudg.execution import call
    from mudg_core.storage import ArtifactStore
    from tasks.results import accuracies, counts, publish

    with watched(settings) as ready:
        built = call(demo, ready, full)
        store = ArtifactStore(ready.storage)
        path = publish(store, built.report, "demo-full" if full else "demo", ready)
        result = accuracies(store, built.builds) | counts(built.records) | {"report": str(path)}
        result["seeds"] = max(len(build.scores) for build in built.builds)
    return Output(result, accuracy_text(result))


@command(app, "search")
def run_search(
    text: Annotated[str, Argument(help='What to look for, e.g. "a photo of a red boat".')],
    settings: Settings,
    store: ArtifactStore,
    neighbors: Annotated[int, Option("--neighbors", "-n", min=1, max=1000, help="Number of images.")] = 10,
    probes: Annotated[
        int | None, Option(min=1, help="Number of cells to read.", show_default="index.probes")
    ] = None,
    save: Annotated[Path | None, Option(help="Also save the images as one picture.")] = None,
) -> Output:
    """Search the current index with a sentence.

    Example: `mudg search "a photo of a red boat" --save boats.png`
    """
    if not text.strip() or len(text) > 1000:
        raise InputError(what="the text to look for is empty or longer than 1000 characters")
    from mudg.search import search
    from mudg_core.index.version import current_version

    hits = search(store, current_version(store), settings, text, neighbors, probes)
    if save is not None:
        hits.save(save)
    lines = [(i, f"{hit.cosine:.3f}", hit.caption[:60], hit.url) for i, hit in enumerate(hits, 1)]
    body = [hit.facts | {"cosine": hit.cosine} for hit in hits]
    return Output({"query": text, "hits": body}, table_of(lines, ("rank", "cosine", "caption", "url")))


def accuracy_text(result: Json) -> str:
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
