"""`make attack`: attacks by everybody who is not the owner, on a real stack on this machine.

By a page in the owner's browser, another user, whoever may upload a spec, and whoever wrote the links, files
and models that we read. One table lists what was tried and what was refused; the exit code is 1 if anything
got through, or could not be tried. Some of it needs root, which alone can act as another user: without it the
table says what was skipped.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

os.environ["OMP_NUM_THREADS"] = "1"  # as in the tests, before torch is loaded

from mudg.ops.stack.running import Stack, find_stack
from tests.security import browser_page, files, links, models, other_user, specs
from tests.security.results import Result, Topic, exit_code, run_topics, table
from tests.stack.team import Team
from tests.support.demo_runs import mudg

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def main() -> int:
    warnings.simplefilter("ignore")  # Pillow warns of what is refused
    started = time.monotonic()
    results = all_attacks()
    print(table(results))
    print(f"in {time.monotonic() - started:.0f} s")
    return exit_code(results)


def all_attacks() -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="mudg-attack-") as folder:
        Path(folder).chmod(0o755)  # so that only the stack's own modes keep others out
        with _stack(Path(folder, "team")) as team:
            return run_topics(topics(team, Path(folder)), _report)


def topics(team: Team, folder: Path) -> dict[str, Topic]:
    own = partial(_subfolder, folder)
    return {
        "a page of another origin": lambda: browser_page.attacks(_running_stack(team), own("page")),
        "another user of this machine": lambda: other_user.attacks(_running_stack(team), own("user")),
        "hostile specs and parameters": lambda: specs.attacks(team, own("specs")),
        "hostile links": lambda: links.attacks(own("links")),
        "hostile files": lambda: files.attacks(own("files")),
        "hostile model folders": lambda: models.attacks(own("models")),
    }


def _subfolder(folder: Path, name: str) -> Path:
    place = folder / name
    place.mkdir()
    return place


def _running_stack(team: Team) -> Stack:
    stack = find_stack(team.folder / ".mudg/stack")
    assert stack is not None, "the stack is not up"
    return stack


@contextmanager
def _stack(folder: Path) -> Iterator[Team]:
    """A stack as its owner has it, and that owner's keys for what looks into the store afterwards."""
    folder.mkdir()
    team = Team(folder)
    _report("starting a stack")
    try:
        team.up("--workers", "1", "--index-cron", "off")
        with mock.patch.dict(os.environ, {name: team.environment[name] for name in KEYS}):
            yield team
    finally:
        _report("stopping the stack")
        mudg("down", "--wipe", cwd=folder)


def _report(progress: str) -> None:
    print(f"… {progress}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
