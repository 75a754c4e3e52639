"""Fetch, filter, refill: from a selection plan to images that are really there and really fit.

Only selected images are fetched. One that is dead, unreadable or unlike its query costs its group one turn,
and the next of the group takes its place, until every group has its quota or no one left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from mudg_core.corpus.decode import Refused, decode
from mudg_core.corpus.shard_reader import Ask
from mudg_core.dataset.refill_schedule import Bool, Int64, RefillSchedule, by_group, by_label
from mudg_core.errors import DataError
from mudg_core.index.exact import exact_cosines_by_row
from mudg_core.settings import DatasetSettings

Float32 = NDArray[np.float32]
Embed = Callable[[list[Image.Image]], Float32]

DEAD = "dead link"
UNREADABLE = "unreadable image"
UNLIKE = "unlike its query"
CHOSEN = "chosen"
SPARE = "not needed"

UNKNOWN = ""
NO_ANSWER = "no answer"
BLOCK = 256  # images decoded at a time
ENOUGH = 1000  # tried images, after which a yield is judged before the end
MARGIN, MOST = 2.0, 16.0  # in asking for more than what is missing


@dataclass(frozen=True)
class Filled:
    """The plan with each image's outcome, what exactly was wrong with it and its fresh cosine, the bytes of
    the chosen ones by row, and what became of all that were asked for, needed or not."""

    table: pa.Table
    images: dict[int, bytes]
    tried: int
    dead: dict[str, int]
    rounds: int

    @property
    def alive(self) -> int:
        return self.tried - sum(self.dead.values())

    def chosen(self) -> pa.Table:
        return self.table.filter(
            pa.array(self.table.column("outcome").to_numpy(zero_copy_only=False) == CHOSEN)
        )


def fetch_filter_refill(
    plan: pa.Table,
    references: Float32,
    ask: Ask,
    embed: Embed,
    settings: DatasetSettings,
    *,
    eager: bool = False,
    again: Collection[str] = (),
    required: bool = True,
    progress: Callable[[float], None] = lambda share: None,
    count: Callable[[int], None] = lambda images: None,
) -> Filled:
    """Works through the plan in rounds; `references[i]` is the text feature that line i is compared with.

    `eager`: a round is dear, so ask for more than is missing once some have failed. A failure for a reason in
    `again` gets a second chance where there is nobody else left. Not `required`: to find few images, or none,
    is an answer too. `progress` is told the share of all lines asked for so far that are judged, where having
    asked is half of it, and `count` how many lines these are.
    """
    tried = _Tried(plan, references, ask, embed, settings, required, progress, count)
    turns = by_group(plan)
    tried.work_through(turns, eager)
    reached = turns.reached(tried.good)
    if settings.refill == "label":
        turns = by_label(plan, turns.chosen(tried.good))
        tried.work_through(turns, eager)
    if tried.forget(turns.short(tried.good), again):
        tried.work_through(turns, eager)
    tried.check_yield(enough=1)
    return tried.result(turns.chosen(tried.good), reached | turns.reached(tried.good))


class _Tried:
    """What is known of each line of a plan so far."""

    def __init__(
        self,
        plan: pa.Table,
        references: Float32,
        ask: Ask,
        embed: Embed,
        settings: DatasetSettings,
        required: bool,
        progress: Callable[[float], None],
        count: Callable[[int], None],
    ) -> None:
        self.plan, self.references, self.settings, self.required = plan, references, settings, required
        self.ask, self.embed, self.progress, self.count = ask, embed, progress, count
        self.rows: Int64 = plan.column("row").to_numpy()
        self.verdict = np.full(plan.num_rows, UNKNOWN, dtype=object)
        self.detail = np.full(plan.num_rows, None, dtype=object)
        self.cosine = np.full(plan.num_rows, np.nan, dtype=np.float32)
        self.images: dict[int, bytes] = {}
        self.rounds = 0

    @property
    def known(self) -> Bool:
        return np.asarray(self.verdict != UNKNOWN, bool)

    @property
    def good(self) -> Bool:
        return np.asarray(self.verdict == CHOSEN, bool)

    def work_through(self, turns: RefillSchedule, eager: bool) -> None:
        while len(lines := turns.next(self.known, self.good, self._surplus() if eager else 0.0)):
            self._ask(lines)
            self.check_yield(enough=ENOUGH)

    def forget(self, lines: Bool, reasons: Collection[str]) -> bool:
        """Lets such of these lines be asked again as have failed for one of these reasons."""
        passing = lines & np.isin(self.detail.astype(str), list(reasons))
        self.verdict[passing], self.detail[passing] = UNKNOWN, None
        return bool(passing.any())

    def check_yield(self, enough: int) -> None:
        """Links that are all dead are a fault of the machine's network or of the pool, and not of a class."""
        tried, dead = int(self.known.sum()), self._dead()
        alive = tried - dead.total()
        if not self.required or tried < enough or alive >= self.settings.min_yield * tried:
            return
        raise DataError(
            what=f"{alive} of {tried} images that were tried could be fetched and read, "
            f"fewer than {self.settings.min_yield:.0%}: {_counts(dead)}",
            fix="see that this machine reaches the corpus and the web; if the pool is merely old, "
            "lower dataset.min_yield",
        )

    def result(self, chosen: Bool, reached: Bool) -> Filled:
        """Of lines that were asked for and never had their turn, the table says nothing."""
        if self.required and not chosen.any():
            reasons = self._dead() + Counter({UNLIKE: int((self.verdict == UNLIKE).sum())})
            raise DataError(
                what=f"none of {len(self.rows)} candidate images could be used: {_counts(reasons)}",
                fix="check that the corpus is reachable, or lower dataset.min_cosine",
            )
        told = chosen | (reached & ~self.good)
        table = self.plan
        for name, values in {
            "outcome": pa.array(np.where(told, self.verdict, SPARE).tolist(), pa.string()),
            "detail": pa.array(self.detail, pa.string(), mask=~told),
            "fresh_cosine": pa.array(np.where(told, self.cosine, np.float32(np.nan))),
        }.items():
            table = table.append_column(name, values)
        rows = self.rows[chosen].tolist()
        images = {row: self.images[row] for row in rows}
        return Filled(table, images, int(self.known.sum()), dict(sorted(self._dead().items())), self.rounds)

    def _surplus(self) -> float:
        """More with every round, and in proportion to the share that fails: a few rounds are enough then."""
        tried = int(self.known.sum())
        failed = (tried - int(self.good.sum())) / (tried + 1)
        return min(MOST, MARGIN * self.rounds * failed / (1 - failed))

    def _dead(self) -> Counter[str]:
        return Counter(detail for detail in self.detail.tolist() if detail is not None)

    def _ask(self, lines: Int64) -> None:
        self.rounds += 1
        known = int(self.known.sum())
        self.count(known + len(lines))
        self.progress(known / (known + len(lines)))
        images, reasons = self.ask([int(row) for row in self.rows[lines]])
        for start in range(0, len(lines), BLOCK):
            self.progress((known + (len(lines) + start) / 2) / (known + len(lines)))
            self._judge(lines[start : start + BLOCK].tolist(), images, reasons)

    def _judge(self, lines: list[int], images: dict[int, bytes], reasons: dict[int, str]) -> None:
        """The verdict on each image of a block."""
        decoded: dict[int, Image.Image] = {}
        for line in lines:
            row = int(self.rows[line])
            if row not in images:
                self.verdict[line], self.detail[line] = DEAD, reasons.get(row, NO_ANSWER)
                continue
            try:
                decoded[line] = decode(images[row])
            except Refused as refused:
                self.verdict[line], self.detail[line] = UNREADABLE, refused.reason
        if not decoded:
            return
        fresh = self.embed(list(decoded.values()))
        cosines = exact_cosines_by_row(fresh, self.references[list(decoded)])
        for line, cosine in zip(decoded, cosines.tolist(), strict=True):
            self.cosine[line] = cosine
            self.verdict[line] = CHOSEN if cosine >= self.settings.min_cosine else UNLIKE
            if self.verdict[line] == CHOSEN:
                self.images[int(self.rows[line])] = images[int(self.rows[line])]


def _counts(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.most_common(8))
