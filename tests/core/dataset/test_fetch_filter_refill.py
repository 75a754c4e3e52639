"""Fetch, filter, refill: with a web of dead links, torn files and pictures of something else."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import mudg_core.dataset.fetch_filter_refill as module
from mudg_core.corpus.shard_reader import Answer
from mudg_core.dataset.fetch_filter_refill import (
    CHOSEN,
    DEAD,
    SPARE,
    UNLIKE,
    UNREADABLE,
    FetchResult,
    fetch_filter_refill,
)
from mudg_core.dataset.training_set import PROVENANCE, read_training_set, write_training_set
from mudg_core.errors import DataError
from mudg_core.index.vectors import Float32
from mudg_core.settings import DatasetSettings

LIKE, OTHER = 200, 50  # grey levels
LOST, LATE = "HTTP 404", "timed out"


def png(level: int) -> bytes:
    stored = io.BytesIO()
    Image.new("RGB", (4, 4), (level, level, level)).save(stored, "PNG")
    return stored.getvalue()


def embed(images: list[Image.Image]) -> Float32:
    """A bright picture is like every query, a dark one is like none."""
    likes = [image.getpixel((0, 0))[0] / 255 for image in images]  # type: ignore[index]
    return np.array([[like, np.sqrt(1 - like**2)] for like in likes], np.float32)


def plan_of(groups: Sequence[tuple[int, int]]) -> pa.Table:
    """Groups given as (members, quota); rows are 100 + line, shuffled so that turns are not line numbers."""
    lines = [
        {"label": number % 3, "group": number, "quota": quota, "turn": turn}
        for number, (members, quota) in enumerate(groups)
        for turn in range(members)
    ]
    order = np.random.default_rng(0).permutation(len(lines)).tolist()
    return pa.Table.from_pylist([lines[i] | {"row": 100 + n} for n, i in enumerate(order)])


class Web:
    """What each row's link gives, and what was asked for in each round. A row in `passing` fails once."""

    def __init__(self, content: dict[int, bytes | None], passing: Collection[int] = ()) -> None:
        self.content, self.passing = content, set(passing)
        self.rounds: list[list[int]] = []

    def __call__(self, rows: Sequence[int]) -> Answer:
        self.rounds.append(list(rows))
        late = self.passing.intersection(rows)
        self.passing -= late
        there = {row: data for row in rows if (data := self.content.get(row)) is not None and row not in late}
        return Answer(there, {row: LATE if row in late else LOST for row in rows if row not in there})

    @property
    def asked(self) -> list[int]:
        return [row for rows in self.rounds for row in rows]


def row_at(plan: pa.Table, group: int, turn: int) -> int:
    return next(
        int(line["row"]) for line in plan.to_pylist() if (line["group"], line["turn"]) == (group, turn)
    )


def run(plan: pa.Table, web: Web, refill: str = "cluster", min_yield: float = 0, **how: Any) -> FetchResult:
    references = np.tile(np.array([1, 0], np.float32), (plan.num_rows, 1))
    settings = DatasetSettings.model_validate({"min_cosine": 0.5, "refill": refill, "min_yield": min_yield})
    return fetch_filter_refill(plan, references, web, embed, settings, **how)


def outcomes(filled: FetchResult) -> dict[int, str]:
    return {line["row"]: line["outcome"] for line in filled.table.to_pylist()}


