"""Fetch, filter, refill: from a selection plan to images that are really there and really fit.

Only selected images are fetched. One that is dead, unreadable or unlike its query costs its group one turn,
and the next of the group takes its place, until every group has its quota or no image is left. Which lines a
round fetches is for `refill_schedule.py` to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from mudg_core.corpus.decode import Refused, decode
from mudg_core.corpus.shard_reader import Ask
from mudg_core.dataset.refill_schedule import RefillSchedule, by_group, by_label
from mudg_core.errors import DataError
from mudg_core.index.exact import exact_cosines_by_row
from mudg_core.index.vectors import Bool, Float32, Int64
from mudg_core.settings import DatasetSettings

Embed = Callable[[list[Image.Image]], Float32]

CHOSEN = "chosen"
DEAD = "dead link"
UNREADABLE = "unreadable image"
UNLIKE = "unlike its query"
SPARE = "not needed"

UNKNOWN = ""
NO_ANSWER = "no answer"
BLOCK = 256  # images decoded at a time
ENOUGH = 1000  # tried images, after which a yield is judged before the end
MARGIN, MOST = 2.0, 16.0  # in fetching more than what is missing


@dataclass(frozen=True)
class FetchResult:
    """The plan with each image's outcome, what exactly was wrong with it and its fresh cosine, the bytes of
    the chosen ones by row, and what became of all that were fetched, needed or not."""

    table: pa.Table
    images: dict[int, bytes]
    tried: int
    dead: dict[str, int]
    rounds: int

    @property
    def alive(self) -> int:
        return self.tried - sum(self.dead.values())

    def chosen(self) -> pa.Table:
        return self.table.filter(pc.equal(self.table.column("outcome"), CHOSEN))


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
) -> FetchResult:
    """Works through the plan in rounds; `references[i]` is the text feature that line i is compared with.

    `ask` fetches rows. `eager`: a round is dear, so fetch more than is missing once some have failed. A
    failure for a reason in `again` gets a second chance where nothing else is left. Not `required`: to find
    few images, or none, is an answer too. `progress` receives the share of all lines fetched so far that are
    filtered, where fetching is half of it, and `count` how many lines these are.
    """
    lines = _Lines(plan, references, ask, embed, settings, required, progress, count)
    schedule = by_group(plan)
    lines.fill(schedule, eager)
    reached = schedule.reached(lines.good)
    if settings.refill == "label":
        schedule = by_label(plan, schedule.chosen(lines.good))
        lines.fill(schedule, eager)
    if lines.retry(schedule.short(lines.good), again):
        lines.fill(schedule, eager)
    lines.check_yield(enough=1)
    return lines.result(schedule.chosen(lines.good), reached | schedule.reached(lines.good))


@dataclass
class _Lines:
    """What is known so far of each line of the plan."""

    plan: pa.Table
    references: Float32
    ask: Ask
    embed: Embed
    settings: DatasetSettings
    required: bool
    progress: Callable[[float], None]
    count: Callable[[int], None]

    def __post_init__(self) -> None:
        self.rows: Int64 = self.plan.column("row").to_numpy()
        self.outcome = np.full(self.plan.num_rows, UNKNOWN, dtype=object)
        self.detail = np.full(self.plan.num_rows, None, dtype=object)
        self.cosine = np.full(self.plan.num_rows, np.nan, dtype=np.float32)
        self.images: dict[int, bytes] = {}
        self.rounds = 0

    @property
    def known(self) -> Bool:
        return np.asarray(self.outcome != UNKNOWN, bool)

    @property
    def good(self) -> Bool:
        return np.asarray(self.outcome == CHOSEN, bool)

    def fill(self, schedule: RefillSchedule, eager: bool) -> None:
        """Fetches and filters in rounds, until every quota is filled or no line is left."""
        while len(lines := schedule.next(self.known, self.good, self._surplus() if eager else 0.0)):
            self._fetch(lines)
            self.check_yield(enough=ENOUGH)

    def _surplus(self) -> float:
        """More with every round, and in proportion to the share that fails: a few rounds are enough then."""
        tried = int(self.known.sum())
        failed = (tried - int(self.good.sum())) / (tried + 1)
        return min(MOST, MARGIN * self.rounds * failed / (1 - failed))

    def _fetch(self, lines: Int64) -> None:
        self.rounds += 1
        known = int(self.known.sum())
        self.count(known + len(lines))
        self.progress(known / (known + len(lines)))
        images, reasons = self.ask([int(row) for row in self.rows[lines]])
        for start in range(0, len(lines), BLOCK):
            self.progress((known + (len(lines) + start) / 2) / (known + len(lines)))
            block = lines[start : start + BLOCK].tolist()
            self._filter(self._decode(block, images, reasons), images)

    def _decode(
        self, lines: list[int], images: dict[int, bytes], reasons: dict[int, str]
    ) -> dict[int, Image.Image]:
        """The pictures of a block of lines; the others are dead or unreadable."""
        pictures: dict[int, Image.Image] = {}
        for line in lines:
            row = int(self.rows[line])
            if row not in images:
                self.outcome[line], self.detail[line] = DEAD, reasons.get(row, NO_ANSWER)
                continue
            try:
                pictures[line] = decode(images[row])
            except Refused as refused:
                self.outcome[line], self.detail[line] = UNREADABLE, refused.reason
        return pictures

    def _filter(self, pictures: dict[int, Image.Image], images: dict[int, bytes]) -> None:
        """Keeps pictures with at least `dataset.min_cosine` (0.25 in the paper) to their text."""
        if not pictures:
            return
        fresh = self.embed(list(pictures.values()))
        cosines = exact_cosines_by_row(fresh, self.references[list(pictures)])
        for line, cosine in zip(pictures, cosines.tolist(), strict=True):
            self.cosine[line] = cosine
            self.outcome[line] = CHOSEN if cosine >= self.settings.min_cosine else UNLIKE
            if self.outcome[line] == CHOSEN:
                self.images[int(self.rows[line])] = images[int(self.rows[line])]

    def retry(self, lines: Bool, reasons: Collection[str]) -> bool:
        """Makes such of these lines unknown again as have failed for one of these reasons."""
        passing = lines & np.isin(self.detail.astype(str), list(reasons))
        self.outcome[passing], self.detail[passing] = UNKNOWN, None
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

    def result(self, chosen: Bool, reached: Bool) -> FetchResult:
        """Of lines that were fetched and never had their turn, the table says nothing."""
        if self.required and not chosen.any():
            reasons = self._dead() + Counter({UNLIKE: int((self.outcome == UNLIKE).sum())})
            raise DataError(
                what=f"none of {len(self.rows)} candidate images could be used: {_counts(reasons)}",
                fix="check that the corpus is reachable, or lower dataset.min_cosine",
            )
        shown = chosen | (reached & ~self.good)
        outcome = pa.array(np.where(shown, self.outcome, SPARE).tolist(), pa.string())
        cosine = pa.array(np.where(shown, self.cosine, np.float32(np.nan)))
        table = self.plan.append_column("outcome", outcome)
        table = table.append_column("detail", pa.array(self.detail, pa.string(), mask=~shown))
        table = table.append_column("fresh_cosine", cosine)
        images = {row: self.images[row] for row in self.rows[chosen].tolist()}
        return FetchResult(
            table, images, int(self.known.sum()), dict(sorted(self._dead().items())), self.rounds
        )

    def _dead(self) -> Counter[str]:
        return Counter(detail for detail in self.detail.tolist() if detail is not None)


def _counts(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.most_common(8))
