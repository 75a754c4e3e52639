"""Figures that pages quote from benchmarks/results/: filled in by `python -m benchmarks.quoted`, so that none
is typed, and held against the results by tests/test_docs.py.

A number after a comment is that figure, with as many decimals as it has now. A comment must not begin a line:

    reads <!--=index line/scan_ratio_kmeans-->33 times less, at <!--=index measured_at/scan-->01b16b3

Above a table, a row of formulas fills the last cells of every row, {} being the first name in backticks:

    <!--rows compare
    | [line/{}/mean .1f] ± [line/{}/std .1f] |
    -->

A formula is a path below `figures` or the whole file (`*` takes the mean of a list, `key=value` the first
such item of one), and sums, differences, products and quotients of those and of numbers, from left to right.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import cache
from operator import add, mul, sub, truediv
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.record import RESULTS

ROOT = RESULTS.parents[1]
MARK = re.compile(r"(<!--=(\S+) ([^\n]*?)-->\**)([0-9a-f]{7}(?:-dirty)?|[-+−]?\d+(?:,\d{3})*(?:\.\d+)?)")
ROWS = re.compile(r"<!--rows (\S+)\n\|(.*?)\|\n-->\n\n((?:\|[^\n]*\n)+)", re.DOTALL)
NAME = re.compile(r"`([^`]+)`")
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul, "/": truediv}


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def filled(text: str) -> str:
    """A page with every quoted figure as it is in the results."""
    text = MARK.sub(lambda mark: mark[1] + _like(mark[4], formula(mark[2], mark[3])), text)
    return ROWS.sub(_table, text)


def formula(file: str, text: str) -> Any:
    first, *rest = re.split(r" ([-+*/]) ", text.strip())
    value = _operand(file, first)
    for operator, operand in zip(rest[::2], rest[1::2], strict=True):
        value = OPERATORS[operator](value, _operand(file, operand))
    return value


def _operand(file: str, text: str) -> Any:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else _at(_results(file), text.split("/"))


@cache
def _results(file: str) -> dict[str, Any]:
    body = json.loads((RESULTS / f"{file}.json").read_text())
    return {**body, **body["figures"]}


def _at(value: Any, path: list[str]) -> Any:
    if not path:
        return value
    name, rest = path[0], path[1:]
    if name == "*":
        return fmean(_at(item, rest) for item in value)
    if isinstance(value, list) and "=" in name:
        key, wanted = name.split("=")
        return _at(next(item for item in value if str(item[key]) == wanted), rest)
    return _at(value[int(name) if isinstance(value, list) else name], rest)


def _like(old: str, value: Any) -> str:
    if isinstance(value, str):  # a commit
        return value[:7] + ("-dirty" if value.endswith("-dirty") else "")
    return _written(value, len(old.partition(".")[2]), "+" if old.startswith("+") else "")


def _written(value: float, decimals: int, sign: str = "") -> str:
    return f"{value:{sign},.{decimals}f}".replace("-", "−")


def _table(found: re.Match[str]) -> str:
    formulas, lines = found[2].split("|"), found[3].splitlines()
    rows = [_row(found[1], line, formulas) for line in lines[2:]]
    return found[0].removesuffix(found[3]) + "\n".join([*lines[:2], *rows]) + "\n"


def _row(file: str, line: str, formulas: list[str]) -> str:
    cells, name = line.strip("|").split("|"), NAME.search(line)
    if name is None:
        raise ValueError(f"no name in backticks in the row {line}")
    new = [re.sub(r"\[(.+?) \.(\d)f\]", lambda one: _cell(file, one, name[1]), cell) for cell in formulas]
    return "|" + "|".join([*cells[: len(cells) - len(new)], *new]) + "|"


def _cell(file: str, one: re.Match[str], name: str) -> str:
    return _written(formula(file, one[1].replace("{}", name)), int(one[2]))


def main() -> None:
    for page in pages():
        old = page.read_text()
        if (new := filled(old)) != old:
            page.write_text(new)
            sys.stdout.write(f"{page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
