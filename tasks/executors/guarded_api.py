"""Prefect's server, closed to pages of other origins.

Prefect 3.8 has a password and CORS of its own (both are settings), but answers whatever `Host` a browser
sends: a page whose name is made to point to 127.0.0.1 would be of the server's own origin. Nor does it forbid
being framed, where clicks can be stolen. So its app is wrapped in one that does both. The same serves the
page by which the owner's browser learns the password from a link.
"""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import quote

from starlette.datastructures import URL, Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
USER = "mudg"
LOGIN = "/mudg/login"
FRAMES = "frame-ancestors 'none'"
# A fragment stays in the browser: no server, log or proxy sees it. The password is kept only if the server
# takes it, so a foreign link cannot replace it; `prefect-password` is where Prefect's UI looks for it.
PAGE = """<!DOCTYPE html>
<meta charset="utf-8"><title>mudg</title><p id="text">Signing in…</p>
<script nonce="{nonce}">
  const password = btoa(decodeURIComponent(location.hash.slice(1)));
  history.replaceState(null, "", location.pathname);
  fetch("/api/admin/version", {{headers: {{Authorization: "Basic " + password}}}}).then(reply => {{
    if (!reply.ok) throw new Error("this link is of another stack: `mudg up` prints the present one");
    localStorage.setItem("prefect-password", password);
    location.replace("/");
  }}).catch(error => {{ document.getElementById("text").textContent = error.message; }});
</script>
"""


def new_password() -> str:
    """As Prefect wants it: the user's name before the colon."""
    return f"{USER}:{secrets.token_hex(20)}"


def login_url(address: str, password: str) -> str:
    return f"{address}{LOGIN}#{quote(password)}"


def guarding(port: int, password: str) -> dict[str, str]:
    """What Prefect's own server is told by its environment."""
    return {
        "PREFECT_SERVER_API_AUTH_STRING": password,
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": f"http://{HOST}:{port}",
    }


def create_app() -> ASGIApp:
    """For uvicorn."""
    from prefect.server.api.server import create_app as prefects

    return Guard(prefects())


class Guard:
    """Passes on what is meant for this server by its address, and nothing else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host", "").rpartition(":")[0] or Headers(scope=scope).get("host")
        answer = self._answer(scope, host)
        await (answer or self.app)(scope, receive, _unframed(send))

    def _answer(self, scope: Scope, host: str | None) -> Any:
        is_page = scope["type"] == "http" and scope["method"] == "GET"
        if host == "localhost" and is_page:  # typed by its owner; it may be another's on IPv6
            return RedirectResponse(URL(scope=scope).replace(hostname=HOST))
        if host != HOST:
            return PlainTextResponse(f"only http://{HOST} is served here\n", 400)
        return _login_page() if is_page and scope["path"] == LOGIN else None


def _login_page() -> HTMLResponse:
    nonce = secrets.token_urlsafe(16)
    policy = f"default-src 'none'; script-src 'nonce-{nonce}'; connect-src 'self'; {FRAMES}"
    headers = {"content-security-policy": policy, "cache-control": "no-store"}
    return HTMLResponse(PAGE.format(nonce=nonce), headers=headers)


def _unframed(send: Send) -> Send:
    """No page may show this one inside itself: a click there could start a run."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).setdefault("content-security-policy", FRAMES)
        await send(message)

    return sent