def test_what_is_done_is_a_share_of_all_that_was_asked_for_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetching is half of a round, and looking at what came the other."""
    monkeypatch.setattr(module, "BLOCK", 2)
    plan, shares = plan_of([(8, 4)]), list[float]()
    good = {row_at(plan, 0, turn): png(LIKE) for turn in range(8) if turn > 0}
    run(plan, Web(dict(good)), progress=shares.append)
    assert shares == [0, 1 / 2, 3 / 4, 4 / 5, 4.5 / 5]


def test_first_in_turn_are_chosen_and_nothing_else_is_fetched() -> None:
    plan = plan_of([(3, 1), (4, 2)])
    web = Web(dict.fromkeys(range(100, 107), png(LIKE)))
    filled = run(plan, web)
    wanted = {row_at(plan, 0, 0), row_at(plan, 1, 0), row_at(plan, 1, 1)}
    assert set(filled.images) == set(web.asked) == wanted and len(web.asked) == 3
    assert {row for row, outcome in outcomes(filled).items() if outcome == CHOSEN} == wanted
    assert set(filled.chosen().column("row").to_pylist()) == wanted
    assert {outcome for row, outcome in outcomes(filled).items() if row not in wanted} == {SPARE}


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        (None, (DEAD, LOST)),
        (b"<html>", (UNREADABLE, "image: not an image (html)")),
        (b"", (UNREADABLE, "image: empty")),
        (png(LIKE)[:45], (UNREADABLE, "image: truncated")),
        (png(OTHER), (UNLIKE, None)),
    ],
)
def test_the_next_of_the_same_group_takes_the_place(
    content: bytes | None, outcome: tuple[str, str | None]
) -> None:
    plan = plan_of([(3, 1), (3, 1)])
    web = Web(dict.fromkeys(range(100, 106), png(LIKE)))
    web.content[row_at(plan, 0, 0)] = content
    filled = run(plan, web)
    details = {line["row"]: line["detail"] for line in filled.table.to_pylist()}
    assert (outcomes(filled)[row_at(plan, 0, 0)], details.pop(row_at(plan, 0, 0))) == outcome
    assert set(details.values()) == {None}
    assert outcomes(filled)[row_at(plan, 0, 1)] == CHOSEN
    assert outcomes(filled)[row_at(plan, 0, 2)] == SPARE
    assert outcomes(filled)[row_at(plan, 1, 0)] == CHOSEN
    assert outcomes(filled)[row_at(plan, 1, 1)] == SPARE


def test_exhausted_group_borrows_from_no_one() -> None:
    plan = plan_of([(2, 1), (5, 1)])
    web = Web(dict.fromkeys(range(100, 107), png(LIKE)))
    for turn in range(2):
        web.content[row_at(plan, 0, turn)] = None
    filled = run(plan, web)
    assert list(filled.images) == [row_at(plan, 1, 0)]


def test_cosine_is_with_its_own_reference_and_the_threshold_is_inside() -> None:
    plan = plan_of([(1, 1), (1, 1), (1, 1)])
    references = np.zeros((3, 2), np.float32)
    for number, line in enumerate(plan.to_pylist()):
        references[number] = [(1, 0), (0, 1), (0.5, 0)][line["group"]]
    web = Web(dict.fromkeys(range(100, 103), png(255)))
    filled = fetch_filter_refill(plan, references, web, embed, DatasetSettings(min_cosine=0.5))
    by_group = {line["group"]: (line["outcome"], line["fresh_cosine"]) for line in filled.table.to_pylist()}
    assert by_group == {0: (CHOSEN, 1.0), 1: (UNLIKE, 0.0), 2: (CHOSEN, 0.5)}


def test_f69_everything_dead_fails_and_says_why() -> None:
    plan = plan_of([(5, 2)])
    web = Web({row_at(plan, 0, 0): b"<html>"})
    with pytest.raises(DataError, match=r"0 of 5 images .* fewer than 5%: HTTP 404 4, image: not an image"):
        run(plan, web, min_yield=0.05)
    with pytest.raises(DataError, match=r"none of 5 candidate images could be used: HTTP 404 4"):
        run(plan, web, min_yield=0)
    with pytest.raises(DataError, match=f"{UNLIKE} 5"):
        run(plan, Web(dict.fromkeys(range(100, 105), png(OTHER))), min_yield=1)


def test_f69_the_floor_is_inside_and_unlike_images_are_alive() -> None:
    plan = plan_of([(10, 10)])
    content: dict[int, bytes | None] = dict.fromkeys(range(100, 102), png(OTHER))
    web = Web(content | {102: png(LIKE)})
    filled = run(plan, web, min_yield=0.3)
    assert (filled.tried, filled.alive, filled.dead, filled.rounds) == (10, 3, {LOST: 7}, 1)
    with pytest.raises(DataError, match="3 of 10 images"):
        run(plan, web, min_yield=0.31)


def test_f69_a_dead_pool_is_noticed_before_all_of_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENOUGH", 10)
    web = Web({})
    with pytest.raises(DataError, match="0 of 10 images"):
        run(plan_of([(50, 1)] * 10), web, min_yield=0.05)
    assert len(web.rounds) == 1


def test_a_broken_png_of_the_wild_kind() -> None:
    """Pillow raises SyntaxError for a bad chunk after the header: it must cost this image only."""
    stored = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(stored, "PNG")
    data = bytearray(stored.getvalue())
    data[33:37] = (100).to_bytes(4)  # the length of the first IDAT: what follows it is no chunk
    plan = plan_of([(2, 1)])
    web = Web(dict.fromkeys((100, 101), png(LIKE)))
    web.content[row_at(plan, 0, 0)] = bytes(data)
    with pytest.raises(SyntaxError), Image.open(io.BytesIO(data)) as image:
        image.load()
    assert outcomes(run(plan, web))[row_at(plan, 0, 0)] == UNREADABLE


def naive(plan: list[dict[str, Any]], web: Web, refill: str = "cluster") -> dict[int, str]:
    """Each group on its own: go through the turns until the quota is full. Then, if others of the label may
    stand in, go through them, first turns first."""
    verdicts = {None: DEAD, b"x": UNREADABLE, png(OTHER): UNLIKE, png(LIKE): CHOSEN}
    result = {line["row"]: SPARE for line in plan}
    short: Counter[int] = Counter()

    def go_through(lines: list[dict[str, Any]], missing: int) -> int:
        for line in lines:
            if missing and result[line["row"]] == SPARE:
                result[line["row"]] = verdicts[web.content.get(line["row"])]
                missing -= result[line["row"]] == CHOSEN
        return missing

    for group in {line["group"] for line in plan}:
        members = sorted((line for line in plan if line["group"] == group), key=lambda line: line["turn"])
        short[members[0]["label"]] += go_through(members, members[0]["quota"])
    for label, missing in short.items():
        if refill == "label":
            others = [line for line in plan if line["label"] == label]
            go_through(sorted(others, key=lambda line: (line["turn"], line["group"])), missing)
    return result


def random_case(seed: int) -> tuple[list[tuple[int, int]], pa.Table, Web]:
    random = np.random.default_rng(seed)
    sizes = [(int(random.integers(1, 8)), int(random.integers(1, 4))) for _ in range(random.integers(1, 9))]
    plan = plan_of(sizes)
    kinds = [None, b"x", png(OTHER), png(LIKE)]
    chance = random.dirichlet(np.ones(4))
    return (
        sizes,
        plan,
        Web({row: kinds[random.choice(4, p=chance)] for row in plan.column("row").to_pylist()}),
    )


@pytest.mark.parametrize("refill", ["cluster", "label"])
def test_random_plans(refill: str) -> None:
    for seed in range(80):
        sizes, plan, web = random_case(seed)
        expected = naive(plan.to_pylist(), web, refill)
        if CHOSEN not in expected.values():
            with pytest.raises(DataError):
                run(plan, web, refill)
            continue
        filled = run(plan, web, refill)
        assert outcomes(filled) == expected
        assert sorted(web.asked) == sorted(row for row, outcome in expected.items() if outcome != SPARE)
        assert filled.table.column("row").to_pylist() == plan.column("row").to_pylist()
        assert set(filled.images) == {row for row, outcome in expected.items() if outcome == CHOSEN}
        labels, quotas = filled.chosen().column("label").to_pylist(), Counter[int]()
        for group, (_, quota) in enumerate(sizes):
            quotas[group % 3] += quota
        assert all(labels.count(label) <= quota for label, quota in quotas.items())
        for line in filled.table.to_pylist():
            assert np.isnan(line["fresh_cosine"]) == (line["outcome"] in (DEAD, UNREADABLE, SPARE))
            assert (line["detail"] is not None) == (line["outcome"] in (DEAD, UNREADABLE))


@pytest.mark.parametrize("refill", ["cluster", "label"])
def test_asking_for_more_saves_rounds_and_changes_no_choice(refill: str) -> None:
    saved = 0
    for seed in range(80):
        _, plan, web = random_case(seed)
        if CHOSEN not in naive(plan.to_pylist(), web, refill).values():
            continue
        plain, eager = run(plan, web, refill), run(plan, web, refill, eager=True)
        assert repr(eager.table.to_pylist()) == repr(plain.table.to_pylist())  # no NaN equals another
        assert eager.images == plain.images
        assert eager.rounds <= plain.rounds and eager.tried >= plain.tried
        saved += plain.rounds - eager.rounds
    assert saved > 20


def test_f69_30_percent_dead_links_take_few_rounds_and_give_full_classes() -> None:
    random = np.random.default_rng(0)
    plan = plan_of([(int(random.integers(1, 30)), 1) for _ in range(300)])
    alive = random.random(plan.num_rows) >= 0.3
    web = Web({row: png(LIKE) if ok else None for row, ok in zip(range(100, 10**6), alive, strict=False)})
    filled = run(plan, web, "label", eager=True)
    assert Counter(filled.chosen().column("label").to_pylist()) == {0: 100, 1: 100, 2: 100}
    assert filled.rounds <= 4 and filled.tried < 1.5 * 300 / 0.7
    plain = run(plan, web, "label")
    assert plain.rounds > 5 and plain.images == filled.images


def test_others_of_the_label_stand_in_first_turns_first() -> None:
    """Groups 0 and 3 have one label: of the larger one two more are taken, and of another label none."""
    plan = plan_of([(2, 2), (3, 1), (3, 1), (4, 1)])
    web = Web(dict.fromkeys(range(100, 112), png(LIKE)))
    for turn in range(2):
        web.content[row_at(plan, 0, turn)] = None
    web.content[row_at(plan, 3, 1)] = b"<html>"
    told = outcomes(run(plan, web, "label"))
    assert [told[row_at(plan, 3, turn)] for turn in range(4)] == [CHOSEN, UNREADABLE, CHOSEN, CHOSEN]
    assert [told[row_at(plan, 1, turn)] for turn in range(3)] == [CHOSEN, SPARE, SPARE]
    assert list(outcomes(run(plan, web, "cluster")).values()).count(CHOSEN) == 3


@pytest.mark.parametrize("refill", ["cluster", "label"])
def test_a_failure_that_may_pass_is_asked_again_only_where_nobody_else_is_left(refill: str) -> None:
    """Group 0 has another image to offer. Group 1 has none, and so has label 1 with group 4, all of it late
    or dead; what is dead for good is not asked for again."""
    plan = plan_of([(2, 1), (3, 2), (1, 1), (1, 1), (2, 1)])
    web = Web(dict.fromkeys(range(100, 109), png(LIKE)))
    web.passing = {row_at(plan, 0, 0), row_at(plan, 1, 0), row_at(plan, 1, 1), row_at(plan, 4, 0)}
    for group, turn in ((1, 2), (4, 1)):
        web.content[row_at(plan, group, turn)] = None
    filled = run(plan, web, refill, again={LATE})
    told = outcomes(filled)
    assert told[row_at(plan, 0, 0)] == DEAD and told[row_at(plan, 0, 1)] == CHOSEN
    again = {row_at(plan, 1, 0), row_at(plan, 1, 1), row_at(plan, 4, 0)}
    assert set(web.rounds[-1]) == again and all(told[row] == CHOSEN for row in again)
    assert max(Counter(web.asked).values()) == 2
    assert filled.dead == {LATE: 1, LOST: 2}


def test_a_second_chance_is_the_last() -> None:
    plan = plan_of([(1, 1), (1, 1)])
    dead = row_at(plan, 0, 0)

    class Late(Web):
        def __call__(self, rows: Sequence[int]) -> Answer:
            self.passing = {dead}
            return super().__call__(rows)

    web = Late(dict.fromkeys((100, 101), png(LIKE)))
    assert outcomes(run(plan, web, again={LATE}))[dead] == DEAD
    assert web.asked.count(dead) == 2


class Camera:
    """The one method of Clip that reading a training set needs."""

    def pixels(self, image: Image.Image) -> np.ndarray[Any, Any]:
        return np.asarray(image.convert("RGB"))


def test_training_set_comes_back(tmp_path: Path) -> None:
    plan = plan_of([(3, 1), (3, 2), (2, 1)])
    web = Web({100 + n: png(200 + n) for n in range(8)})
    web.content[row_at(plan, 0, 0)] = None
    filled = run(plan, web)
    links = {row: {"url": f"http://x/{row}", "caption": f"number {row}"} for row in range(100, 108)}
    write_training_set(filled, links, tmp_path)
    pixels, labels = read_training_set(tmp_path, Camera())  # type: ignore[arg-type]
    chosen = filled.chosen().to_pylist()
    assert labels.tolist() == [line["label"] for line in chosen]
    assert pixels[:, 0, 0, 0].tolist() == [line["row"] + 100 for line in chosen]
    assert pixels.shape == (4, 4, 4, 3) and pixels.dtype == np.uint8
    told = pq.read_table(tmp_path / PROVENANCE).to_pylist()
    assert {line["row"]: line["outcome"] for line in told} == outcomes(filled)
    assert all(line["url"] == f"http://x/{line['row']}" for line in told)
    assert all(line["caption"] == f"number {line['row']}" for line in told)
