"""Figures of the paper. Its own means, which the file does not have, check that nothing was mistyped."""

from __future__ import annotations

import numpy as np
import pytest

from mudg_core.evaluate.comparison import BACKBONES, backbone_of, paper_figures, paper_tables
from mudg_core.target.ready import READY
from mudg_core.target.spec import Target

MEANS = {  # as printed in the last column of the table of eleven datasets
    "ViT-B/16": {
        "zero-shot": 65.2,
        "waffle": 65.9,
        "random-descriptors": 65.8,
        "templates": 65.6,
        "per-class-descriptors": 65.7,
        "tip-x": 69.0,
        "nearest-neighbours": 67.9,
        "select-margin": 68.4,
        "select-least-confident": 68.9,
        "select-entropy": 68.3,
        "select-herding": 70.9,
        "select-k-centre": 70.5,
        "mudg": 71.1,
        "few-shot": 83.9,
    },
    "ViT-L/14": {
        "zero-shot": 72.1,
        "waffle": 72.9,
        "random-descriptors": 73.1,
        "templates": 72.9,
        "per-class-descriptors": 73.8,
        "nearest-neighbours": 74.1,
        "mudg": 75.6,
    },
}
ABLATIONS = {  # of the same datasets, in the tables of ablations
    "augment-waffle": 71.1,
    "index-kmeans": 70.7,
    "loss-cross-entropy": 71.1,
    "loss-soft-labels": 69.5,
    "loss-contrastive": 70.9,
    "select-none": 70.7,
    "select-random": 70.9,
}
DOMAINS_OF_IMAGENET = {
    "ViT-B/16": {"zero-shot": 57.2, "waffle": 59.2, "templates": 59.4, "mudg": 61.4, "index-kmeans": 61.1},
    "ViT-L/14": {"zero-shot": 69.9, "waffle": 71.2, "templates": 71.9, "mudg": 73.0},
}
ELEVEN, FOUR = list(READY)[:11], list(READY)[11:15]


def target(name: str, classes: int | None = None) -> Target:
    return Target(name=name, classes=tuple(f"c{i}" for i in range(classes or READY[name])))


def mean(names: list[str], row: str, backbone: str) -> float:
    return float(np.mean([paper_figures(target(name), backbone)[row].value for name in names]))


@pytest.mark.parametrize("backbone", BACKBONES)
def test_rows_have_the_means_that_the_paper_prints(backbone: str) -> None:
    for row, printed in MEANS[backbone].items():
        assert mean(ELEVEN, row, backbone) == pytest.approx(printed, abs=0.09), row
    for row, printed in DOMAINS_OF_IMAGENET[backbone].items():
        assert mean(FOUR, row, backbone) == pytest.approx(printed, abs=0.09), row


def test_ablations_have_them_too() -> None:
    for row, printed in ABLATIONS.items():
        assert mean(ELEVEN, row, "ViT-B/16") == pytest.approx(printed, abs=0.09), row


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("name", list(READY)[15:])
def test_domains_average_to_what_is_shown(name: str, backbone: str) -> None:
    found = paper_figures(target(name), backbone)
    assert {"zero-shot", "waffle", "random-descriptors", "templates", "mudg"} <= set(found)
    for row, figure in found.items():
        assert len(figure.domains) >= 4, row
        assert np.mean(list(figure.domains.values())) == pytest.approx(figure.value, abs=0.16), row


def test_tables_that_share_a_figure_agree() -> None:
    seen: dict[tuple[str, str, str], float] = {}
    for table in paper_tables():
        assert set(column.partition("/")[0] for column in table["columns"]) <= set(READY)
        for row, values in table["rows"].items():
            for column, value in zip(table["columns"], values, strict=True):
                assert seen.setdefault((table["backbone"], row, column), value) == value


def test_only_the_papers_own_tasks_have_figures() -> None:
    assert paper_figures(target("pacs"), "ViT-B/16")["mudg"].value == 96.9
    assert paper_figures(target("pacs", classes=5), "ViT-B/16") == {}
    assert paper_figures(Target(name="animals", classes=("cat", "dog")), "ViT-B/16") == {}


def test_backbones_are_told_by_architecture() -> None:
    assert backbone_of("ViT-B-16/openai") == "ViT-B/16"
    assert backbone_of("ViT-L-14-quickgelu/openai") == "ViT-L/14"
    assert backbone_of("demo:student") is backbone_of("ViT-B-32/openai") is None
