"""A run that a command has started on a team's servers, and whose process is killed: nobody supervises it."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.events.schemas.automations import EventTrigger

from mudg.ops.stack.prefect_setup import DEAD_RUNS, automation
from tests.stack.team import ENDED, Team, until
from tests.support.demo_runs import MUDG, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

SILENCE = timedelta(seconds=60)  # instead of ten minutes


def be_impatient(api: str, password: str) -> None:
    """The automation that `mudg up` has registered, in a shorter time."""
    wanted = automation(DEAD_RUNS)
    assert isinstance(wanted.trigger, EventTrigger)
    quick = wanted.model_copy(update={"trigger": wanted.trigger.model_copy(update={"within": SILENCE})})
    with SyncPrefectClient(api, auth_string=password) as client:
        [known] = client.read_automations_by_name(wanted.name)
        client.delete_automation(known.id)
        client.create_automation(quick)


def test_f13_a_run_that_nobody_supervises_is_marked_as_crashed(tmp_path: Path) -> None:
    team = Team(tmp_path)
    try:
        team.up("--workers", "1", "--index-cron", "off")
        be_impatient(*(team.environment[f"PREFECT_API_{name}"] for name in ("URL", "AUTH_STRING")))
        with subprocess.Popen(
            [MUDG, "index", "build", "--set", "corpus.source=demo"],
            cwd=tmp_path,
            env=environment(**team.environment),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as command:
            run = until(lambda: next(iter(team.runs("build-index")), None), "its run", 120)["id"]
            until(lambda: len(team.task_runs(run)) > 0 or None, "a task", 120)
            assert command.poll() is None, "it ended before it could be killed"
            command.kill()
        ended = team.ended(run, 300)
        assert ended["state_type"] == "CRASHED" and "nothing was heard" in ended["state"]["message"]
        over = until(
            lambda: {one["state_type"] for one in team.task_runs(run)} <= ENDED or None, "its tasks", 480
        )
        assert over
    finally:
        team.command("down")
