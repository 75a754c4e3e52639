"""Garbage collection: mark what is wanted, condemn the rest, and delete it a grace period later.

The protocol. A collector

1. reads the marks (`gc/condemned.json`), then the leases, the pointers and all manifests, in this order;
2. keeps what a pointer names (and the last versions before it), what a live lease names, what was made since
   the oldest live lease began, what is younger than the grace period or within the retention of its kind, and
   everything that any of these was made from;
3. condemns the rest. What was condemned a grace period ago and is still not wanted becomes *dying*, unless
   something that stays a little longer was made from it. All marks are written by one compare-and-swap on
   what was read in step 1; if anybody else wrote meanwhile, it starts again;
4. deletes what is dying, children before parents: first the manifest, so that nothing half deleted is ever
   found, then the files; then its mark.

Why no run loses what it uses. A run that finds an artifact looks at its mark, no older than a minute. If it
was not condemned, it cannot be dying before a grace period is over, and by then the run's lease names it
(leases are renewed far more often than that). If it was condemned, the run makes that *used* by a
compare-and-swap: either that comes first, and the collector's own write fails and it starts again, or the
collector's comes first, and the run sees *dying* and makes the artifact anew, under another attempt, which a
collector leaves alone. Moving a pointer does the same.

Killed anywhere, a collector has lost nothing: a dying artifact is deleted by the next one (or by whoever
finds it), and files without a manifest are half-written attempts to it, which go once they are old. Clocks of
collectors and runs have to agree to within a fraction of the grace period. A reader without a run (a
notebook, an export) has no lease, and may get an error that something is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from mudg_core.errors import ChecksumError, ConflictError
from mudg_core.settings import GcSettings, Json
from mudg_core.storage.gc.leases import read_leases
from mudg_core.storage.gc.marks import TRIES, GcMarks, Mark, Marks
from mudg_core.storage.gc.retention import (
    ACTIONS,
    CONDEMN,
    DELETE,
    KEEP,
    PARENT,
    WAIT,
    Rules,
    Verdict,
    judge_orphans,
    read_pointers,
    reasons_to_keep,
    with_ancestors,
)
from mudg_core.storage.gc.survey import Item, moment, read_manifest, survey
from mudg_core.storage.store import ArtifactStore

UNREFERENCED = "unreferenced, and past its retention"


@dataclass(frozen=True)
class Plan:
    """`marks` are those to write, `etag` is of those that were read."""

    verdicts: list[Verdict]
    marks: Marks
    before: Marks
    etag: str | None
    dying: list[str]
    orphans: list[Verdict]


@dataclass(frozen=True)
class Collection:
    """What was done, or would have been."""

    verdicts: list[Verdict]
    dry_run: bool

    def lines(self) -> list[tuple[str, str, str, int, int]]:
        """(kind, action, why, how many, bytes), what goes first."""
        sums: dict[tuple[str, str, str], list[int]] = {}
        for verdict in self.verdicts:
            line = sums.setdefault((verdict.kind, verdict.action, verdict.why), [0, 0])
            line[0] += 1
            line[1] += verdict.size
        order = sorted(sums, key=lambda key: (-ACTIONS.index(key[1]), key))
        return [(*key, *sums[key]) for key in order]  # type: ignore[misc]

    def sums(self) -> dict[str, Json]:
        """By action: how many, and bytes."""
        chosen = {action: [v for v in self.verdicts if v.action == action] for action in ACTIONS}
        return {action: {"count": len(v), "bytes": sum(x.size for x in v)} for action, v in chosen.items()}


def collect_garbage(
    store: ArtifactStore,
    settings: GcSettings,
    *,
    dry_run: bool = False,
    older_than: timedelta | None = None,
    now: datetime | None = None,
) -> Collection:
    """Deletes what was condemned long enough ago, and condemns what nobody wants now. `older_than` takes the
    place of the days in the settings; pointers, leases and the grace period hold all the same."""
    rules = Rules(settings, now or datetime.now(UTC), older_than)
    gc_marks = GcMarks(store.objects)
    for _ in range(TRIES):
        plan = make_plan(store, gc_marks, rules)
        if dry_run:
            return Collection(plan.verdicts, dry_run=True)
        try:
            if plan.marks != plan.before:
                gc_marks.write(plan.marks, plan.etag)
        except ConflictError:
            continue  # a run has taken something back, or another collector was faster
        sweep(store, plan)
        gc_marks.change(partial(_without, plan))
        return Collection(plan.verdicts, dry_run=False)
    raise ConflictError(what="other writers change the store all the time", where=store.url, fix="run again")


def make_plan(store: ArtifactStore, gc_marks: GcMarks, rules: Rules) -> Plan:
    before, etag = gc_marks.read()
    leases = read_leases(store.objects)
    named = read_pointers(store.objects)
    snapshot = survey(store.objects)
    why = reasons_to_keep(snapshot.items, named, leases, before, rules)
    dying = _dying(snapshot.items, why, before, rules)
    marks = _marks(snapshot.items, why, before, dying, rules)
    orphans = judge_orphans(snapshot, leases, rules)
    verdicts = [_verdict(snapshot.items, name, why, before, marks, rules) for name in snapshot.items]
    return Plan(verdicts + orphans, marks, before, etag, _children_first(snapshot.items, dying), orphans)


def sweep(store: ArtifactStore, plan: Plan) -> None:
    """Manifest first, then files; only of the attempt that was condemned."""
    for name in plan.dying:
        with suppress(ChecksumError):  # damaged since: the next reader sets it aside
            manifest = read_manifest(store.objects, name)
            if manifest is None or manifest.circumstances.attempt != plan.marks[name].attempt:
                continue
            store.withdraw(manifest)
            for entry in manifest.files:
                store.objects.delete(manifest.path(entry.name))
    for orphan in plan.orphans:
        for path in orphan.paths if orphan.action == DELETE else ():
            store.objects.delete(path)


def _dying(items: Mapping[str, Item], why: dict[str, str], before: Marks, rules: Rules) -> set[str]:
    """Condemned for a whole grace period and not wanted; but not what something was made from that stays."""
    ripe = {name for name in items if name not in why and _ripe(items, name, before, rules)}
    needed: dict[str, str] = {}
    with_ancestors(items, [name for name in items if name not in ripe], needed)
    return ripe - needed.keys()


def _ripe(items: Mapping[str, Item], name: str, before: Marks, rules: Rules) -> bool:
    mark = before.get(name)
    if mark is None or mark.attempt != items[name].attempt:
        return False
    return mark.state == "dying" or (mark.state == "condemned" and not rules.young(moment(mark.since)))


def _marks(
    items: Mapping[str, Item], why: dict[str, str], before: Marks, dying: set[str], rules: Rules
) -> Marks:
    """Marks of what is gone, or wanted again, are dropped; when it was used stays known."""
    marks: Marks = {}
    for name, item in items.items():
        mark = before.get(name)
        mine = mark if mark and mark.attempt == item.attempt else None
        if name in dying and mine:
            marks[name] = mine.model_copy(update={"state": "dying"})
        elif name not in why:
            waiting = mine if mine and mine.state == "condemned" else None
            since = rules.now.isoformat(timespec="seconds")
            marks[name] = waiting or Mark(attempt=item.attempt, state="condemned", since=since)
        elif mine and mine.state == "used":
            marks[name] = mine
    return marks


def _verdict(
    items: Mapping[str, Item], name: str, why: dict[str, str], before: Marks, marks: Marks, rules: Rules
) -> Verdict:
    item = items[name]
    if name in why:
        return Verdict(item.stage, name, KEEP, why[name], item.size)
    if marks[name].state == "dying":
        return Verdict(item.stage, name, DELETE, UNREFERENCED, item.size)
    if before.get(name) != marks[name]:
        return Verdict(item.stage, name, CONDEMN, UNREFERENCED, item.size)
    ripe = not rules.young(moment(marks[name].since))
    return Verdict(
        item.stage, name, WAIT, PARENT if ripe else "marked for deletion, in its grace period", item.size
    )


def _without(plan: Plan, marks: Marks) -> Marks:
    deleted = {name: plan.marks[name] for name in plan.dying}
    return {name: mark for name, mark in marks.items() if deleted.get(name) != mark}


def _children_first(items: Mapping[str, Item], names: Iterable[str]) -> list[str]:
    """Depth first from the parents' side, turned round: whatever was made of something comes before it."""
    order: dict[str, None] = {}
    for start in sorted(names):
        stack = [(start, False)]
        while stack:
            name, done = stack.pop()
            if done:
                order[name] = None
            elif name in names and name not in order:
                stack.append((name, True))
                stack += [(parent, False) for parent in items[name].parents]
    return list(reversed(order))
