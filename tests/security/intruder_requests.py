"""What an intruder asks Prefect's API for, and the scripts by which a page asks."""

from __future__ import annotations

import json
from typing import Any

from tests.security.owner import Owner

EVIL = "evil-5ec7e7"
SHELL = [{"prefect.deployments.steps.run_shell_script": {"script": "id"}}]
SOCKETS = (
    "events/in",
    "events/out",
    "logs/out",
    "work_pools/mudg/workers/connect",
    "task_runs/subscriptions/scheduled",
)
DASK_LOGS = "/info/main/logs.html"
# A request as a page makes it: its status, 0 if the page may not see it, or that the browser has refused.
FETCH = """async ([url, how]) => {
  try { return (await fetch(url, how)).status; } catch (error) { return "refused by the browser"; }
}"""
# All that a server sends before it closes, or for three seconds. `first` is what the page says to it.
SOCKET = """([url, protocols, first]) => new Promise(done => {
  const heard = [], line = new WebSocket(url, protocols);
  line.onopen = () => first.forEach(text => line.send(text));
  line.onmessage = message => heard.push(String(message.data));
  line.onclose = event => done({heard, closed: event.code});
  setTimeout(() => done({heard, closed: 0}), 3000);
})"""
FORM = """([url, body]) => {
  const form = document.createElement("form"), field = document.createElement("input");
  form.method = "POST"; form.action = url; form.enctype = "text/plain";
  field.name = body.slice(0, -1) + ', "x": "'; field.value = '"}';
  form.append(field); document.body.append(form); form.submit();
}"""
PEEK = """async (url) => {
  const other = window.open(url);
  await new Promise(done => setTimeout(done, 2000));
  try { return other.localStorage.getItem("prefect-password"); } catch (error) { return error.name; }
}"""
Call = tuple[str, str, Any]


def calls(owner: Owner) -> dict[str, Call]:
    """What a page would ask for: (method, path, body)."""
    deployment = owner.deployment("build-index")
    evil = {"name": EVIL, "flow_id": deployment["flow_id"], "work_pool_name": "mudg", "pull_steps": SHELL}
    start = f"deployments/{deployment['id']}/create_flow_run"
    return {
        "read flow runs": ("POST", "flow_runs/filter", {}),
        "read the version": ("GET", "admin/version", {}),
        "read settings of the server": ("GET", "admin/settings", {}),
        "create a work pool": ("POST", "work_pools/", {"name": EVIL, "type": "process"}),
        "create a deployment with a shell command as its pull step": ("POST", "deployments/", evil),
        "change a deployment's entry point": (
            "PATCH",
            f"deployments/{deployment['id']}",
            {"pull_steps": SHELL},
        ),
        "start a flow run": ("POST", start, {}),
        "send the event that starts build-classifier": ("POST", "events", [json.loads(owner.event(EVIL))]),
        "write a variable": ("POST", "variables/", {"name": "evil", "value": EVIL}),
        "delete the work pool": ("DELETE", "work_pools/mudg", {}),
        "clear the database": ("POST", "admin/database/clear", {"confirm": True}),
    }
