"""`mudg index …`: build, measure, tune, list, promote, go back, remove rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from deployments.tables import RECALL, recall_line
from flows.build_index import IndexBuild, build_index, check
from mudg.cli.output import settings_from, show, table_of
from mudg.cli.runs import Changes, watched
from mudg.execution import call
from mudg_core.corpus.takedowns import read_takedowns
from mudg_core.encode.shard import METADATA
from mudg_core.errors import DataError, InputError
from mudg_core.index import measure
from mudg_core.index.open_index import open_searcher, own_rows, truth_of, unknown_rows
from mudg_core.index.recall import At, Point, cheapest
from mudg_core.index.samples import Samples
from mudg_core.index.variants import VARIANTS
from mudg_core.index.version import current_version, history, load_version, promote, rollback
from mudg_core.report.charts import recall_curves
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactRef, ArtifactStore
from tasks.coarse import merged_neighbors
from tasks.index import removed_from
from tasks.results import counts
from tasks.run import Run

MOST_REMOVED = 100_000


def run_build(retrain: bool, as_json: bool, file: Path | None, changes: Changes) -> None:
    _build(retrain, (), as_json, file, changes)


def run_remove(rows: Sequence[int], as_json: bool, file: Path | None, changes: Changes) -> None:
    """A new version without these rows; only the parts that hold them are made again."""
    if not rows or min(rows) < 0 or len(rows) > MOST_REMOVED:
        raise InputError(
            what=f"{len(rows)} rows to remove: give between 1 and {MOST_REMOVED:,} row numbers from 0 up",
            fix="`mudg search --json` shows the rows of images",
        )
    store = ArtifactStore(settings_from(file, changes).storage)
    if unknown := unknown_rows(store, current_version(store), rows):
        raise InputError(
            what=f"rows {unknown[:10]} are not in the index",
            fix="`mudg search --json` shows the rows of images",
        )
    _build(False, rows, as_json, file, changes)


def _build(retrain: bool, removed: Sequence[int], as_json: bool, file: Path | None, changes: Changes) -> None:
    with watched(settings_from(file, changes)) as settings:
        built = call(build_index, settings, retrain, list(removed))
        store = ArtifactStore(settings.storage)
        result = described(store, built) | counts(built.records)
    show(result, _build_text(result), as_json)


def rebuilt_without(rows: Sequence[int], settings: Settings) -> str:
    """A new version without these rows, which becomes current."""
    with watched(settings) as ready:
        return str(call(build_index, ready, False, list(rows)).version.index)


def described(store: ArtifactStore, built: IndexBuild) -> Json:
    version = built.version
    choice = store.manifest(version.index).recipe.parents.get("choice")
    tried = store.manifest(choice).facts["read"] if isinstance(choice, ArtifactRef) else {}
    curve = json.loads(store.file(built.recall, "recall.json").read_text())
    result: Json = {"index": str(version.index), **store.manifest(version.index).facts, "tried": tried}
    plots = {name: str(store.file(built.recall, f"{name}.svg")) for name in ("recall", "objectives")}
    return result | {"recall": curve, "plots": plots, "note": built.note}


def _build_text(result: Json) -> str:
    sizes = f"{result['rows']:,} images in {result['cells']:,} cells"
    parts = [f"{result['index']}: {sizes}, {result['variant']}"]
    if result["tried"]:
        lines = [
            (name, *(f"{100 * read:.2f} %" if read else "never" for read in tried[:2]), f"{tried[2]:.3f}")
            for name, tried in sorted(result["tried"].items(), key=lambda item: VARIANTS.index(item[0]))
        ]
        head = ("variant tried", "read for recall@1 of 0.9", "for recall@10 of 0.9", "vectors an image")
        parts.append(table_of(lines, head))
    parts.append(_table([Point.from_json(point) for point in result["recall"]["text queries"]]))
    if drift := result["drift"]:
        parts.append(drift["words"])
    if result["note"]:
        parts.append(result["note"])
    parts.append(
        f"plot: {result['plots']['recall']}\n{result['computed']} computed, {result['cached']} cached"
    )
    return "\n\n".join(parts)


def run_list(as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    found = history(store)
    rows = []
    for item in found:
        state = "current" if item.current else "withdrawn" if item.withdrawn else ""
        try:
            facts = store.manifest(item.ref).facts
        except DataError:  # the history remembers more versions than garbage collection keeps
            facts, state = {"variant": "", "rows": None}, "deleted"
        rows.append((str(item.ref), item.when, facts["variant"], facts["rows"], state))
    body = [dict(zip(("index", "promoted", "variant", "rows", "state"), row, strict=True)) for row in rows]
    text = table_of(rows, ("index", "promoted", "variant", "images", ""))
    show({"versions": body}, text if rows else "no version was promoted yet", as_json)


def run_promote(name: str, force: bool, as_json: bool, file: Path | None, changes: Changes) -> None:
    """By the gate, which measures recall if it was not measured at these settings before; or by force."""
    settings = settings_from(file, changes)
    store = ArtifactStore(settings.storage)
    index = store.resolve(name)
    load_version(store, index)
    if not force:
        point = _curve(store, settings, index, "report", [(settings.index.probes, settings.index.mass)])[0]
        check(Run(settings), index, point)
    left_out = _left_out(store)
    promote(store, index)
    _show_current(store, index, left_out, as_json)


def run_rollback(as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    left_out = _left_out(store)
    _show_current(store, rollback(store), left_out, as_json)


def _left_out(store: ArtifactStore) -> set[int]:
    """Rows that the current version leaves out on request."""
    found = history(store)
    return set(removed_from(store, found[0].ref)) if found else set()


def _show_current(store: ArtifactStore, index: ArtifactRef, left_out: set[int], as_json: bool) -> None:
    """An older version may hold rows that were removed since, for a reason: nobody may miss that. Whoever
    searches it still leaves out what is forgotten."""
    again, forgotten, note = left_out - set(removed_from(store, index)), read_takedowns(store), ""
    if again and forgotten:
        known = (
            forgotten.rows_in(store.file(ref, METADATA)) for ref in load_version(store, index).embeddings
        )
        again -= {row for rows in known for row in rows}
    if back := sorted(again):
        some = " ".join(str(row) for row in back[:20]) + (" …" if len(back) > 20 else "")
        note = f"{len(back)} removed rows are in this version again; `mudg index remove {some}` removes them"
    text = f"current: {index}" + (f"\n{note}" if note else "")
    show({"current": str(index), "note": note}, text, as_json)


def run_recall(name: str | None, save: Path | None, as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    index = store.resolve(name) if name else current_version(store).index
    kinds = {"text queries": "report", "image queries": "images"}
    points = {words: _curve(store, settings, index, kind) for words, kind in kinds.items()}
    if save:
        save.write_text(recall_curves(points))
    body = {words: [point.to_json(timed=True) for point in found] for words, found in points.items()}
    text = "\n\n".join(f"{words}\n{_table(found)}" for words, found in points.items())
    show({"index": str(index), **body, "plot": str(save) if save else None}, text, as_json)


def run_tune(wanted: float, at: At, as_json: bool, settings: Settings) -> None:
    """Chosen on tuning queries, reported on others: what was chosen looks better than it is."""
    store = ArtifactStore(settings.storage)
    index = current_version(store).index
    best = cheapest(_curve(store, settings, index, "tuning"), wanted, at)
    if best is None:
        raise InputError(
            what=f"recall@{at} of {wanted:g} is not reached, whatever is read",
            where=str(index),
            fix="raise index.rerank, or build with a finer index.code",
        )
    report = _curve(store, settings, index, "report", [(best.probes, best.mass)])[0]
    flags = f"--set index.probes={best.probes} --set index.mass={best.mass:g}"
    body = {"probes": best.probes, "mass": best.mass, "tuning": best.to_json(), "report": report.to_json()}
    text = f"{flags}\n\non tuning queries, and on others\n{_table([best, report])}"
    show(body | {"flags": flags}, text, as_json)


def _curve(
    store: ArtifactStore,
    settings: Settings,
    index: ArtifactRef,
    kind: str,
    asked: list[tuple[int, float]] | None = None,
) -> list[Point]:
    version = load_version(store, index)
    searcher = open_searcher(store, version, image_queries=kind == "images")
    samples = Samples.read(store.folder(version.samples))
    truth = truth_of(merged_neighbors(store, version.neighbors), samples, kind, removed_from(store, index))
    how = settings.index.gain, settings.index.rerank, own_rows(samples, kind)
    return measure.curves(searcher, samples.of(kind), truth, asked or measure.costs(searcher), *how)


def _table(points: Sequence[Point]) -> str:
    return table_of([recall_line(point) for point in points], RECALL)
