"""Prefect's server of a stack, attacked by pages in a real browser, and opened by its owner."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from starlette.types import Message, Receive, Scope, Send

from mudg_core.errors import OrchestrationError
from tasks.executors.guarded_api import Guard, guarding, login_url, new_password
from tasks.executors.prefect_database import lay_out
from tasks.executors.prefect_server import _free_port, _stop, _wait_until_healthy, prefect_api, server_command
from tests.stack.browser import page

pytestmark = pytest.mark.timeout(300)

ATTACK = """async (api) => {
  const tried = {};
  const json = {"Content-Type": "application/json"};
  const body = JSON.stringify({name: "evil", type: "process"});
  const calls = {
    read: [`${api}/flow_runs/filter`, {method: "POST", headers: json, body: "{}"}],
    create: [`${api}/work_pools/`, {method: "POST", headers: json, body}],
    blind: [`${api}/work_pools/`, {method: "POST", mode: "no-cors", body}],
    version: [`${api}/admin/version`, {}],
  };
  for (const [name, [url, how]] of Object.entries(calls)) {
    try { tried[name] = (await fetch(url, how)).status; } catch (error) { tried[name] = "refused"; }
  }
  return tried;
}"""


@dataclass(frozen=True)
class Server:
    ui: str
    password: str

    def pools(self) -> list[str]:
        user, _, word = self.password.partition(":")
        reply = httpx.post(f"{self.ui}/api/work_pools/filter", json={}, auth=(user, word), trust_env=False)
        return [pool["name"] for pool in reply.raise_for_status().json()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home, port, password = tmp_path_factory.mktemp("server"), _free_port(), new_password()
    lay_out(home / "prefect.db")
    ui = f"http://127.0.0.1:{port}"
    own = {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home / 'prefect.db'}",
        "PREFECT_SERVER_UI_API_URL": f"{ui}/api",
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(home / "ui"),
    }
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            server_command(port), env=os.environ | own | guarding(port, password), stdout=log, stderr=log
        )
    try:
        _wait_until_healthy(process, f"{ui}/api", home)
        yield Server(ui, password)
    finally:
        _stop(process)


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[str]:
    """A page of another origin: another port of the same machine."""
    (tmp_path / "index.html").write_text("<!DOCTYPE html><title>evil</title>")
    quiet = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), quiet) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}"
        site.shutdown()


def test_f79_a_page_of_another_origin_can_neither_read_nor_start_anything(
    server: Server, foreign: str
) -> None:
    before = server.pools()
    with page() as seen:
        seen.goto(login_url(server.ui, server.password))  # its owner is signed in, in the same browser
        seen.wait_for_url("**/dashboard*")
        seen.goto(foreign)
        tried = seen.evaluate(ATTACK, f"{server.ui}/api")
    assert tried == {"read": "refused", "create": "refused", "blind": 0, "version": "refused"}
    assert server.pools() == before


def test_f79_a_name_that_points_here_is_refused(server: Server) -> None:
    """DNS rebinding: to the browser, page and API are of one origin."""
    port = server.ui.rpartition(":")[2]
    with page("--host-resolver-rules=MAP rebound.example 127.0.0.1") as seen:
        reply = seen.goto(f"http://rebound.example:{port}/")
        assert reply is not None and reply.status == 400
        tried = seen.evaluate(ATTACK, f"http://rebound.example:{port}/api")
    assert set(tried.values()) <= {400, 0, "refused"}


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "host", [b"rebound.example:4200", b"rebound.example", b"localhost.evil:1", b"", None]
)
def test_f79_a_foreign_host_does_not_reach_the_app(kind: str, host: bytes | None) -> None:
    """By no kind of request: a page's websockets are not bound to its origin, only the host gives it away."""
    reached, sent = called(kind, host)
    assert not reached and sent[0]["status"] == 400


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_our_own_host_reaches_the_app(kind: str) -> None:
    assert called(kind, b"127.0.0.1:4200") == ([kind], [])


def called(kind: str, host: bytes | None) -> tuple[list[str], list[Message]]:
    """What the app behind the guard was called with, and what the guard has said by itself."""
    reached: list[str] = []
    sent: list[Message] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        reached.append(scope["type"])

    async def receive() -> Message:
        return {"type": f"{kind}.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [] if host is None else [(b"host", host)]
    scope = {"type": kind, "method": "POST", "path": "/api/events/in", "headers": headers}
    scope["extensions"] = {"websocket.http.response": {}}  # by which uvicorn lets a websocket be refused
    asyncio.run(Guard(app)(scope, receive, send))
    return reached, sent


def test_f79_no_page_shows_the_ui_inside_itself(server: Server) -> None:
    reply = httpx.get(server.ui, trust_env=False, follow_redirects=True)
    assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]


def test_the_printed_link_opens_the_ui_and_a_wrong_one_says_so(server: Server) -> None:
    with page() as seen:
        seen.goto(login_url(server.ui, "mudg:wrong"))
        seen.get_by_text("another stack").wait_for()
        seen.goto(login_url(server.ui.replace("127.0.0.1", "localhost"), server.password))
        seen.wait_for_url("**/dashboard*")
        assert seen.url.startswith(server.ui) and server.password not in seen.url
        seen.get_by_text("Run a task or flow to get started").wait_for()  # what the API answered


@pytest.mark.parametrize("password", ["", "mudg:wrong-5ec7e7"])
def test_f99_a_wrong_password_is_told_before_any_work_and_not_repeated(
    server: Server, password: str, tmp_path: Path
) -> None:
    there = {PREFECT_API_URL: f"{server.ui}/api", PREFECT_API_AUTH_STRING: password or None}
    with (
        temporary_settings(there),
        pytest.raises(OrchestrationError, match="PREFECT_API_AUTH_STRING") as told,
        prefect_api(tmp_path),
    ):
        pass
    assert "5ec7e7" not in str(told.value) and server.password not in str(told.value)


def test_f79_f99_the_private_server_of_a_run_wants_its_password(tmp_path: Path) -> None:
    with temporary_settings({PREFECT_API_URL: None}), prefect_api(tmp_path) as url:
        password = os.environ["PREFECT_API_AUTH_STRING"]
        assert httpx.post(f"{url}/flow_runs/filter", json={}, trust_env=False).status_code == 401
        host = {"host": "rebound.example"}
        assert httpx.get(f"{url}/health", headers=host, trust_env=False).status_code == 400
        assert password not in (tmp_path / "server.log").read_text()
    assert os.environ.get("PREFECT_API_AUTH_STRING") != password
