"""Templates of automations, as Prefect's own models read them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
import yaml
from prefect.client.schemas.objects import TERMINAL_STATES
from prefect.events.schemas.automations import AutomationCore, EventTrigger
from prefect.server.events.schemas.automations import AutomationCore as ServerAutomation
from prefect.server.utilities.user_templates import render_user_template_sync

from deployments.target_runs import ALREADY_RUNNING
from tasks.flow import Flow

FILES = sorted((Path(__file__).parents[2] / "deployments/automations").glob("*.yaml"))


def automations(file: Path) -> list[Any]:
    """As `prefect automation create --from-file` reads one."""
    body = yaml.safe_load(file.read_text())
    found: list[Any] = body.get("automations", [body])
    return found


def our_flows() -> set[str]:
    import flows

    modules = [import_module(f"flows.{module.name}") for module in iter_modules(flows.__path__)]
    found = (value for module in modules for value in vars(module).values())
    return {value.name for value in found if isinstance(value, Flow)} - {"demo"}  # which nobody deploys


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_prefect_takes_the_template_for_our_flows(file: Path) -> None:
    for body in automations(file):
        made = AutomationCore.model_validate(body)
        ServerAutomation.model_validate(body)  # which also parses what is filled in
        assert isinstance(made.trigger, EventTrigger) and made.actions
        related = body["trigger"]["match_related"]["prefect.resource.name"]
        assert set(related) == our_flows()
        assert file.name in file.read_text().split("name:")[0], "says how to use it"


@pytest.mark.parametrize("name", ["stuck-run", "dead-run"])
def test_however_a_run_ends_nobody_takes_it_for_one_that_goes_on(name: str) -> None:
    """Events are called after the state's name, which may be one of ours."""
    (file,) = (file for file in FILES if file.stem == name)
    named = {event.removeprefix("prefect.flow-run.") for event in automations(file)[0]["trigger"]["expect"]}
    kinds = {kind.value.capitalize() for kind in TERMINAL_STATES}
    assert named - {"heartbeat"} == kinds | {"TimedOut", ALREADY_RUNNING}


def test_a_webhook_gets_json_whatever_an_error_says() -> None:
    (body,) = automations(next(file for file in FILES if file.stem == "failed-run-webhook"))
    state = {"name": "Failed", "message": 'no "cat"\n  to do: {{ none }} \\'}
    run = {"name": "build-classifier animals", "state": state}
    payload = body["actions"][0]["payload"].replace("|ui_url", "")  # which needs a run of its own
    told = json.loads(render_user_template_sync(payload, {"flow_run": run}))
    assert (told["run"], told["message"]) == (run["name"], state["message"])
