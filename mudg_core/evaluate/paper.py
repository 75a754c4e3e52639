"""What the paper reports, beside what is measured here: facts of its tables, always shown as the paper's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from mudg_core.target.ready import READY
from mudg_core.target.spec import Target
from mudg_core.yaml_text import load as load_yaml

BACKBONES = ("ViT-B/16", "ViT-L/14")


@dataclass(frozen=True)
class PaperFigure:
    """Accuracy in percent; over domains the mean, and each of them. `table` is its label in the source."""

    value: float
    table: str
    about: str
    domains: dict[str, float] = field(default_factory=dict)


def paper_figures(target: Target, backbone: str) -> dict[str, PaperFigure]:
    """By row of the comparison; empty for a target that is none of the paper's tasks, whatever its name."""
    if READY.get(target.name) != len(target.classes):
        return {}
    found: dict[str, PaperFigure] = {}
    for table in _tables():
        if table["backbone"] == backbone and target.name in table["columns"]:
            for row, values in table["rows"].items():
                for figure in _figure(table, values, target.name):
                    known = found.get(row)
                    found[row] = known if known is not None and not figure.domains else figure
    return found


def backbone_of(model: str) -> str | None:
    """The paper's name of a student's architecture, if the paper has it."""
    name = model.partition("/")[0].replace("-quickgelu", "")
    return next((one for one in BACKBONES if one.replace("/", "-") == name), None)


def _figure(table: dict[str, Any], values: list[float | None], target: str) -> Iterator[PaperFigure]:
    given = {name: value for name, value in zip(table["columns"], values, strict=True) if value is not None}
    if target in given:
        start = f"{target}/"
        domains = {name.removeprefix(start): v for name, v in given.items() if name.startswith(start)}
        yield PaperFigure(given[target], table["table"], table["about"], domains)


@cache
def _tables() -> list[dict[str, Any]]:
    text = files("mudg_core.evaluate").joinpath("paper.yaml").read_text(encoding="utf-8")
    tables: list[dict[str, Any]] = load_yaml(text)
    return tables
