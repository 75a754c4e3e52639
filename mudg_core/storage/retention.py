"""Which artifacts stay, and why: marking from the roots through everything that they were made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mudg_core.errors import DataError
from mudg_core.settings import GcSettings
from mudg_core.storage import layout, pointers
from mudg_core.storage.gc_marks import Marks, name_of
from mudg_core.storage.leases import Lease
from mudg_core.storage.objects import Objects
from mudg_core.storage.pointers import Pointer
from mudg_core.storage.survey import Item, moment

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
PARENT = "something kept was made from it"
IN_USE = "a run is using it"
SINCE = "made since the start of a run that goes on"


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


def kept(
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
        if name_of(pointer.ref) not in items:
            raise DataError(
                what=f"pointer {pointer.name!r} names {pointer.ref}, which is missing or damaged: nobody can "
                "tell what it was made from, so nothing is collected",
                fix="go back to a whole version (`mudg index rollback`), or build it again",
            )
        yield f"{pointer.name} names it", [name_of(pointer.ref)]
    for pointer in named:
        yield "kept to go back to", _earlier(pointer, rules.settings.versions)
    yield IN_USE, [name for lease in leases for name in lease.keeps]
    begun = min((lease.started for lease in leases), default=rules.now)
    yield SINCE, [item.name for item in items.values() if item.created >= begun]
    hours = f"younger than {rules.settings.grace_hours:g} h"
    yield hours, [item.name for item in items.values() if rules.young(_last_wanted(item, marks))]
    by_reason: dict[str, list[str]] = {}
    for item in items.values():
        kind = KINDS.get(item.stage, "other_days")
        if not rules.over(kind, _last_wanted(item, marks)):
            by_reason.setdefault(_within(rules.term(kind)), []).append(item.name)
    yield from by_reason.items()


def _earlier(pointer: Pointer, versions: int) -> list[str]:
    """The last versions that a pointer named before and that nobody withdrew; of the corpus too, as it is
    small."""
    seen = [name_of(past.ref) for past in reversed(pointer.history) if not past.withdrawn]
    return [name for name in dict.fromkeys(seen) if name != name_of(pointer.ref)][:versions]


def _last_wanted(item: Item, marks: Marks) -> datetime:
    mark = marks.get(item.name)
    if mark is None or mark.state != "used" or mark.attempt != item.attempt:
        return item.created
    return max(item.created, moment(mark.since))


def _within(term: timedelta | None) -> str:
    return "kept for good" if term is None else f"within {term.total_seconds() / 86_400:g} days"
