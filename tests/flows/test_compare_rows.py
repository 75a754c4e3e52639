"""The table of rows: what settings make of it."""

from __future__ import annotations

import pytest

from flows.build_classifier import NEAREST_NEIGHBOURS
from flows.compare_rows import GROUPS, ROWS, SELECTIONS, chosen_rows
from mudg_core.errors import InputError
from mudg_core.evaluate.comparison import paper_tables
from mudg_core.settings import Settings


def test_names_are_one_row_each_and_settings_take_all_of_them() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        changed = Settings().replace(row.changes, where=row.name)
        same = row.kind in ("cache", "few-shot") or row.name in ("mudg", "adaptive")
        assert (changed == Settings()) == same, row.name


def test_every_selection_but_our_own_has_a_row() -> None:
    assert {f"select-{name}" for name in SELECTIONS} == {row.name for row in ROWS if row.group == "selection"}
    assert "cluster" not in SELECTIONS and len(SELECTIONS) == 8


def test_the_nearest_neighbour_arm_has_the_filter_and_the_loss_of_the_method() -> None:
    """The plain one differs in just these two; another row is without paired cells and diversity loss."""
    ours, base = Settings().replace(NEAREST_NEIGHBOURS), Settings()
    assert (ours.train, ours.dataset.min_cosine) == (base.train, base.dataset.min_cosine)
    changes = {row.name: row.changes for row in ROWS}
    assert changes["nearest-neighbours"] == NEAREST_NEIGHBOURS
    plain = base.replace(changes["nearest-neighbours-plain"])
    assert plain == ours.replace({"dataset": {"min_cosine": -1.0}, "train": {"loss": "cross-entropy"}})
    both = base.replace(changes["kmeans-cross-entropy"])
    assert both == base.replace(changes["index-kmeans"] | changes["loss-cross-entropy"])
    assert changes["label-cosine"] == {"dataset": {"label": "cosine"}}


def test_the_papers_rows_are_rows_of_ours() -> None:
    papers = {name for table in paper_tables() for name in table["rows"]}
    assert papers <= {row.paper_name for row in ROWS}


def test_rows_are_chosen_by_name_and_by_group_with_zero_shot_beside_them() -> None:
    assert chosen_rows() == list(ROWS)
    assert [row.name for row in chosen_rows(["mudg"])] == ["zero-shot", "mudg"]
    groups = {row.group for row in chosen_rows([], ["loss"])}
    assert groups == {"prompts", "loss"}
    assert set(GROUPS) >= {"prompts", "retrieval", "adapters", "selection", "index", "upper bound"}


@pytest.mark.parametrize("names, groups", [(["mugd"], []), ([], ["losses"])])
def test_what_is_misspelt_is_told(names: list[str], groups: list[str]) -> None:
    with pytest.raises(InputError, match="there is no"):
        chosen_rows(names, groups)
