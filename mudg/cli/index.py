"""`mudg index …`: build, list, promote, go back, measure, tune, leave rows out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from mudg.cli.command import Output, command, group
from mudg.cli.output import table_of
from mudg_core.errors import DataError, InputError

if TYPE_CHECKING:
    from flows.build_index import IndexBuild
    from mudg_core.index.recall import At, Point
    from mudg_core.settings import Json, Settings
    from mudg_core.storage import ArtifactRef, ArtifactStore

app = group("Build, measure and manage the index of the image pool.")
MOST_REMOVED = 100_000
ROWS_FIX = "`mudg search --json` shows the rows of images"
Verbose = Annotated[bool, Option("--verbose", help="Also print the tables: variants, recall by cost.")]


@command(app, "build")
def index_build(
    settings: Settings,
    retrain: Annotated[
        bool, Option("--retrain", help="Train the cells on all shards, even if the current ones would do.")
    ] = False,
    verbose: Verbose = False,
) -> Output:
    """Embed the corpus, train the cells, populate the index, measure it and make it the current one.

    Only what is new is computed: new shards are embedded and added to the cells that are there. The index
    becomes current only if recall@1 of held-out captions reaches `index.required_recall`.

    Example: `mudg index build --set index.cells=512`
    """
    return _build(settings, retrain, (), verbose)


@command(app, "remove")
def index_remove(
    rows: Annotated[list[int], Argument(help="Corpus rows, as `mudg search --json` shows them.")],
    settings: Settings,
    store: ArtifactStore,
    verbose: Verbose = False,
) -> Output:
    """Leave rows out of the index only, in a new version that becomes current.

    Later builds leave them out too. Training sets and models stay as they are, and a copy under another row
    can still be found: for a takedown request use `mudg takedown`, which handles all of these. The new
    version is the current one without the rows, whatever the settings; new shards wait for the next build.

    Example: `mudg index remove 4711 4712`
    """
    from mudg_core.index.version import current_version, unknown_rows

    if not rows or min(rows) < 0 or len(rows) > MOST_REMOVED:
        raise InputError(
            what=f"{len(rows)} rows to remove: give between 1 and {MOST_REMOVED:,} row numbers from 0 up",
            fix=ROWS_FIX,
        )
    if unknown := unknown_rows(store, current_version(store), rows):
        raise InputError(what=f"rows {unknown[:10]} are not in the index", fix=ROWS_FIX)
    return _build(settings, False, rows, verbose)


@command(app, "list")
def index_list(store: ArtifactStore) -> Output:
    """List the versions that were current, newest first.

    Example: `mudg index list`
    """
    from mudg_core.index.version import history

    rows = []
    for item in history(store):
        state = "current" if item.current else "withdrawn" if item.withdrawn else ""
        try:
            facts = store.manifest(item.ref).facts
        except DataError:  # the history remembers more versions than garbage collection keeps
            facts, state = {"variant": "", "rows": None}, "deleted"
        rows.append((str(item.ref), item.when, facts["variant"], facts["rows"], state))
    body = [dict(zip(("index", "promoted", "variant", "rows", "state"), row, strict=True)) for row in rows]
    text = table_of(rows, ("index", "promoted", "variant", "images", ""))
    return Output({"versions": body}, text if rows else "no version was promoted yet")


@command(app, "promote")
def index_promote(
    index: Annotated[str, Argument(help="`index/beginning-of-key`, or the target it served.")],
    settings: Settings,
    store: ArtifactStore,
    force: Annotated[bool, Option("--force", help="Skip the recall check.")] = False,
) -> Output:
    """Make a version the current one, if its recall passes the gate.

    Promoting an earlier version withdraws the one that is current: scheduled builds do not promote it again.

    Example: `mudg index promote index/3fa9`
    """
    from flows.build_index import check
    from mudg.names import INDEX, find
    from mudg_core.index.version import load_version, promote
    from tasks.run import Run

    ref = find(store, index, INDEX)
    load_version(store, ref)
    if not force:
        point = _curve(store, settings, ref, "report", [(settings.index.probes, settings.index.mass)])[0]
        check(Run(settings), ref, point)
    removed = _removed_now(store)
    promote(store, ref)
    return _now_current(store, ref, removed)


@command(app, "rollback")
def index_rollback(store: ArtifactStore) -> Output:
    """Go back to the version that was current before.

    Example: `mudg index rollback`
    """
    from mudg_core.index.version import rollback

    removed = _removed_now(store)
    return _now_current(store, rollback(store), removed)


@command(app, "recall")
def index_recall(
    settings: Settings,
    store: ArtifactStore,
    index: Annotated[
        str | None,
        Argument(help="`index/beginning-of-key`, or the target it served.", show_default="the current one"),
    ] = None,
    save: Annotated[Path | None, Option(help="Also draw the curves (SVG).")] = None,
) -> Output:
    """Measure recall against exact search, by vectors read and queries a second of CPU time.

    With captions that the index was not trained on, and with images; intervals are at 95 %.

    Example: `mudg index recall --save recall.svg`
    """
    from mudg.names import INDEX, find
    from mudg_core.index.version import current_version
    from mudg_core.report.charts.curves import recall_curves

    ref = find(store, index, INDEX) if index else current_version(store).index
    kinds = {"text queries": "report", "image queries": "images"}
    curves = {words: _curve(store, settings, ref, kind) for words, kind in kinds.items()}
    if save:
        save.write_text(recall_curves(curves))
    body = {words: [point.to_json(timed=True) for point in points] for words, points in curves.items()}
    text = "\n\n".join(f"{words}\n{_table(points)}" for words, points in curves.items())
    return Output({"index": str(ref), **body, "plot": str(save) if save else None}, text)


@command(app, "tune")
def index_tune(
    settings: Settings,
    store: ArtifactStore,
    recall: Annotated[float, Option(min=0.01, max=1.0, help="The recall to reach.")] = 0.9,
    at: Annotated[int, Option(help="Recall of how many nearest images: 1 or 10.")] = 1,
) -> Output:
    """Find the cheapest search settings that reach a recall.

    They are chosen on tuning queries and reported on others, as what was chosen looks better than it is.

    Example: `mudg index tune --recall 0.95 --at 10`
    """
    if at not in (1, 10):
        raise InputError(what=f"recall at {at} is not measured", fix="use --at 1 or --at 10")
    from mudg_core.index.recall import cheapest
    from mudg_core.index.version import current_version

    neighbors: At = 1 if at == 1 else 10
    index = current_version(store).index
    best = cheapest(_curve(store, settings, index, "tuning"), recall, neighbors)
    if best is None:
        raise InputError(
            what=f"recall@{at} of {recall:g} is not reached, whatever is read",
            where=str(index),
            fix="raise index.rerank, or build with a finer index.code",
        )
    report = _curve(store, settings, index, "report", [(best.probes, best.mass)])[0]
    flags = f"--set index.probes={best.probes} --set index.mass={best.mass:g}"
    body = {"probes": best.probes, "mass": best.mass, "tuning": best.to_json(), "report": report.to_json()}
    return Output(
        body | {"flags": flags}, f"{flags}\n\non tuning queries, and on others\n{_table([best, report])}"
    )


def rebuilt_without(rows: Sequence[int], settings: Settings) -> str:
    """A new version without these rows, which becomes current."""
    from flows.build_index import build_index
    from mudg.cli.progress import watched
    from mudg.execution import call

    with watched(settings) as ready:
        return str(call(build_index, ready, False, list(rows)).version.index)


def _build(settings: Settings, retrain: bool, removed: Sequence[int], verbose: bool) -> Output:
    from flows.build_index import build_index
    from mudg.cli.progress import watched
    from mudg.execution import call
    from mudg_core.index.version import current_version
    from mudg_core.storage import ArtifactStore
    from tasks.results import counts

    with watched(settings) as ready:
        built = call(build_index, ready, retrain, list(removed))
        store = ArtifactStore(ready.storage)
        result = described(store, built) | counts(built.records)
        current = str(current_version(store).index)
    return Output(result, _build_text(result, current) + (_build_tables(result) if verbose else ""))


def described(store: ArtifactStore, built: IndexBuild) -> Json:
    from mudg_core.storage import ArtifactRef

    facts, parents = (
        store.manifest(built.version.index).facts,
        store.manifest(built.version.index).recipe.parents,
    )
    choice = parents.get("choice")
    tried = store.manifest(choice).facts["read"] if isinstance(choice, ArtifactRef) else {}
    curve = json.loads(store.file(built.recall, "recall.json").read_text())
    plots = {name: str(store.file(built.recall, f"{name}.svg")) for name in ("recall", "objectives")}
    result: Json = {"index": str(built.version.index), **facts, "tried": tried}
    return result | {"recall": curve, "plots": plots, "note": built.note}


def _build_text(result: Json, current: str) -> str:
    """Three lines and the next command; a line more if new shards differ from what the cells were trained on,
    or if the version did not become current."""
    from mudg_core.index.recall import Point, share

    point = Point.from_json(result["recall"]["text queries"][0])  # the first has the configured cost
    recall = point.recall_at_1
    work = f"{result['computed']} computed, {result['cached']} cached"
    lines = [
        f"built: {result['rows']:,} images in {result['cells']:,} cells, {result['variant']} ({work})",
        f"recall: the nearest image is found for {100 * recall.value:.1f} % of captions that were held out "
        f"(95 %: {100 * recall.low:.1f} to {100 * recall.high:.1f}), reading {share(point.share_read)}",
    ]
    if (drift := result["drift"]) and drift["retrain"]:
        lines.append(f"warning: {drift['words']} Run `mudg index build --retrain`.")
    if result["note"]:
        lines.append(result["note"])
    lines.append(f"current: {current}")
    return "\n".join([*lines, 'next: mudg search "a photo of a red boat", or mudg target run SPEC.yaml'])


def _build_tables(result: Json) -> str:
    from mudg_core.index.recall import Point
    from mudg_core.index.variants import VARIANTS

    parts = [""]
    if result["tried"]:
        lines = [
            (name, *(f"{100 * read:.2f} %" if read else "never" for read in tried[:2]), f"{tried[2]:.3f}")
            for name, tried in sorted(result["tried"].items(), key=lambda item: VARIANTS.index(item[0]))
        ]
        head = ("variant tried", "read for recall@1 of 0.9", "for recall@10 of 0.9", "vectors an image")
        parts.append(table_of(lines, head))
    parts.append(_table([Point.from_json(point) for point in result["recall"]["text queries"]]))
    if result["drift"]:
        parts.append(result["drift"]["words"])
    return "\n\n".join([*parts, f"plot: {result['plots']['recall']}"])


def _removed_now(store: ArtifactStore) -> set[int]:
    """Rows that the current version leaves out on request."""
    from mudg_core.index.version import history
    from tasks.index import removed_from

    versions = history(store)
    return set(removed_from(store, versions[0].ref)) if versions else set()


def _now_current(store: ArtifactStore, index: ArtifactRef, removed: set[int]) -> Output:
    """An older version may hold rows that were removed since, for a reason: nobody may miss that. Searches
    still leave out images that were taken down."""
    from mudg_core.corpus.takedowns import read_takedowns
    from mudg_core.encode.shard import METADATA
    from mudg_core.index.version import load_version
    from tasks.index import removed_from

    again, takedowns, note = removed - set(removed_from(store, index)), read_takedowns(store), ""
    if again and takedowns:
        files = (store.file(ref, METADATA) for ref in load_version(store, index).embeddings)
        again -= {row for file in files for row in takedowns.rows_in(file)}
    if back := sorted(again):
        some = " ".join(str(row) for row in back[:20]) + (" …" if len(back) > 20 else "")
        note = f"{len(back)} removed rows are in this version again; `mudg index remove {some}` removes them"
    text = f"current: {index}" + (f"\n{note}" if note else "")
    return Output({"current": str(index), "note": note}, text)


def _curve(
    store: ArtifactStore,
    settings: Settings,
    index: ArtifactRef,
    kind: str,
    costs: list[tuple[int, float]] | None = None,
) -> list[Point]:
    from mudg_core.index import recall
    from mudg_core.index.recall import own_rows, truth_of
    from mudg_core.index.training_data import Samples
    from mudg_core.index.version import load_version, open_searcher
    from tasks.coarse import merged_neighbors
    from tasks.index import removed_from

    version = load_version(store, index)
    searcher = open_searcher(store, version, image_queries=kind == "images")
    samples = Samples.read(store.folder(version.samples))
    truth = truth_of(merged_neighbors(store, version.neighbors), samples, kind, removed_from(store, index))
    how = settings.index.gain, settings.index.rerank, own_rows(samples, kind)
    return recall.curves(searcher, samples.of(kind), truth, costs or recall.costs(searcher), *how)


def _table(points: Sequence[Point]) -> str:
    from deployments.tables import RECALL, recall_line

    return table_of([recall_line(point) for point in points], RECALL)
