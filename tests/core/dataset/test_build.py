"""Fetch, filter, refill: with a web of dead links, torn files and pictures of something else."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mudg_core.dataset.build import CHOSEN, DEAD, SPARE, UNLIKE, UNREADABLE, Filled, Float32, fill
from mudg_core.dataset.training_set import PROVENANCE, read_training_set, write_training_set
from mudg_core.errors import DataError

LIKE, OTHER = 200, 50  # grey levels


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
    """What each row's link gives, and what was asked for."""

    def __init__(self, content: dict[int, bytes | None]) -> None:
        self.content = content
        self.asked: list[int] = []

    def __call__(self, rows: Sequence[int]) -> dict[int, bytes]:
        self.asked += rows
        return {row: data for row in rows if (data := self.content.get(row)) is not None}


def row_at(plan: pa.Table, group: int, turn: int) -> int:
    return next(
        int(line["row"]) for line in plan.to_pylist() if (line["group"], line["turn"]) == (group, turn)
    )


def run(plan: pa.Table, web: Web) -> Filled:
    references = np.tile(np.array([1, 0], np.float32), (plan.num_rows, 1))
    return fill(plan, references, web, embed, min_cosine=0.5)


def outcomes(filled: Filled) -> dict[int, str]:
    return {line["row"]: line["outcome"] for line in filled.table.to_pylist()}


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
        (None, DEAD),
        (b"<html>", UNREADABLE),
        (b"", UNREADABLE),
        (png(LIKE)[:40], UNREADABLE),
        (png(OTHER), UNLIKE),
    ],
)
def test_the_next_of_the_same_group_takes_the_place(content: bytes | None, outcome: str) -> None:
    plan = plan_of([(3, 1), (3, 1)])
    web = Web(dict.fromkeys(range(100, 106), png(LIKE)))
    web.content[row_at(plan, 0, 0)] = content
    filled = run(plan, web)
    assert outcomes(filled)[row_at(plan, 0, 0)] == outcome
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
    filled = fill(plan, references, Web(dict.fromkeys(range(100, 103), png(255))), embed, min_cosine=0.5)
    by_group = {line["group"]: (line["outcome"], line["fresh_cosine"]) for line in filled.table.to_pylist()}
    assert by_group == {0: (CHOSEN, 1.0), 1: (UNLIKE, 0.0), 2: (CHOSEN, 0.5)}


def test_f69_everything_dead() -> None:
    with pytest.raises(DataError, match="none of 5 candidate images") as caught:
        run(plan_of([(5, 2)]), Web({}))
    assert f"5 {DEAD}" in caught.value.what
    with pytest.raises(DataError, match=f"5 {UNLIKE}"):
        run(plan_of([(5, 2)]), Web(dict.fromkeys(range(100, 105), png(OTHER))))


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


def naive(plan: list[dict[str, Any]], web: Web) -> dict[int, str]:
    """Each group on its own: go through the turns until the quota is full."""
    result = {line["row"]: SPARE for line in plan}
    for group in {line["group"] for line in plan}:
        members = sorted((line for line in plan if line["group"] == group), key=lambda line: line["turn"])
        missing = members[0]["quota"]
        for line in members:
            if missing == 0:
                break
            data = web.content.get(line["row"])
            verdicts = {None: DEAD, b"x": UNREADABLE, png(OTHER): UNLIKE, png(LIKE): CHOSEN}
            result[line["row"]] = verdicts[data]
            missing -= result[line["row"]] == CHOSEN
    return result


def test_random_plans() -> None:
    for seed in range(80):
        random = np.random.default_rng(seed)
        sizes = [
            (int(random.integers(1, 8)), int(random.integers(1, 4))) for _ in range(random.integers(1, 9))
        ]
        plan = plan_of(sizes)
        kinds = [None, b"x", png(OTHER), png(LIKE)]
        chance = random.dirichlet(np.ones(4))
        rows = plan.column("row").to_pylist()
        web = Web({row: kinds[random.choice(4, p=chance)] for row in rows})
        expected = naive(plan.to_pylist(), web)
        if CHOSEN not in expected.values():
            with pytest.raises(DataError):
                run(plan, web)
            continue
        filled = run(plan, web)
        assert outcomes(filled) == expected
        assert sorted(web.asked) == sorted(row for row, outcome in expected.items() if outcome != SPARE)
        assert filled.table.column("row").to_pylist() == rows
        assert set(filled.images) == {row for row, outcome in expected.items() if outcome == CHOSEN}
        chosen = filled.chosen().column("group").to_pylist()
        assert all(chosen.count(group) <= quota for group, (_, quota) in enumerate(sizes))
        for line in filled.table.to_pylist():
            assert np.isnan(line["fresh_cosine"]) == (line["outcome"] in (DEAD, UNREADABLE, SPARE))


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
