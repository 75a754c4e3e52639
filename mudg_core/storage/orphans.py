"""What lies in a store and belongs to no artifact: attempts and checkpoints of stages that never ended, what
was set aside, what was asked for long ago, probes, leases that have run out, and what is none of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from mudg_core.storage import layout
from mudg_core.storage.leases import Lease
from mudg_core.storage.retention import SINCE, Rules
from mudg_core.storage.survey import Orphan, Survey

ASIDE = "set aside, to be looked into"
FOREIGN = "not written by mudg"


@dataclass(frozen=True)
class OrphanVerdict:
    kind: str
    name: str
    why: str
    delete: bool
    size: int
    paths: tuple[str, ...]


def judge_orphans(found: Survey, leases: list[Lease], live: list[Lease], rules: Rules) -> list[OrphanVerdict]:
    """A live run may still be writing whatever is younger than itself."""
    begun = min((lease.started for lease in live), default=rules.now).timestamp()
    aside = {"/".join(name.split("/")[:2]) for name in found.quarantine}
    verdicts = [
        _one(
            "half-written attempt",
            f"{place}/{attempt}",
            orphan,
            _attempt(place, orphan, found, aside, rules),
            begun,
        )
        for (place, attempt), orphan in found.attempts.items()
    ]
    verdicts += [
        _one("checkpoint", name, orphan, _checkpoint(name, orphan, found, rules), begun)
        for name, orphan in found.checkpoints.items()
    ]
    verdicts += [
        _one("quarantine", name, orphan, _dated("quarantine_days", orphan, rules), begun)
        for name, orphan in found.quarantine.items()
    ]
    verdicts += [
        _one("probe", name, orphan, _young(orphan, rules), begun) for name, orphan in found.probes.items()
    ]
    told = {"submission": found.submissions, "refused spec": found.refused}
    verdicts += [
        _one(kind, name, orphan, _dated("report_days", orphan, rules), begun)
        for kind, orphans in told.items()
        for name, orphan in orphans.items()
    ]
    verdicts += [
        OrphanVerdict("foreign", path, FOREIGN, False, orphan.size, ())
        for path, orphan in found.foreign.items()
    ]
    return verdicts + list(_leases(leases, rules))


def _one(kind: str, name: str, orphan: Orphan, stays: str, begun: float) -> OrphanVerdict:
    if not stays and orphan.modified >= begun:
        stays = SINCE
    return OrphanVerdict(kind, name, stays or "left behind", not stays, orphan.size, tuple(orphan.paths))


def _attempt(place: str, orphan: Orphan, found: Survey, aside: set[str], rules: Rules) -> str:
    """What was set aside names files, and a manifest that cannot be read may."""
    return ASIDE if place in aside or place in found.damaged else _young(orphan, rules)


def _checkpoint(name: str, orphan: Orphan, found: Survey, rules: Rules) -> str:
    """Of no use once the artifact is there."""
    return _young(orphan, rules) if name in found.items else _dated("checkpoint_days", orphan, rules)


def _dated(kind: str, orphan: Orphan, rules: Rules) -> str:
    if rules.over(kind, datetime.fromtimestamp(orphan.modified, UTC)):
        return _young(orphan, rules)
    term = rules.term(kind)
    return "kept for good" if term is None else f"within {term.total_seconds() / 86_400:g} days"


def _young(orphan: Orphan, rules: Rules) -> str:
    return f"younger than {rules.settings.grace_hours:g} h" if rules.young(orphan.modified) else ""


def _leases(leases: list[Lease], rules: Rules) -> Iterator[OrphanVerdict]:
    for lease in leases:
        live = lease.expires > rules.now
        why = "its run goes on" if live else "run out"
        over = not live and not rules.young(lease.expires)
        yield OrphanVerdict("lease", lease.run, why, over, 0, (layout.lease(lease.run),))
