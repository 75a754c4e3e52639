"""Which tests stand for which line of docs/faults.md; `python -m tests.support.fault_list` writes them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "faults.md"
TEST = re.compile(r"^ *(?:async )?def test_((?:f\d+_)+)", re.MULTILINE)
ROW = re.compile(r"^(\| (\d+) \|.*\|.*)\|[^|]*\|$")
NONE = "none yet"


def tests_by_fault() -> dict[int, Counter[str]]:
    """How many tests each file has for a number; one test may stand for several (`test_f04_f12_...`)."""
    files: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for path in sorted(TESTS.rglob("test_*.py")):
        for match in TEST.finditer(path.read_text()):
            for number in re.findall(r"\d+", match[1]):
                files[int(number)][path.relative_to(TESTS).as_posix()] += 1
    return files


def with_tests(page: str) -> str:
    files = tests_by_fault()
    return "\n".join(_row(line, files) for line in page.split("\n"))


def _row(line: str, files: dict[int, Counter[str]]) -> str:
    row = ROW.match(line)
    if not row:
        return line
    counts = files.get(int(row[2]), {})
    named = ", ".join(f"`{file}`" + (f" ({count})" if count > 1 else "") for file, count in counts.items())
    return f"{row[1]}| {named or NONE} |"


if __name__ == "__main__":
    PAGE.write_text(with_tests(PAGE.read_text()))
