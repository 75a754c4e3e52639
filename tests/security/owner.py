"""What the owner of a stack sees of it: attacks are judged by whether it has changed."""

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
SCHEDULED = "auto_scheduled"  # the server marks runs of its own schedules so
COMPARED = ("name", "pull_steps", "entrypoint", "value", "path")


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
            listed = {kind: self.ask(f"{kind}/filter", {}) for kind in LISTED}
        except httpx.HTTPError as error:
            raise NotTried(f"the server does not answer its owner: {error}") from error
        return {
            kind: sorted(_summary(item) for item in items if not item.get(SCHEDULED))
            for kind, items in listed.items()
        }

    def same(self, before: dict[str, list[Any]]) -> str:
        now = self.belongings()
        changed = {kind: now[kind] for kind in before if now[kind] != before[kind]}
        assert not changed, f"changed: {changed}"
        return "nothing was made or changed"

    def deployment(self, name: str) -> dict[str, Any]:
        deployments = self.ask("deployments/filter", {"deployments": {"name": {"any_": [name]}}})
        if not deployments:
            raise NotTried(f"there is no deployment {name}")
        return dict(deployments[0])

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
        query = {"filter": {"resource": {"id": [f"mudg.target.{name}"]}}}
        return int(self.ask("events/filter", query)["total"])


def _summary(item: dict[str, Any]) -> str:
    return json.dumps(
        {"id": item["id"]} | {name: item[name] for name in COMPARED if name in item}, sort_keys=True
    )
