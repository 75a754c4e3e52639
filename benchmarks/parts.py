"""What benchmarks that have parts share: the parts asked for are run one by one, and their figures kept.

The last line printed is one JSON object with the figures of all parts, those measured earlier too.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console

from benchmarks.record import keep, rounded

Figures = dict[str, Any]
Found = tuple[Figures, Figures]  # of the last line, and in detail
console = Console(stderr=True)


def parser_of(doc: str | None, parts: Iterable[str], *, tiny: bool = True) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help=argparse.SUPPRESS)
    if tiny:
        parser.add_argument("--tiny", action="store_true", help="try it; figures are not kept")
    return parser


def kept_as(benchmark: str, *, tiny: bool = False) -> Callable[[str, Figures, Figures], Figures]:
    """What becomes of a part's figures; those of a trial are told only."""
    if tiny:
        return lambda part, line, detail: rounded(line)
    return lambda part, line, detail: keep(benchmark, part, line, detail)


def run_parts(
    names: Iterable[str],
    measure: Callable[[str], Found],
    kept: Callable[[str, Figures, Figures], Figures],
    *,
    told: bool = True,
) -> None:
    """`told`: each part is named before and shown after; some have more to say by themselves."""
    figures: Figures = {}
    for name in names:
        if told:
            console.print(f"{name} …")
        line, detail = measure(name)
        if told:
            console.print_json(json.dumps(detail))
        figures |= kept(name, line, detail)
    sys.stdout.write(json.dumps(figures) + "\n")
