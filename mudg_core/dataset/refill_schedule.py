"""Refill: which lines of a plan to fetch next, until every quota is filled or no line is left.

A line that is not known yet counts as good until it was tried, so a round fetches those, and only those, that
would be chosen if all went well. The choice is the first good lines in order, whatever else was fetched
beside them: fetching more saves rounds and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from mudg_core.index.vectors import Bool, Int64


@dataclass(frozen=True)
class RefillSchedule:
    """Lines in the order in which they get their chance, one party (a group, or a label) after the other.

    `party` and `need` are for each place in the order: its party's number from 0, and how many it needs.
    """

    order: Int64
    party: Int64
    need: Int64

    def next(self, known: Bool, good: Bool, surplus: float = 0.0) -> Int64:
        """Lines to fetch: what parties miss, and `surplus` times as many on top."""
        known, good = known[self.order], good[self.order]
        before = self._before(good | ~known)
        missing = ~known & (before < self.need)
        counts = np.bincount(self.party[missing], minlength=int(self.party.max(initial=-1)) + 1)[self.party]
        lines: Int64 = self.order[~known & (before < self.need + np.ceil(surplus * counts))]
        return lines

    def chosen(self, good: Bool) -> Bool:
        """For each line of the plan: whether it is among the first good ones."""
        return self._by_line(good[self.order] & (self._before(good[self.order]) < self.need))

    def reached(self, good: Bool) -> Bool:
        """Whether it had its turn, as there were places left."""
        return self._by_line(self._before(good[self.order]) < self.need)

    def short(self, good: Bool) -> Bool:
        """Whether its party misses some though all its lines had their turn."""
        filled = np.bincount(self.party, weights=good[self.order])[self.party]
        return self._by_line(filled < self.need)

    def _before(self, flags: Bool) -> Int64:
        """How many flagged lines of the same party come before each."""
        counts: Int64 = np.cumsum(flags) - flags
        starts = np.searchsorted(self.party, self.party)
        return counts - counts[starts]

    def _by_line(self, flags: Bool) -> Bool:
        lines = np.zeros(len(flags), dtype=bool)
        lines[self.order] = flags
        return lines


def by_group(plan: pa.Table) -> RefillSchedule:
    """Every group on its own."""
    group, quota, turn = (plan.column(name).to_numpy() for name in ("group", "quota", "turn"))
    return _schedule(np.lexsort((turn, group)), group, quota)


def by_label(plan: pa.Table, chosen: Bool) -> RefillSchedule:
    """What is chosen stays; after it the others of the label, whatever their group, first turns first."""
    label, group, quota, turn = (plan.column(n).to_numpy() for n in ("label", "group", "quota", "turn"))
    _, first = np.unique(group, return_index=True)
    quotas = np.bincount(label[first], weights=quota[first]) if len(label) else np.zeros(0)
    return _schedule(np.lexsort((group, turn, ~chosen, label)), label, quotas.astype(np.int64)[label])


def _schedule(order: Int64, party: Int64, need: Int64) -> RefillSchedule:
    return RefillSchedule(order, np.unique(party[order], return_inverse=True)[1], need[order])
