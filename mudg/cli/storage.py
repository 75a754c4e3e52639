"""`mudg gc`: what lies in the store, and what of it goes."""

from __future__ import annotations

from mudg.cli.output import console, show, table_of
from mudg.cli.units import age, size
from mudg_core.settings import Json, Settings
from mudg_core.storage import ArtifactStore
from mudg_core.storage.gc.collect import Collection, collect_garbage
from mudg_core.storage.gc.retention import ACTIONS, CONDEMN, DELETE, KEEP, WAIT

WORDS = {KEEP: "kept", WAIT: "condemned before", CONDEMN: "condemned now", DELETE: "deleted"}
WOULD = WORDS | {CONDEMN: "would be condemned", DELETE: "would be deleted"}


def run_gc(dry_run: bool, older_than: str | None, as_json: bool, settings: Settings) -> None:
    store = ArtifactStore(settings.storage)
    term = age(older_than) if older_than else None
    with console.status("looking at everything in the store …"):
        done = collect_garbage(store, settings.gc, dry_run=dry_run, older_than=term)
    show(described(done), _text(done, settings.gc.grace_hours), as_json)


def described(done: Collection) -> Json:
    fields = ("kind", "action", "why", "count", "bytes")
    names = {action: sorted(v.name for v in done.verdicts if v.action == action) for action in ACTIONS[1:]}
    lines = [dict(zip(fields, line, strict=True)) for line in done.lines()]
    return {"dry_run": done.dry_run, "lines": lines, "sums": done.sums(), **names}


def _text(done: Collection, grace: float) -> str:
    words = WOULD if done.dry_run else WORDS
    rows = [
        (kind, words[action], f"{count:,}", size(number), why)
        for kind, action, why, count, number in done.lines()
    ]
    if not rows:
        return "the store is empty"
    sums = done.sums()
    total = [
        f"{words[action]}: {sums[action]['count']:,}, {size(sums[action]['bytes'])}"
        for action in ACTIONS
        if sums[action]["count"]
    ]
    if sums[CONDEMN]["count"] or sums[WAIT]["count"]:
        total.append(f"a `mudg gc` {grace:g} h after it was condemned deletes what nobody wanted meanwhile")
    return "\n\n".join(
        [table_of(rows, ("kind", "", "number", "bytes", "why")), "\n".join(total)],
    )
