"""What lies in a store and belongs to no artifact: attempts and checkpoints of stages that never ended, what
was set aside, what was asked for long ago, probes, leases that have run out, and what is none of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from mudg_core.storage import layout
from mudg_core.storage.leases import Lease
from mudg_core.storage.retention import SINCE, Rules
from mudg_core.storage.survey import Stray, Survey

ASIDE = "set aside, to be looked into"
FOREIGN = "not written by mudg"


@dataclass(frozen=True)
class StrayVerdict:
    kind: str
    name: str
    why: str
    delete: bool
    size: int
    paths: tuple[str, ...]


def judge_strays(found: Survey, leases: list[Lease], live: list[Lease], rules: Rules) -> list[StrayVerdict]:
    """A live run may still be writing whatever is younger than itself."""
    begun = min((lease.started for lease in live), default=rules.now).timestamp()
    aside = {"/".join(name.split("/")[:2]) for name in found.quarantine}
    verdicts = [
        _one(
            "half-written attempt",
            f"{place}/{attempt}",
            stray,
            _attempt(place, stray, found, aside, rules),
            begun,
        )
        for (place, attempt), stray in found.attempts.items()
    ]
    verdicts += [
        _one("checkpoint", name, stray, _checkpoint(name, stray, found, rules), begun)
        for name, stray in found.checkpoints.items()
    ]
    verdicts += [
        _one("quarantine", name, stray, _dated("quarantine_days", stray, rules), begun)
        for name, stray in found.quarantine.items()
    ]
    verdicts += [
        _one("probe", name, stray, _young(stray, rules), begun) for name, stray in found.probes.items()
    ]
    told = {"submission": found.submissions, "refused spec": found.refused}
    verdicts += [
        _one(kind, name, stray, _dated("report_days", stray, rules), begun)
        for kind, strays in told.items()
        for name, stray in strays.items()
    ]
    verdicts += [
        StrayVerdict("foreign", path, FOREIGN, False, stray.size, ()) for path, stray in found.foreign.items()
    ]
    return verdicts + list(_leases(leases, rules))


def _one(kind: str, name: str, stray: Stray, stays: str, begun: float) -> StrayVerdict:
    if not stays and stray.modified >= begun:
        stays = SINCE
    return StrayVerdict(kind, name, stays or "left behind", not stays, stray.size, tuple(stray.paths))


def _attempt(place: str, stray: Stray, found: Survey, aside: set[str], rules: Rules) -> str:
    """What was set aside names files, and a manifest that cannot be read may."""
    return ASIDE if place in aside or place in found.damaged else _young(stray, rules)


def _checkpoint(name: str, stray: Stray, found: Survey, rules: Rules) -> str:
    """Of no use once the artifact is there."""
    return _young(stray, rules) if name in found.items else _dated("checkpoint_days", stray, rules)


def _dated(kind: str, stray: Stray, rules: Rules) -> str:
    if rules.over(kind, datetime.fromtimestamp(stray.modified, UTC)):
        return _young(stray, rules)
    term = rules.term(kind)
    return "kept for good" if term is None else f"within {term.total_seconds() / 86_400:g} days"


def _young(stray: Stray, rules: Rules) -> str:
    return f"younger than {rules.settings.grace_hours:g} h" if rules.young(stray.modified) else ""


def _leases(leases: list[Lease], rules: Rules) -> Iterator[StrayVerdict]:
    for lease in leases:
        live = lease.expires > rules.now
        why = "its run goes on" if live else "run out"
        over = not live and not rules.young(lease.expires)
        yield StrayVerdict("lease", lease.run, why, over, 0, (layout.lease(lease.run),))
