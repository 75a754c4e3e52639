"""What the owner of a stack sees of it: by this the harm is measured that an attack has done."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import httpx

from mudg.ops.stack.running import Stack
from tests.security.results import NotTried

SECONDS = 30.0
LISTED = ("work_pools", "deployments", "flows", "flow_runs", "block_documents", "variables", "automations")
BY_ITSELF = "auto_scheduled"  # what the server says of runs that its own schedules have made
KEPT = ("name", "pull_steps", "entrypoint", "value", "path")


class Owner:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def ask(self, path: str, body: dict[str, Any], method: str = "POST") -> Any:
        reply = httpx.request(
            method,
            f"{self.stack.api_url}/{path}",
            json=body,
            auth=self.stack.auth,
            timeout=SECONDS,
            trust_env=False,
        )
        return reply.raise_for_status().json()

    def belongings(self) -> dict[str, list[Any]]:
        """All that an intruder might make, change or delete."""
        try:
            found = {what: self.ask(f"{what}/filter", {}) for what in LISTED}
        except httpx.HTTPError as error:
            raise NotTried(f"the server does not answer its owner: {error}") from error
        return {
            what: sorted(_told(one) for one in items if not one.get(BY_ITSELF))
            for what, items in found.items()
        }

    def same(self, before: dict[str, list[Any]]) -> str:
        now = self.belongings()
        changed = {what: now[what] for what in before if now[what] != before[what]}
        assert not changed, f"changed: {changed}"
        return "nothing was made or changed"

    def deployment(self, name: str) -> dict[str, Any]:
        found = self.ask("deployments/filter", {"deployments": {"name": {"any_": [name]}}})
        if not found:
            raise NotTried(f"there is no deployment {name}")
        return dict(found[0])

    @staticmethod
    def event(name: str) -> str:
        """What would start a run of build-classifier."""
        return json.dumps(
            {
                "id": str(uuid.uuid4()),
                "occurred": datetime.now(UTC).isoformat(),
                "event": "mudg.target.created",
                "resource": {"prefect.resource.id": f"mudg.target.{name}"},
                "payload": {"name": name, "submission": "0" * 16},
            }
        )

    def events(self, name: str) -> int:
        wanted = {"filter": {"resource": {"id": [f"mudg.target.{name}"]}}}
        return int(self.ask("events/filter", wanted)["total"])


def _told(item: dict[str, Any]) -> str:
    return json.dumps(
        {"id": item["id"]} | {name: item[name] for name in KEPT if name in item}, sort_keys=True
    )
