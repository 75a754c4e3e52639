"""What stays in a store, and why: artifacts, marked from the roots through everything that they were made
from, and what belongs to no artifact (half-written attempts, checkpoints, quarantine, expired leases, …)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mudg_core.errors import DataError
from mudg_core.settings import GcSettings
from mudg_core.storage import layout, pointers
from mudg_core.storage.gc.leases import Lease
from mudg_core.storage.gc.marks import Marks
from mudg_core.storage.gc.survey import Item, Orphan, Survey, moment
from mudg_core.storage.objects import Objects
from mudg_core.storage.pointers import Pointer

KINDS = {
    "report": "report_days",
    "scores": "report_days",
    "zero-shot": "report_days",
    "cache-scores": "report_days",
    "comparison": "report_days",
    "comparison-page": "report_days",
    "prompts": "report_days",
    "model": "model_days",
    "classifier": "model_days",
    "dataset": "dataset_days",
    "embedding-shard": "shard_days",
    "screened-shard": "shard_days",
    "downloaded-shard": "shard_days",
}
ORPHAN_TERMS = {
    "checkpoint": "checkpoint_days",
    "quarantine": "quarantine_days",
    "submission": "report_days",
    "refused spec": "report_days",
}
KEEP, WAIT, CONDEMN, DELETE = "keep", "wait", "condemn", "delete"
ACTIONS = (KEEP, WAIT, CONDEMN, DELETE)
PARENT = "a kept artifact was made from it"
IN_USE = "in use by a run"
SINCE = "newer than the start of an active run"
ASIDE = "quarantined, to be examined"
FOREIGN = "not written by mudg"


@dataclass(frozen=True)
class Verdict:
    """What becomes of an artifact, or of files (`paths`) that belong to none."""

    kind: str
    name: str
    action: str
    why: str
    size: int
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rules:
    """How long things stay, seen from one moment. `older_than` takes the place of all days."""

    settings: GcSettings
    now: datetime
    older_than: timedelta | None = None

    @property
    def grace(self) -> timedelta:
        return timedelta(hours=self.settings.grace_hours)

    def term(self, kind: str) -> timedelta | None:
        """How long a kind is kept (`report_days`); None: for good."""
        if self.older_than is not None:
            return self.older_than
        days: float | None = getattr(self.settings, kind)
        return None if days is None else timedelta(days=days)

    def over(self, kind: str, since: datetime) -> bool:
        term = self.term(kind)
        return term is not None and since + term <= self.now

    def within(self, kind: str) -> str:
        term = self.term(kind)
        return "kept forever" if term is None else f"within {term.total_seconds() / 86_400:g} days"

    @property
    def within_grace(self) -> str:
        return f"younger than {self.settings.grace_hours:g} h"

    def young(self, since: datetime | float) -> bool:
        """Within the grace period, or from a clock that is ahead."""
        if not isinstance(since, datetime):
            since = datetime.fromtimestamp(since, UTC)
        return since + self.grace > self.now


def read_pointers(objects: Objects) -> list[Pointer]:
    paths = filter(layout.is_own, objects.list(layout.POINTERS))
    names = [path.removeprefix(layout.POINTERS).removesuffix(".json") for path in paths]
    return [pointer for name in names if (pointer := pointers.read(objects, name))]


def live_leases(leases: Iterable[Lease], now: datetime) -> list[Lease]:
    return [lease for lease in leases if lease.expires > now]


def reasons_to_keep(
    items: Mapping[str, Item], named: Iterable[Pointer], leases: Iterable[Lease], marks: Marks, rules: Rules
) -> dict[str, str]:
    """Why each artifact that stays does so. Whatever an artifact was made from stays with it."""
    why: dict[str, str] = {}
    for reason, names in _roots(items, list(named), live_leases(leases, rules.now), marks, rules):
        for name in names:
            if name in items:
                why.setdefault(name, reason)
        with_ancestors(items, [name for name in names if name in items], why)
    return why


def with_ancestors(items: Mapping[str, Item], names: Iterable[str], why: dict[str, str]) -> None:
    """Adds everything that these were made from. What is in `why` with a reason of its own may still have
    ancestors that are not: all are looked at."""
    waiting, seen = list(names), set(names)
    while waiting:
        for parent in items[waiting.pop()].parents:
            if parent in items and parent not in seen:
                seen.add(parent)
                why.setdefault(parent, PARENT)
                waiting.append(parent)


def _roots(
    items: Mapping[str, Item], named: list[Pointer], leases: list[Lease], marks: Marks, rules: Rules
) -> Iterable[tuple[str, list[str]]]:
    for pointer in named:
        if pointer.ref.place not in items:
            raise DataError(
                what=f"pointer {pointer.name!r} names {pointer.ref}, which is missing or damaged: nobody can "
                "tell what it was made from, so nothing is collected",
                fix="go back to a whole version (`mudg index rollback`), or build it again",
            )
        yield f"pointer {pointer.name} refers to it", [pointer.ref.place]
    for pointer in named:
        yield "kept for rollback", _earlier(pointer, rules.settings.versions)
    yield IN_USE, [name for lease in leases for name in lease.keeps]
    begun = min((lease.started for lease in leases), default=rules.now)
    yield SINCE, [item.name for item in items.values() if item.created >= begun]
    yield rules.within_grace, [item.name for item in items.values() if rules.young(_last_wanted(item, marks))]
    by_reason: dict[str, list[str]] = {}
    for item in items.values():
        kind = KINDS.get(item.stage, "other_days")
        if not rules.over(kind, _last_wanted(item, marks)):
            by_reason.setdefault(rules.within(kind), []).append(item.name)
    yield from by_reason.items()


def _earlier(pointer: Pointer, versions: int) -> list[str]:
    """The last versions that a pointer named before and that nobody withdrew; of the corpus too, as it is
    small."""
    seen = [past.ref.place for past in reversed(pointer.history) if not past.withdrawn]
    return [name for name in dict.fromkeys(seen) if name != pointer.ref.place][:versions]


def _last_wanted(item: Item, marks: Marks) -> datetime:
    mark = marks.get(item.name)
    if mark is None or mark.state != "used" or mark.attempt != item.attempt:
        return item.created
    return max(item.created, moment(mark.since))


def judge_orphans(snapshot: Survey, leases: list[Lease], rules: Rules) -> list[Verdict]:
    """A live run may still be writing whatever is younger than itself."""
    begun = min((lease.started for lease in live_leases(leases, rules.now)), default=rules.now).timestamp()
    verdicts = []
    for kind, name, orphan, reason in _orphans(snapshot, rules):
        why = reason or (SINCE if orphan.modified >= begun else "")
        action = KEEP if why else DELETE
        verdicts.append(Verdict(kind, name, action, why or "abandoned", orphan.size, tuple(orphan.paths)))
    for path, orphan in snapshot.foreign.items():
        verdicts.append(Verdict("foreign", path, KEEP, FOREIGN, orphan.size))
    for lease in leases:
        why = "its run is active" if lease.expires > rules.now else "expired"
        action = KEEP if rules.young(lease.expires) else DELETE
        verdicts.append(Verdict("lease", lease.run, action, why, 0, (layout.lease(lease.run),)))
    return verdicts


def _orphans(snapshot: Survey, rules: Rules) -> Iterator[tuple[str, str, Orphan, str]]:
    """(kind, name, orphan, why it stays). What was set aside names files, and a manifest that cannot be read
    may. A checkpoint is of no use once the artifact is there."""
    aside = {"/".join(name.split("/")[:2]) for name in snapshot.orphans["quarantine"]} | snapshot.damaged
    for (place, attempt), orphan in snapshot.attempts.items():
        reason = ASIDE if place in aside else _young(orphan, rules)
        yield "half-written attempt", f"{place}/{attempt}", orphan, reason
    for kind, orphans in snapshot.orphans.items():
        for name, orphan in orphans.items():
            is_committed = kind == "checkpoint" and name in snapshot.items
            term = None if is_committed else ORPHAN_TERMS.get(kind)
            yield kind, name, orphan, _kept_for(term, orphan, rules)


def _kept_for(term: str | None, orphan: Orphan, rules: Rules) -> str:
    """Within its days, if there are any, or within the grace period."""
    if term and not rules.over(term, datetime.fromtimestamp(orphan.modified, UTC)):
        return rules.within(term)
    return _young(orphan, rules)


def _young(orphan: Orphan, rules: Rules) -> str:
    return rules.within_grace if rules.young(orphan.modified) else ""
