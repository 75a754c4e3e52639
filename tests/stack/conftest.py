"""One stack for all tests of this folder: starting it takes half a minute."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stack.team import Team


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Its index is built by the schedule, every minute, as nobody asks for it."""
    one = Team(tmp_path_factory.mktemp("team"))
    with pytest.MonkeyPatch.context() as patch:
        try:
            one.up("--workers", "2", "--gpu-limit", "1", "--index-cron", "* * * * *")
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
                patch.setenv(name, one.environment[name])  # tests look into the store, too
            yield one
        finally:
            one.command("down")
